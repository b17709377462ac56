"""Finite numbers in memory that is handed out next."""

from __future__ import annotations

import torch

from dice.kernels.candidate.noise import noisy_blocks, sizes_of


def test_sizes_of_nested_tensors() -> None:
    value = [torch.zeros(3), (torch.zeros(2, dtype=torch.int64), 5), {"a": torch.zeros(0)}, None]
    assert sizes_of(value) == [12, 16, 0]


def test_the_blocks_hold_finite_numbers_that_differ_each_time() -> None:
    one, other = (noisy_blocks([10, 0, 1 << 40, 1 << 19], torch.device("cpu")) for _ in range(2))
    assert [block.nbytes for block in one[:2]] == [12, 1 << 19]
    for first, second in zip(one, other, strict=True):
        assert bool(first.isfinite().all())
        assert not torch.equal(first, second)


def test_nothing_is_drawn_from_the_default_generator() -> None:
    torch.manual_seed(7)
    plain = torch.rand(4)
    torch.manual_seed(7)
    noisy_blocks([64, 1024], torch.device("cpu"))
    assert torch.equal(torch.rand(4), plain)
