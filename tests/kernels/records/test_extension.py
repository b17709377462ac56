"""What a candidate may ask the builder for, bounded before anything is done with it."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from dice.kernels.records.extension import SourceFile


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "/etc/cron.d/x",
        "../x.cu",
        "a/../../x.h",
        "a//b.h",
        "./a.h",
        "a/",
        "a\0b",
        "/".join("a" * 33),
        "a" * 201,
        "é" * 150,
    ],
)
def test_a_file_of_a_request_stays_in_its_folder(name: str) -> None:
    with pytest.raises(ValidationError, match="name"):
        SourceFile(name=name, text="")


@pytest.mark.parametrize("name", ["a.cu", "below/a.h", "..a.h", "a..", "/".join("a" * 32), "a" * 200])
def test_plain_names_are_taken(name: str) -> None:
    assert SourceFile(name=name, text="").name == name
