"""New values in the memory of the old inputs, whatever a problem draws anew."""

from __future__ import annotations

import torch

from dice.kernels.candidate.refill import refilled


def test_tensors_keep_their_memory_and_their_containers() -> None:
    old = [torch.zeros(3, 4), {"ids": torch.zeros(5, dtype=torch.int64)}, 7]
    addresses = old[0].data_ptr(), old[1]["ids"].data_ptr()
    again = refilled(old, [torch.ones(3, 4), {"ids": torch.arange(5)}, 7])
    assert again is old
    assert (old[0].data_ptr(), old[1]["ids"].data_ptr()) == addresses
    assert old[0].sum() == 12
    assert old[1]["ids"].tolist() == [0, 1, 2, 3, 4]


def test_other_shapes_stay_in_the_memory_where_they_fit() -> None:
    old = torch.zeros(6, 4)
    address = old.data_ptr()
    values = torch.randn(5, 3)
    assert refilled([old], [values])[0] is old
    assert old.data_ptr() == address
    assert torch.equal(old, values)
    larger = torch.randn(40, 9)
    assert torch.equal(refilled([old], [larger])[0], larger)


def test_numbers_that_go_with_the_shape_are_new() -> None:
    old = [torch.zeros(2), 2, None]
    again = refilled(old, [torch.ones(3), 3, None])
    assert again[0] is old[0]
    assert again[1:] == [3, None]
    assert refilled([1], [True])[0] is True


def test_lists_of_other_lengths() -> None:
    first = torch.zeros(2)
    assert [t.tolist() for t in refilled([[first]], [[torch.ones(2), torch.ones(1)]])[0]] == [[1, 1], [1]]
    shorter = refilled([[first, torch.zeros(1)]], [[torch.ones(2)]])[0]
    assert len(shorter) == 1
    assert shorter[0] is first


def test_another_dtype_is_another_tensor() -> None:
    old, new = torch.zeros(2), torch.zeros(2, dtype=torch.float64)
    assert refilled([old], [new])[0] is new
