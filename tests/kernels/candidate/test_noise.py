"""Finite numbers in memory that is handed out next."""

from __future__ import annotations

import torch

from dice.kernels.candidate.noise import leave_noise, sizes_of


def test_sizes_of_nested_tensors() -> None:
    value = [torch.zeros(3), (torch.zeros(2, dtype=torch.int64), 5), {"a": torch.zeros(0)}, None]
    assert sizes_of(value) == [12, 16, 0]


def test_fresh_memory_holds_finite_numbers_that_differ_each_time() -> None:
    size = 3 * 5 * 7 * 4 * 64
    found = []
    for _ in range(2):
        spoilt = [torch.full((size // 4,), float("nan")) for _ in range(3)]
        del spoilt
        leave_noise([size], torch.device("cpu"))
        found.append(torch.empty(size // 4).clone())
    assert all(bool(one.isfinite().all()) for one in found)


def test_nothing_is_drawn_from_the_default_generator() -> None:
    torch.manual_seed(7)
    plain = torch.rand(4)
    torch.manual_seed(7)
    leave_noise([64, 1024], torch.device("cpu"))
    assert torch.equal(torch.rand(4), plain)
