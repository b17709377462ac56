"""Which tensors are the same everywhere."""

from __future__ import annotations

import pytest
import torch

from dice.kernels.grader.usage import is_constant, is_fixed


@pytest.mark.parametrize(
    ("value", "constant"),
    [
        (torch.ones(3), True),
        (torch.zeros(2, 2), True),
        (torch.full((4,), 1e-5, dtype=torch.float64), True),
        (torch.ones(3, dtype=torch.bool), True),
        (torch.ones(3, dtype=torch.int64), True),
        (torch.zeros(3, dtype=torch.int64), False),  # positions: others may be outside of a table
        (torch.full((3,), 7), False),
        (torch.ones(1), False),
        (torch.tensor([1.0, 1.0, 1.5]), False),
        (torch.full((2,), float("nan")), False),
        (torch.ones(3, dtype=torch.complex64), False),
        (1.0, False),
    ],
)
def test_what_is_constant(value: object, constant: bool) -> None:
    assert is_constant(value) is constant


def test_what_every_draw_makes_the_same() -> None:
    triangle = torch.ones(4, 4).tril()
    assert is_fixed(triangle, triangle.clone())
    assert is_fixed(torch.arange(9), torch.arange(9))
    assert not is_fixed(triangle, triangle.t())
    assert not is_fixed(torch.arange(4), torch.arange(4.0))
    assert not is_fixed(torch.arange(1), torch.arange(1))
    assert not is_fixed(torch.tensor(3.0), torch.tensor(3.0))
    assert not is_fixed(7, 7)
