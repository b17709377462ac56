"""The forwards of `dice.kernels.candidate.crossing` in the candidate's process, one after another."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from dice.kernels.candidate import extension_loader
from dice.kernels.candidate.answer_traces import MOST_BYTES
from dice.kernels.candidate.crossing import CrossedRun, Role, made_between, small_bytes

_LEAST_PIECE = 1 << 20
"""Bytes behind a pointer that are kept at least, where that is more than four times the inputs."""


class CrossedCalls:
    """What has been recorded."""

    def __init__(self) -> None:
        self._runs: dict[Role, CrossedRun] = {}

    def begin(
        self, role: Role, inputs: Any, weights: Sequence[torch.Tensor], share: float, places: int
    ) -> Callable[[], contextlib.AbstractContextManager[None]]:
        """Cross the inputs where the role asks for it. Returns a context for the forward. `share`, `places`: of the elements
        that come from the other inputs, and the seed that they are drawn with."""
        tensors = [leaf for leaf in tree_leaves(list(inputs)) if torch.is_tensor(leaf)]
        size = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
        run = CrossedRun(role, self._runs.get("base"), self._runs.get("other"), share, places, small_bytes(tensors))
        run.begin(inputs, weights)

        @contextlib.contextmanager
        def recorded() -> Iterator[None]:
            extension_loader.keep_arguments(max(_LEAST_PIECE, 4 * size), MOST_BYTES)
            try:
                with extension_loader.watched_launches(run.launched), run, extension_loader.without_interpreter_lock():
                    yield
            finally:
                extension_loader.keep_arguments(0, 0)
            self._runs[role] = run

        return recorded

    def made(self, roles: Sequence[Role]) -> int:
        """How many bytes that steps were led to differ from the base forward in all of `roles`."""
        return made_between(self._runs["base"], self._runs["again"], [self._runs[role] for role in roles])

    def forget(self) -> None:
        """Drop all."""
        self._runs.clear()
