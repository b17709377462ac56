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


def place_of(tensor: torch.Tensor) -> int:
    """Address of a tensor's storage; 0 for tensors without."""
    return tensor.untyped_storage().data_ptr() if tensor.layout is torch.strided else 0


def memory_of(tensor: torch.Tensor) -> tuple[int, int]:
    """Address and size of the memory behind a tensor, both 0 for tensors without."""
    return place_of(tensor), tensor.untyped_storage().nbytes() if tensor.layout is torch.strided else 0


def given_back(outputs: Any, inputs: Sequence[Any]) -> list[int]:
    """Indices of the inputs in whose memory some output lies."""
    begins = [leaf.data_ptr() for leaf in _plain(outputs)]
    found = list[int]()
    for index, value in enumerate(inputs):
        ranges = [memory_of(leaf) for leaf in _plain(value)]
        if any(begin <= place < begin + size for place in begins for begin, size in ranges):
            found.append(index)
    return found


def _plain(value: Any) -> list[torch.Tensor]:
    """Those that run no code of a subclass when they are asked, and have memory."""
    leaves = [leaf for leaf in tree_leaves(value) if type(leaf) in (torch.Tensor, torch.nn.Parameter)]
    return [leaf for leaf in leaves if leaf.layout is torch.strided and leaf.numel()]
