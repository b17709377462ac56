"""Inputs of which each element comes from the middle of what was drawn, from above it or from below."""

from __future__ import annotations

import torch

from dice.kernels.grader.crossing import turned


def test_all_that_is_turned_up_lies_above_all_that_stays() -> None:
    drawn = torch.randn(40, 33)
    (base,), (up,), (down,) = (turned([drawn], way) or [] for way in (None, "up", "down"))
    assert down.max() <= base.min()
    assert base.max() <= up.min()
    assert all(bool(torch.isin(each, drawn).all()) and each.shape == drawn.shape for each in (base, up, down))
    assert (base == drawn).double().mean() > 0.45


def test_what_the_host_may_read_stays() -> None:
    few, whole, text = torch.randn(12), torch.arange(900), "mean"
    few_again, numbers, whole_again, same = turned([few, torch.randn(64), whole, text], "up") or []
    assert few_again is few
    assert whole_again is whole
    assert same is text
    assert len(numbers) == 64
    assert turned([few, whole, text], "up") is None


def test_half_precision_is_turned_too() -> None:
    drawn = torch.rand(8, 16).bfloat16()
    (base,), (up,) = (turned([drawn], way) or [] for way in (None, "up"))
    assert base.dtype is up.dtype is torch.bfloat16
    assert base.max() <= up.min()
