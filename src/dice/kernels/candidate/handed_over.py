"""The arguments that forward passes to its extensions while no kernel runs.

If the answer is among them, it was made without the kernels, even if no operator count shows it: by NumPy, by a loop over
numbers, in an operator of the candidate's own, or by other operators than the reference's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from dice.kernels.candidate.probes import storage_address
from dice.kernels.compare import compare_outputs

MOST_BYTES = 4 << 30
"""Most bytes of copies kept of one forward; later arguments are not checked."""


class HandedOver:
    """Copies of the tensor arguments of calls into extensions, without the tensors in `given` (inputs, weights)."""

    def __init__(self, given: Iterable[torch.Tensor]) -> None:
        self._left_out = {0, *(storage_address(tensor) for tensor in given)}
        self._kept: list[tuple[str, torch.Tensor]] = []
        self._bytes = 0

    def note(self, function: str, arguments: tuple[Any, ...]) -> None:
        """Keep copies of this call's tensor arguments."""
        for leaf in tree_leaves(list(arguments)):
            if not isinstance(leaf, torch.Tensor) or storage_address(leaf) in self._left_out:
                continue
            self._bytes += leaf.nbytes
            if self._bytes <= MOST_BYTES and leaf.is_floating_point() and bool(leaf.any()):
                self._kept.append((function, leaf.detach().clone()))

    def answered(self, outputs: Any) -> str | None:
        """The function whose arguments contained all of `outputs`; None if an output was in no argument."""
        names = [self._holder(leaf) for leaf in tree_leaves(outputs) if isinstance(leaf, torch.Tensor)]
        return names[0] if names and None not in names else None

    def _holder(self, output: torch.Tensor) -> str | None:
        alike = ((name, kept) for name, kept in self._kept if kept.numel() == output.numel())
        for name, kept in alike:
            if compare_outputs(output, kept.reshape(output.shape).to(output), "strict").ok:
                return name
        return None
