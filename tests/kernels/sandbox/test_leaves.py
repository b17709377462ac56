"""The tensors in a nested value."""

from __future__ import annotations

import torch

from dice.kernels.sandbox.leaves import floats_of, given_back, tensors_of


def test_tensors_come_in_order_and_nothing_else_does() -> None:
    number, count, point = torch.ones(2), torch.arange(3), torch.zeros(1, dtype=torch.complex64)
    value = [number, {"a": (count, 1.0, "text"), "b": None}, point]
    assert [id(tensor) for tensor in tensors_of(value)] == [id(number), id(count), id(point)]
    assert [id(tensor) for tensor in floats_of(value)] == [id(number)]
    assert tensors_of(None) == []


def test_an_output_in_the_memory_of_an_input_is_that_input_given_back() -> None:
    class Own(torch.Tensor):
        @classmethod
        def __torch_function__(cls, *args: object, **kwargs: object) -> None:
            raise AssertionError("asked")

    memory = torch.zeros(12)
    first, second, third = memory[:4], torch.zeros(3), {"a": torch.zeros(2), "b": (torch.ones(5),)}
    inputs = [first, 3, second, third, torch.zeros(0), torch.zeros(4).as_subclass(Own)]
    assert given_back(torch.zeros(4), inputs) == []
    assert given_back((second.clone(), second[2:]), inputs) == [2]
    assert given_back({"x": third["b"][0].t(), "y": first}, inputs) == [0, 3]
    assert given_back(torch.from_numpy(memory.numpy()[8:]), inputs) == [0], "the same memory, by another object"
    assert given_back([torch.zeros(0), second.to_sparse(), "text", inputs[5]], inputs) == []
