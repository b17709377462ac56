"""What PyTorch's operators take and give where they may join parts that kernels have mixed apart from each other.

A sum may be made of halves: kernels add up each half, and PyTorch adds the two. An operator joins two elements of an input
if a number that it gives follows both, and none that it takes does. One that only adds zeros joins nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from dice.kernels.sandbox.leaves import tensors_of

JOINING = frozenset(
    f"aten::{name}{ending}"
    for name in ("add", "sub", "rsub", "addcmul", "addcdiv", "lerp", "maximum", "minimum", "fmax", "fmin", "logaddexp")
    for ending in ("", "_")
)
"""Elementwise operators by which PyTorch may join parts that kernels have mixed apart from each other."""
ADDING = frozenset(
    f"aten::{name}{ending}"
    for name in ("index_add", "scatter_add", "scatter_reduce", "index_put", "col2im", "grid_sampler_2d")
    for ending in ("", "_")
) | {f"aten::upsample_{kind}" for kind in ("linear1d", "bilinear2d", "bicubic2d", "trilinear3d")}
"""Operators that count as movement and mix elements."""

_MOST_BYTES = 256 << 20
"""Of copies of one forward."""


@dataclass(frozen=True)
class Call:
    """Copies of the tensors that one operator took and gave, each as rows of the bytes of one number."""

    taken: list[torch.Tensor]
    given: list[torch.Tensor]


class JoinRecorder(TorchDispatchMode):
    """Records the calls of operators that may join parts, while the block runs."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Call] = []
        self.full = False
        """Whether there were more than could be copied."""
        self._left = _MOST_BYTES

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func._schema.name not in JOINING | ADDING:
            return func(*args, **kwargs)
        taken = self._copies(args)  # before the call, which may write into one of them
        result = func(*args, **kwargs)
        self.calls.append(Call(taken, self._copies(result)))
        return result

    def _copies(self, tree: Any) -> list[torch.Tensor]:
        tensors = [tensor.detach() for tensor in tensors_of(tree)]
        size = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
        if size > self._left or any(tensor.layout is not torch.strided for tensor in tensors):
            self.full = True
            return []
        self._left -= size
        return [_bytes(tensor) for tensor in tensors]


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    flat = torch.empty(tensor.numel(), dtype=tensor.dtype).copy_(tensor.reshape(-1))
    return flat.view(torch.uint8).reshape(-1, tensor.element_size())


def joins(forwards: Sequence[JoinRecorder]) -> bool:
    """Whether an operator may have joined the two elements of an input that differ between `forwards`: two of the same
    inputs, then one with the first element changed, then one with the second."""
    if any(each.full for each in forwards) or len({len(each.calls) for each in forwards}) != 1:
        return True
    return any(_joins(calls) for calls in zip(*(each.calls for each in forwards), strict=True))


def _joins(calls: Sequence[Call]) -> bool:
    """The same for one call in each of the forwards."""
    return _follow_both([call.given for call in calls]) and not _follow_both([call.taken for call in calls])


def _follow_both(forwards: Sequence[Sequence[torch.Tensor]]) -> bool:
    """Whether a number follows both elements, in different ways."""
    for base, again, first, second in zip(*forwards, strict=False):
        if not base.shape == again.shape == first.shape == second.shape:
            continue
        differs = [(a != b).any(1) for a, b in ((base, first), (base, second), (first, second))]
        if bool((differs[0] & differs[1] & differs[2] & (base == again).all(1)).any()):
            return True
    return False
