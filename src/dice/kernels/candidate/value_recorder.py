"""The values that PyTorch's operators take and give in one forward, as prints (`dice.kernels.likeness.prints`).

`dice.kernels.checks.shared_values` compares them with those of the reference.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from dice.kernels.likeness.prints import Prints
from dice.kernels.sandbox.leaves import tensors_of

MOST_CALLS = 600
"""Operators of one forward that are recorded."""
MOST_PRINTS = 8 * MOST_CALLS
TAKES, GIVES, READS = 0, 1, 2
"""What an operator does with a value; `READS`: none, but it takes a number of Python's."""
_MOST_BYTES = 64 << 20
"""Of copies of one forward."""


class ValueRecorder(TorchDispatchMode):
    """Records what operators take and give while the block runs. `given`: inputs and weights. `before`: the recorder of
    another forward, to tell how many elements have changed since then."""

    def __init__(self, given: Iterable[Any], before: ValueRecorder | None = None) -> None:
        super().__init__()
        self._before: list[torch.Tensor | None] = before._copies if before else []
        self._copies: list[torch.Tensor | None] = []
        self._left = _MOST_BYTES
        self._changed: list[int] = []
        self._prints = Prints(MOST_PRINTS)
        self._names: list[str] = []
        self._rows: list[tuple[int, int, int]] = []
        for value in given:
            self._print(value)
        self._given = len(self._prints)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if len(self._names) >= MOST_CALLS or "empty" in func._schema.name:  # what kernels may write to
            return func(*args, **kwargs)
        call = len(self._names)
        self._names.append(func._schema.name)
        taken = [(call, TAKES, self._print(leaf)) for leaf in tensors_of((args, kwargs))]  # before it writes into one
        taken += [(call, READS, -1)] * _takes_number(func, args, kwargs)
        result = func(*args, **kwargs)
        written = [_whole(leaf) for leaf in written_by(func, args, kwargs)]
        given = [(call, GIVES, self._print(leaf)) for leaf in [*tensors_of(result), *written]]
        self._rows += taken + given
        return result

    def _print(self, value: Any) -> int:
        """Row of the value's print; -1 without one."""
        row = self._prints.add(value)
        if row >= 0:
            before = self._before[row] if row < len(self._before) else None
            same_shape = before is not None and before.shape == value.shape
            self._changed.append(int((before != value).sum()) if same_shape else -1)
            self._left -= value.nbytes
            self._copies.append(value.detach().clone() if self._left > 0 else None)
        return row

    def offer(self) -> list[Any]:
        """Names of the operators in order; int64 [n, 3] of operator, what it does, and print, -1 for a value
        without; prints, fp64 [m, WIDTH]; int64 [m], how many elements of each have changed, -1 where nobody knows; how many
        of these, from the first, are of inputs and weights."""
        rows, changed = (torch.tensor(each, dtype=torch.int64) for each in (self._rows, self._changed))
        return [self._names, rows.reshape(-1, 3), self._prints.stacked(), changed, self._given]


def written_by(func: Any, args: Any, kwargs: Any) -> list[torch.Tensor]:
    """Arguments that an operator writes to."""
    passed = _passed(func, args, kwargs)
    written = [leaf for argument, value in passed if _is_written(argument) for leaf in tensors_of(value)]
    return [leaf for leaf in written if leaf.layout is torch.strided]


def _passed(func: Any, args: Any, kwargs: Any) -> list[tuple[Any, Any]]:
    """Declarations of arguments and their values."""
    declared = func._schema.arguments
    named = [(argument, kwargs[argument.name]) for argument in declared if argument.name in kwargs]
    return [*zip(declared, args, strict=False), *named]


def _takes_number(func: Any, args: Any, kwargs: Any) -> bool:
    """Whether it computes with a number of Python's beside 0 and 1."""
    return any(
        isinstance(value, int | float) and value not in (0, 1)
        for argument, value in _passed(func, args, kwargs)
        if str(argument.type) in ("number", "float", "Tensor")
    )


def _is_written(argument: Any) -> bool:
    return argument.alias_info is not None and argument.alias_info.is_write


def _whole(tensor: torch.Tensor) -> torch.Tensor:
    """All of the memory behind a tensor."""
    return torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(tensor.untyped_storage())
