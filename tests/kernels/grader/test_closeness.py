"""Whether outputs agree, large and small."""

from __future__ import annotations

import pytest
import torch

from dice.kernels.grader.closeness import agree


@pytest.mark.parametrize("size", [1.0, 1e-3, 1e-5])
def test_small_outputs_are_compared_by_their_own_size(size: float) -> None:
    value = torch.rand(40, 50) * size
    assert agree(value, value * 1.005)
    assert not agree(value, value * 1.5)
    assert not agree((value, torch.ones(3)), (value * 1.5, torch.ones(3)))


def test_what_may_be_noise_and_what_is_no_float_is_compared_as_under_paper() -> None:
    assert agree(torch.full((9,), 1e-9), torch.zeros(9))
    assert agree(torch.zeros(9), torch.full((9,), 1e-3))
    assert agree(torch.arange(4), torch.arange(4))
    assert not agree(torch.tensor([True]), torch.tensor([False]))
    assert agree({"y": 0.001, "n": 3}, {"y": 0.002, "n": 3})


def test_other_structures_and_shapes_do_not_agree() -> None:
    value = torch.rand(6) * 1e-3
    assert not agree(value, value[:3])
    assert not agree(value, (value, value))
    assert not agree(value, value.half())


def test_floats_of_eight_bits_are_scaled_too() -> None:
    small = torch.tensor([0.125, 0.25, 0.5]).to(torch.float8_e5m2)
    assert agree(small, small.clone())
    assert not agree(small, torch.zeros(3).to(torch.float8_e5m2))
