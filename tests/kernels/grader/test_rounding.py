"""Narrow arithmetic is known by what it loses against fp64, not by its names."""

from __future__ import annotations

import pytest
import torch

from dice.kernels.checks.seen import Seen
from dice.kernels.grader.rounding import error_ratio
from dice.kernels.records.evidence import RunEvidence

A, B = (torch.randn(96, 96, generator=torch.Generator().manual_seed(seed)) for seed in (1, 2))


def terms(value: torch.Tensor, number: int, dtype: torch.dtype) -> list[torch.Tensor]:
    parts = []
    for _ in range(number):
        parts.append(value.to(dtype).float())
        value = value - parts[-1]
    return parts


def product(number: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    return sum((x @ y for x in terms(A, number, dtype) for y in terms(B, number, dtype)), torch.zeros(96, 96))


def in_order(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    total = torch.zeros(96, 96)
    for k in range(96):
        total = total + a[:, k : k + 1] * b[k : k + 1]
    return total


def as_exact(actual: torch.Tensor) -> bool | None:
    rounding = error_ratio(A @ B, actual, A.double() @ B.double())
    return Seen.by(RunEvidence(backend="cpu", reached="forward", rounding=rounding)).as_exact


@pytest.mark.parametrize("actual", [A @ B, product(3), in_order(A, B), (A.double() @ B.double()).float()])
def test_as_exact_as_fp32(actual: torch.Tensor) -> None:
    assert as_exact(actual) is True


def test_digits_that_are_lost() -> None:
    some_rows = A @ B
    some_rows[-1] = product(1)[-1]
    one = A @ B
    one[3, 5] = float("nan")
    for actual in (product(1), product(2), product(1, torch.float16), some_rows, (A @ B).half().float(), one):
        assert as_exact(actual) is False


def test_what_cannot_be_measured_is_not_known() -> None:
    drawn = torch.rand(8, 8)
    assert error_ratio(drawn, drawn, torch.rand(8, 8, dtype=torch.float64)) is None
    assert error_ratio(drawn.int(), drawn.int(), drawn.int()) is None
    assert error_ratio(drawn, drawn[:4], drawn.double()) is None
    few = torch.rand(15)
    assert error_ratio(few, few, few.double()) is None, "the errors of a few may cancel"


def test_the_worst_output_counts_and_what_is_undefined_does_not() -> None:
    exact = A.double() @ B.double()
    assert error_ratio([A @ B, A], [A @ B, A.half().float()], [exact, A.double()]) > 100  # pyright: ignore[reportOptionalOperand]
    undefined = torch.tensor([1.0, float("inf")] * 16)
    assert error_ratio(undefined, undefined, undefined.double()) == 0.0
