"""Memory that the arguments of kernels point to before they have run, and whether the answer is in it.

If it is, it was made without the kernels, even if no operator count shows it: by NumPy, by a loop over numbers, by a
library, in an operator of the candidate's own, or by other operators than the reference's. `dice.kernels.likeness` says
which forms of the answer are recognised.

Two forwards are looked through. While no kernel runs: the tensors that extensions are given, what the arguments of
launches are and point to, and all memory of PyTorch's allocator, freed or not (GPU). While kernels run: what the
arguments of each launch are and point to right before it, up to the launch that leaves the answer itself. So a candidate
that waits for its first kernel before it computes without them is seen as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from dice.kernels.candidate import extension_loader
from dice.kernels.candidate.mixing import Step
from dice.kernels.candidate.probes import storage_address
from dice.kernels.likeness import Search, find_outputs
from dice.kernels.likeness.search import larger, weighted
from dice.kernels.records.evidence import Form
from dice.kernels.sandbox.gpu_buffer import gpu_memory
from dice.kernels.sandbox.leaves import tensors_of

MOST_BYTES = 512 << 20
"""Most bytes of copies kept of one forward; what comes later is not looked through."""
MOST_PIECES = 512
_BY_KERNELS = 0.5
"""Share of the answer from which on a launch has left it."""
_GPU_BLOCK = 512
"""Bytes; PyTorch's allocator of a GPU hands out multiples of it. A copy behind a tensor's pointer goes on behind its block,
and a few numbers are looked for in short pieces only."""


class AnswerTraces:
    """Copies of memory that arguments of kernels point to, in one forward without kernels and in one with them.

    answer_bytes: size of the outputs that are expected. on_gpu: whether PyTorch's allocator of a GPU is looked through.
    """

    def __init__(self, answer_bytes: int, on_gpu: bool) -> None:
        self._on_gpu = on_gpu
        self.most_piece = 4 * answer_bytes + (1 << 16)
        """Bytes that are copied behind a pointer at most. A copy of so many may be cut."""
        self._least_piece = answer_bytes // 64
        self._left = MOST_BYTES
        self._launching = False
        self._ran_without = False
        self._calls = 0
        self._without: list[torch.Tensor] = []
        self._moments: list[tuple[int, torch.Tensor]] = []
        self.fed: list[torch.Tensor] = []
        """What the arguments of launches were and pointed to in the last forward without kernels."""
        self.steps: list[Step] = []
        """The same for each launch of the last forward with kernels."""

    def begin(self, launching: bool) -> None:
        """Before a forward. launching: whether kernels run in it."""
        self._launching, self._left = launching, MOST_BYTES
        self._ran_without |= not launching
        self._calls = 0
        extension_loader.keep_arguments(self.most_piece, MOST_BYTES)

    def note(self, function: str, arguments: tuple[Any, ...]) -> None:
        """Keep copies of the tensors that this call of an extension is given, if no kernel has run before it."""
        self._calls += 1
        before_all = not self._launching or (not self._ran_without and self._calls == 1)
        for leaf in tree_leaves(list(arguments)) if before_all else []:
            if isinstance(leaf, torch.Tensor) and storage_address(leaf):
                self._keep(leaf.detach().contiguous().reshape(-1).view(torch.uint8))

    def end(self) -> None:
        """After the forward: copy what its kernels would have read and written."""
        given = len(self._without)
        for piece in extension_loader.kept_arguments():
            self._keep(piece.data, piece.moment)
        self.fed = self._without[given:]
        self.steps = self._steps() if self._launching else []
        extension_loader.keep_arguments(0, 0)
        if self._on_gpu and not self._launching:
            for address, size in _blocks():
                if self._least_piece <= size <= self.most_piece:
                    self._keep(gpu_memory(address, size))

    def _steps(self) -> list[Step]:
        """What was kept, by launch. A piece before a launch that is as large as may be is left out: it may be anything behind
        a word that only looks like an address. No steps where there was no room for all copies."""
        steps: list[Step] = []
        begun = -1
        for moment, piece in self._moments:
            if moment % 2 == 0 and moment != begun:
                steps.append(Step([], []))
                begun = moment
            if moment % 2 == 0 and piece.numel() < self.most_piece:
                steps[-1].before.append(piece)
            elif moment % 2 and steps:
                steps[-1].after.append(piece)
        if self._left < self.most_piece:
            return []
        return [
            Step(step.before, step.after, any(piece.numel() >= self.most_piece for piece in step.after))
            for step in steps
        ]

    def _keep(self, piece: torch.Tensor, moment: int = 0) -> None:
        if piece.numel() <= self._left and len(self._moments if self._launching else self._without) < MOST_PIECES:
            self._left -= piece.numel()
            copy = torch.empty(piece.shape, dtype=torch.uint8).copy_(piece)
            if self._launching:
                self._moments.append((moment, copy))
            else:
                self._without.append(copy)

    def shares(self, outputs: Any) -> dict[Form, float]:
        """Share of `outputs` that was there, by form; outputs count by their number of elements."""
        return larger(find_outputs(outputs, self._without), self._before_kernels(outputs))

    def _before_kernels(self, outputs: Any) -> dict[Form, float]:
        """What stood before a launch, and had not been left by an earlier one. A first launch shows no more than the
        forward without kernels, so where that was made one alone is not looked at."""
        if self._ran_without and len({moment for moment, _ in self._moments if moment % 2 == 0}) < 2:
            return {}
        leaves = [leaf.detach().cpu() for leaf in tensors_of(outputs)]
        before, after = ([Search(leaf) for leaf in leaves] for _ in range(2))
        found: dict[Form, float] = {}
        for is_after, pieces in groupby(self._moments, key=lambda kept: kept[0] % 2):
            searches = after if is_after else before
            for _, piece in pieces:
                for search in searches:
                    search.look(piece)
                    if is_after:
                        search.look(piece[:_GPU_BLOCK])
            shares = weighted([(leaf, search.found()) for leaf, search in zip(leaves, searches, strict=True)])
            if not is_after:
                found = shares
            elif max(shares.values(), default=0.0) >= _BY_KERNELS:
                break
        return found


def _blocks() -> Iterator[tuple[int, int]]:
    """Address and size in bytes of all blocks of PyTorch's allocator, in use or freed."""
    for segment in torch.cuda.memory_snapshot():
        for block in segment["blocks"]:
            yield block["address"], block["size"]
