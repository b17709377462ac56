"""Whether a reference's output says which of several equal values comes first, where it takes the largest or the smallest
along a dimension. Another right kernel may choose another one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from dice.kernels.compare import compare_outputs

_EXTREMES = (torch.ops.aten.max.dim, torch.ops.aten.min.dim)


class LastOfEqual(TorchDispatchMode):
    """In the block, `x.max(dim)` and `x.min(dim)` give the last of equal values instead of the first."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func not in _EXTREMES or not args[0].dim():
            return func(*args, **(kwargs or {}))
        tensor, dim, *others = args
        values, places = func(tensor.flip(dim), dim, *others, **(kwargs or {}))
        return torch.return_types.max((values, tensor.shape[dim] - 1 - places))


def choice_is_told(reference: Callable[[], Any]) -> bool:
    """Whether the outputs that `reference` returns change when it takes the last of equal values instead of the first."""
    first = reference()
    with LastOfEqual():
        last = reference()
    return not compare_outputs(first, last, "strict").ok
