"""The tensors in a nested value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_leaves


def tensors_of(value: Any) -> list[torch.Tensor]:
    """All of them, in order."""
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def floats_of(value: Any) -> list[torch.Tensor]:
    """Those of a floating-point type."""
    return [tensor for tensor in tensors_of(value) if tensor.is_floating_point()]


def given_back(outputs: Any, inputs: Sequence[Any]) -> list[int]:
    """Indices of the inputs in whose memory some output lies."""
    begins = [leaf.data_ptr() for leaf in _plain(outputs)]
    found = list[int]()
    for index, value in enumerate(inputs):
        pieces = [leaf.untyped_storage() for leaf in _plain(value)]
        ranges = [(piece.data_ptr(), piece.data_ptr() + piece.nbytes()) for piece in pieces]
        if any(begin <= place < end for place in begins for begin, end in ranges):
            found.append(index)
    return found


def _plain(value: Any) -> list[torch.Tensor]:
    """Those that run no code of a subclass when they are asked, and have memory."""
    leaves = [leaf for leaf in tree_leaves(value) if type(leaf) in (torch.Tensor, torch.nn.Parameter)]
    return [leaf for leaf in leaves if leaf.layout is torch.strided and leaf.numel()]
