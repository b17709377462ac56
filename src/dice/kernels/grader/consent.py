"""What the reference says to inputs that its problem does not draw: whether it takes them, and how much work they make.

That it runs is not enough. Where a size becomes 1, PyTorch may take two tensors together that have nothing to do with each
other (`pool(x) + y`, with `x` so short that its pool is one number): a kernel for the problem has no reason to do so. So
inputs are taken only where each operator broadcasts no other dimensions than for the inputs that the problem draws.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from dice.errors import DiceError
from dice.kernels.grader.candidate_run import CandidateRun
from dice.kernels.grader.other_weights import changed_weights
from dice.kernels.grader.reference import to_device
from dice.kernels.sandbox.leaves import tensors_of
from dice.kernels.sandbox.strides import copied

_INDEXES = re.compile(r"\.(?:long|int)\(|int(?:32|64)|embedding|gather|scatter|index|cross_entropy|nll")
"""Text of a reference that may turn values into indices. On a GPU a bad index ends the process that asks, so the CPU is
asked first."""


def is_safe(run: CandidateRun, inputs: list[Any], seed: int) -> bool:
    """Whether a GPU can be asked: a reference that may index by values is asked on the CPU before."""
    return not _INDEXES.search(run.reference.code) or is_taken_on_cpu(run, inputs, seed)


def is_taken_on_cpu(
    run: CandidateRun, inputs: list[Any], seed: int, weights: Mapping[str, torch.Tensor] = MappingProxyType({})
) -> bool:
    """Whether the reference takes inputs, and other values for some weights. Asked on the CPU where it runs on a GPU: on the
    CPU a bad index only raises."""
    if run.place.device.type == "cpu":
        return True
    on_cpu = run.reference.on_cpu()
    try:
        model = on_cpu.model(run.weights_seed)
        with changed_weights(model, weights):
            on_cpu.run(model, to_device(inputs, on_cpu.device), seed)
    except DiceError:
        return False
    return True


class Consent:
    """Asks the reference of a run. `drawn`: gives inputs of the problem, which show what it broadcasts anyway."""

    def __init__(self, run: CandidateRun, drawn: Callable[[], list[Any]]) -> None:
        self._run, self._drawn = run, drawn
        self._usual: set[Broadcast] | None = None

    def work(self, inputs: list[Any], seed: int) -> int | None:
        """Elements that its operators make of these inputs, laid out as they are; None where it does not take them."""
        watched = self._watched(inputs, seed)
        if watched is None:
            return None
        if self._usual is None:
            usual = self._watched(self._drawn(), seed)
            self._usual = usual.broadcasts if usual is not None else set()
        return watched.elements if watched.broadcasts <= self._usual else None

    def _watched(self, inputs: list[Any], seed: int) -> Watched | None:
        run = self._run
        if not is_safe(run, inputs, seed):
            return None
        own = copied(inputs, run.place.device)
        with run.record.phase("reference"), Watched() as watched:
            try:
                run.reference.run(copy.deepcopy(run.reference.model(run.weights_seed)), own, seed)
            except (DiceError, torch.OutOfMemoryError):
                return None
        return watched


Broadcast = tuple[str, int]
"""(operator, dimension counted from the last) of a size 1 that meets a larger one."""


class Watched(TorchDispatchMode):
    """Notes what the operators of a block broadcast, and how many elements they make."""

    def __init__(self) -> None:
        super().__init__()
        self.broadcasts = set[Broadcast]()
        self.elements = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None) -> Any:
        """One operator."""
        result = func(*args, **(kwargs or {}))
        made = tensors_of(result)
        self.elements += sum(leaf.numel() for leaf in made)
        shapes = [tensor.shape for tensor in tensors_of((args, kwargs))]
        if len(made) == 1 and _fit(shapes, made[0].shape):
            self.broadcasts.update((str(func), dimension) for dimension in _stretched(shapes, made[0].shape))
        return result


def _fit(shapes: list[torch.Size], made: torch.Size) -> bool:
    """Whether an operator works on elements: each of its tensors can be broadcast to what it makes."""
    return all(
        len(shape) <= len(made)
        and all(size in (1, other) for size, other in zip(reversed(shape), reversed(made), strict=False))
        for shape in shapes
    )


def _stretched(shapes: list[torch.Size], made: torch.Size) -> Iterator[int]:
    for shape in shapes:
        for dimension in range(1, len(shape) + 1):
            if shape[-dimension] == 1 < made[-dimension]:
                yield -dimension
