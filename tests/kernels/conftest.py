"""Fixtures of the verifier's execution tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dice.kernels.zygote import Zygote


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    """One zygote for all tests of a session: starting it costs an import of torch."""
    with Zygote() as handle:
        yield handle
