"""What a condition is, and how the inputs of a call are changed leaf by leaf. Pure: nothing here runs a program."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import torch
from torch.utils._pytree import tree_leaves, tree_map

from dice.kernels.cpu.race import Turn

Weights = Literal["same", "other_seed", "varied", "positive", "small_buffers", "far_below_zero"]
"""Of the model: those of the trials; those of another seed; the same with other magnitudes, none 0 or 1 everywhere; the same
without signs, where it has any; buffers a thousandth; parameters below -1,000."""


def derived(seed: int, name: str) -> int:
    """A seed of 48 bits for one use, from the seed of a run."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{name}".encode()).digest()[:6], "big")


class Source:
    """What a condition may draw from: inputs as the problem draws them, numbers, and the reference's consent.

    draw: the inputs of one call, by seed. work: elements that the reference makes of given inputs, None where it does not
    take them. whole: as `draw`, where that gives them cut. Two sources of the same seed give the same.
    """

    def __init__(
        self,
        draw: Callable[[int], list[Any]],
        work: Callable[[list[Any]], int | None],
        seed: int,
        name: str,
        whole: Callable[[int], list[Any]] | None = None,
    ) -> None:
        self._draw, self.work, self._seed, self._whole = draw, work, seed, whole or draw
        self.generator = torch.Generator().manual_seed(derived(seed, name))

    @cached_property
    def inputs(self) -> list[Any]:
        """The inputs that all conditions of a run change."""
        return self.other(0)

    def accepts(self, inputs: list[Any]) -> bool:
        """Whether the reference takes these inputs."""
        return self.work(inputs) is not None

    def other(self, number: int) -> list[Any]:
        """Further inputs of the problem; 0 gives those of `inputs`."""
        return self._draw(derived(self._seed, f"inputs {number}"))

    def whole(self, number: int) -> list[Any]:
        """`other`, as large as the problem draws it."""
        return self._whole(derived(self._seed, f"inputs {number}"))


@dataclass(frozen=True)
class Condition:
    """One condition. A kernel that is right passes it wherever the reference defines a result."""

    name: str
    meaning: str
    """What is other than in a trial, in a few words."""
    inputs: Callable[[Source], list[Any] | None] = lambda source: source.inputs
    """The inputs of the call; None: the problem has nothing that this condition changes."""
    weights: Weights = "same"
    keeps_strides: bool = False
    """Whether the inputs reach the kernel with the strides that they have here; else they are contiguous."""
    compares: Callable[[torch.dtype], bool] = lambda dtype: True
    """Which tensors of the output: where values tie, which index is first is open."""
    contained: bool = False
    """Whether only those elements are compared that are the same without the change: the others are a choice of PyTorch's."""
    nan_is_open: bool = False
    """Whether a NaN is no failure where the change reaches: other formulas of the same function give another number there."""
    ties: bool = False
    """Whether it makes values equal, or NaN: which comes first is open where the reference puts values in order."""
    turn: Turn | None = None
    """CPU back end: the order in which threads run; the condition does not exist elsewhere."""
    guarded: bool = False
    """CPU back end: whether the memory of tensors ends where nothing may be read or written."""
    decides: bool = True
    """Whether a kernel that it breaks is not `correct`; else it is reported only."""
    may_refuse: bool = False
    """Whether a kernel may say, by an exception of its own, that it does not take such inputs."""

    @property
    def on_cpu_only(self) -> bool:
        """Whether only the CPU back end has it."""
        return self.turn is not None or self.guarded


def cut_like(inputs: list[Any], example: list[Any]) -> list[Any]:
    """Inputs of the same structure, cut to the sizes of `example`, which are nowhere larger."""

    def cut(leaf: Any, like: Any) -> Any:
        return leaf[tuple(slice(size) for size in like.shape)].contiguous() if torch.is_tensor(leaf) else leaf

    return tree_map(cut, inputs, example)


def has(inputs: list[Any], kind: Callable[[torch.Tensor], bool]) -> bool:
    """Whether any tensor of the inputs is of this kind."""
    return any(torch.is_tensor(leaf) and leaf.numel() > 0 and kind(leaf) for leaf in tree_leaves(inputs))


def changed(
    inputs: list[Any], kind: Callable[[torch.Tensor], bool], change: Callable[[torch.Tensor], torch.Tensor]
) -> list[Any] | None:
    """The inputs with every tensor of this kind changed; None where there is none."""
    if not has(inputs, kind):
        return None
    return tree_map(
        lambda leaf: change(leaf) if torch.is_tensor(leaf) and leaf.numel() > 0 and kind(leaf) else leaf, inputs
    )
