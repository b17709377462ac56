"""The tensors in a nested value."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._pytree import tree_leaves


def tensors_of(value: Any) -> list[torch.Tensor]:
    """All of them, in order."""
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def floats_of(value: Any) -> list[torch.Tensor]:
    """Those of a floating-point type."""
    return [tensor for tensor in tensors_of(value) if tensor.is_floating_point()]
