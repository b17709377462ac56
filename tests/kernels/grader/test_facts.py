"""Which of two recorded calls counts."""

from __future__ import annotations

from dice.kernels.grader.facts import busier
from dice.kernels.records.evidence import OpUse


def _uses(**elements: int) -> dict[str, OpUse]:
    return {f"aten::{name}": OpUse(count=1, elements=size) for name, size in elements.items()}


def test_the_call_with_more_work_counts_whenever_it_came() -> None:
    computed, launched = _uses(clamp_min=94, empty_like=2), _uses(clamp_min=0, empty_like=96, slice=300)
    assert busier(launched, computed) is computed
    assert busier(computed, launched) is computed


def test_without_work_the_one_with_more_operators_counts() -> None:
    nothing, views = dict[str, OpUse](), _uses(slice=9)
    assert busier(nothing, views) is views
    assert busier(views, nothing) is views
