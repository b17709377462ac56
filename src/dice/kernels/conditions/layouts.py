"""Conditions on memory layout: the same values, not contiguous. They are reported and decide nothing, because nearly all
published kernels take contiguous inputs for granted, as their problems draw them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from dice.kernels.conditions.condition import Condition, Source, changed
from dice.kernels.sandbox.strides import laid

_PADDING = 3
"""Elements between two rows of `padded_rows`."""


def swapped(tensor: torch.Tensor) -> tuple[int, ...]:
    """Strides of the same values with the last two dimensions swapped in memory."""
    return tensor.transpose(-1, -2).contiguous().transpose(-1, -2).stride()


def padded(tensor: torch.Tensor) -> tuple[int, ...]:
    """Strides of a slice of a tensor whose rows are longer."""
    wide = tensor.new_empty((*tensor.shape[:-1], tensor.shape[-1] + _PADDING), device="meta")
    return wide[..., : tensor.shape[-1]].stride()


def _has_rows(tensor: torch.Tensor) -> bool:
    return tensor.ndim > 1 and min(tensor.shape[-2:]) > 1


def _laid_out(strides: Callable[[torch.Tensor], tuple[int, ...]]) -> Callable[[Source], list[Any] | None]:
    def made(source: Source) -> list[Any] | None:
        inputs = changed(source.inputs, _has_rows, lambda tensor: laid(tensor, strides(tensor)))
        return inputs if inputs is not None and source.accepts(inputs) else None

    return made


def _layout(name: str, meaning: str, strides: Callable[[torch.Tensor], tuple[int, ...]]) -> Condition:
    return Condition(name, meaning, _laid_out(strides), keeps_strides=True, decides=False, may_refuse=True)


LAYOUTS = [
    _layout("swapped_layout", "last two dimensions of each input swapped in memory", swapped),
    _layout("padded_rows", "inputs that are slices of wider ones", padded),
]
