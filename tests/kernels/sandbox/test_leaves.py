"""The tensors in a nested value."""

from __future__ import annotations

import torch

from dice.kernels.sandbox.leaves import floats_of, tensors_of


def test_tensors_come_in_order_and_nothing_else_does() -> None:
    number, count, point = torch.ones(2), torch.arange(3), torch.zeros(1, dtype=torch.complex64)
    value = [number, {"a": (count, 1.0, "text"), "b": None}, point]
    assert [id(tensor) for tensor in tensors_of(value)] == [id(number), id(count), id(point)]
    assert [id(tensor) for tensor in floats_of(value)] == [id(number)]
    assert tensors_of(None) == []
