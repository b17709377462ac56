"""Copies of tensors with given strides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map, tree_structure, tree_unflatten

Strides = list[list[int] | None]
"""Of each leaf of a nested value; None: contiguous, or no tensor."""
_ALIGNED = 512
"""Bytes. Before a tensor of more than `_SMALL` bytes, so many elements."""
_SMALL = 16 << 20
"""Bytes up to which a tensor gets as much memory again before it, and twice as much behind it."""


def laid(tensor: torch.Tensor, strides: Sequence[int]) -> torch.Tensor:
    """A copy with these strides, in new memory. The gaps between its elements are NaN where the dtype has it."""
    span = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, strides, strict=True))
    filler = float("nan") if tensor.is_floating_point() else 0
    memory = torch.full((span,), filler, dtype=tensor.dtype, device=tensor.device)
    view = memory.as_strided(tensor.shape, strides)
    view.copy_(tensor)
    return view


def copied(value: Any, device: torch.device) -> Any:
    """A copy of a nested value on `device`, with the strides of each tensor; of a view that repeats elements, contiguous."""

    def copy(leaf: Any) -> Any:
        if not torch.is_tensor(leaf):
            return leaf
        moved = leaf.detach().to(device, copy=True)
        return moved if leaf.is_contiguous() or 0 in leaf.stride() else laid(moved, leaf.stride())

    return tree_map(copy, value)


def strides_of(value: Any) -> Strides:
    """The strides of every tensor that is not contiguous."""
    return [
        list(leaf.stride()) if torch.is_tensor(leaf) and leaf.numel() and not leaf.is_contiguous() else None
        for leaf in tree_leaves(value)
    ]


def relaid(value: Any, strides: Strides) -> Any:
    """A copy of a nested value, whose tensors have `strides`."""
    leaves = [leaf if own is None else laid(leaf, own) for leaf, own in zip(tree_leaves(value), strides, strict=True)]
    return tree_unflatten(leaves, tree_structure(value))


def surrounded(value: Any) -> Any:
    """A nested value with each contiguous tensor as a view of larger memory, as a row of a batch or a part of a fused product
    is. It begins at an address that vector loads and a GPU's allocator ask for."""

    def within(leaf: Any) -> Any:
        if not torch.is_tensor(leaf) or not leaf.numel() or not leaf.is_contiguous():
            return leaf
        before = -(-leaf.nbytes // _ALIGNED) * _ALIGNED // leaf.element_size() if leaf.nbytes <= _SMALL else _ALIGNED
        memory = torch.zeros(3 * before + leaf.numel(), dtype=leaf.dtype, device=leaf.device)
        view = memory[before : before + leaf.numel()].view(leaf.shape)
        view.copy_(leaf)
        return view

    return tree_map(within, value)
