"""Tokens: who is let in, as whom, and that a token is never told."""

from __future__ import annotations

import base64

import pytest

from dice.errors import DiceError
from dice.service.tokens import Tokens

LONG, OTHER = "0123456789abcdef", "fedcba9876543210"


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@pytest.mark.parametrize(
    ("header", "client"),
    [
        (f"Bearer {LONG}", "ann"),
        (f"bearer  {OTHER} ", "bob"),
        (basic("any", LONG), "ann"),
        (basic("", OTHER), "bob"),
        (f"Bearer {LONG[:-1]}", None),
        (f"Bearer {LONG}0", None),
        ("Bearer ann", None),
        (f"Bearer ann={LONG}", None),
        (f"Digest {LONG}", None),
        (LONG, None),
        (basic(LONG, ""), None),
        ("Basic !", None),
        (basic("any", LONG).replace("Basic ", "Basic !"), None),
        ("Basic /////w==", None),
        ("Bearer", None),
        ("", None),
        ("Bearer \udce4", None),
    ],
)
def test_who_comes_in(header, client):
    assert Tokens(f"ann={LONG}, bob = {OTHER},").client(header) == client


def test_a_token_without_a_name_is_the_client():
    assert Tokens(LONG).client(f"Bearer {LONG}") == "client"
    assert Tokens(LONG)
    for padded in (f"{LONG}=", f"{LONG}=="):
        assert Tokens(padded).client(f"Bearer {padded}") == "client"
        assert Tokens(padded).client(f"Bearer {LONG}") is None
    assert Tokens(f"ann={LONG}=").client(f"Bearer {LONG}=") == "ann"
    assert not Tokens(" , ")


@pytest.mark.parametrize("text", ["short", "ann=", "ann==", f"ann={LONG},bob=short", f"a={LONG},b={LONG}", "ä" * 20])
def test_a_bad_token_is_named_by_its_number_alone(text):
    with pytest.raises(DiceError, match=r"token \d") as error:
        Tokens(text)
    assert LONG not in str(error.value)
    assert "short" not in str(error.value)


def test_a_token_is_kept_nowhere():
    assert LONG not in repr(vars(Tokens(LONG)))
