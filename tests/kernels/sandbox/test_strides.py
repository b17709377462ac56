"""Copies that are views of larger memory."""

from __future__ import annotations

import torch

from dice.kernels.sandbox.strides import surrounded


def test_contiguous_tensors_lie_within_larger_memory() -> None:
    value = {"x": torch.randn(5, 7), "ids": [torch.arange(3)], "n": 4, "half": torch.randn(6).half()}
    other = surrounded(value)
    for own, view in ((value["x"], other["x"]), (value["ids"][0], other["ids"][0]), (value["half"], other["half"])):
        assert torch.equal(own, view)
        assert view.is_contiguous()
        assert view._is_view()
        assert view.storage_offset() > 0
        assert view.storage_offset() * view.element_size() % 512 == 0
        assert view.untyped_storage().nbytes() >= 3 * own.nbytes
    assert other["n"] == 4


def test_other_layouts_and_empty_tensors_stay() -> None:
    turned, nothing = torch.randn(4, 5).t(), torch.empty(0)
    assert surrounded([turned, nothing])[0] is turned
    assert surrounded([turned, nothing])[1] is nothing
