"""The pages of ten kernels in the documentation are what the verifier prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from kernel_pages import EXAMPLES, RIGHT, code_of, difference, document

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "kernel-pages.md"


def without_digits(text: str) -> str:
    """Numbers with a point left out: processors round sums in other orders."""
    return re.sub(r"-?\d+\.\d+(?:e-?\d+)?", "#", text)


def test_each_kernel_differs_as_it_says_and_stands_on_the_page() -> None:
    assert len(EXAMPLES) == 10
    assert len({code_of(example) for example in EXAMPLES}) == 10
    text = PAGE.read_text(encoding="utf-8")
    assert RIGHT in text
    for number, example in enumerate(EXAMPLES, 1):
        assert f"## {number}. {example.title}\n" in text
        assert difference(example) in text


@pytest.mark.slow
def test_the_page_is_what_is_printed() -> None:
    assert without_digits(document()) == without_digits(PAGE.read_text(encoding="utf-8"))
