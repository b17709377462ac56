"""The forwards of `dice.kernels.candidate.crossing` in the candidate's process, one after another."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from dice.kernels.candidate import extension_loader, probes
from dice.kernels.candidate.answer_traces import MOST_BYTES
from dice.kernels.candidate.crossing import CrossedRun, Role, made_between, small_bytes
from dice.kernels.candidate.program import Program
from dice.kernels.sandbox.leaves import tensors_of
from dice.kernels.sandbox.linux import perturbed_malloc
from dice.kernels.sandbox.seeding import seed_generators

_POISON = 0xFF
"""Byte of new memory."""
_LEAST_PIECE = 1 << 20
"""Bytes behind a pointer that are kept at least, where that is more than four times the inputs."""


class CrossedCalls:
    """Answers the requests for them, and holds what has been recorded."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._runs: dict[Role, CrossedRun] = {}

    def do_cross(self, slot: int, seed: int, role: Role, share: float, places: int) -> dict[str, Any]:
        """A forward with kernels, crossed where the role asks for it. `share`, `places`: of the elements that come from the
        other inputs, and the seed that they are drawn with."""
        program = self._program
        inputs = program.inputs[slot]
        with program.accelerator.honest():
            tensors = tensors_of(list(inputs))
            size = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
            run = CrossedRun(role, self._runs.get("base"), self._runs.get("other"), share, places, small_bytes(tensors))
            run.begin(inputs, probes.state_of(program.model))
        program.outputs = None
        seed_generators(seed, program.accelerator.device)
        recorded = _recorded(run, max(_LEAST_PIECE, 4 * size))
        with perturbed_malloc(_POISON), torch.no_grad(), program.trail.phase("forward"), recorded:
            output = program.model(*inputs)
            program.accelerator.settle()
        with program.accelerator.honest():
            run.returned(output)
            if role == "again" and role in self._runs:
                run.add_variation(self._runs["base"], self._runs[role])
        self._runs[role] = run
        return {}

    def do_crossed(self, roles: Sequence[Role]) -> dict[str, Any]:
        """How many bytes that steps were led to differ from the base forward in all of `roles`."""
        runs = self._runs
        with self._program.accelerator.honest():
            return {"bytes": made_between(runs["base"], runs["again"], [runs[role] for role in roles])}

    def do_uncross(self) -> dict[str, Any]:
        """Drop all."""
        self._runs.clear()
        return {}


@contextlib.contextmanager
def _recorded(run: CrossedRun, piece_bytes: int) -> Iterator[None]:
    """Record the steps of the block. piece_bytes: kept of what lies behind a pointer, at most."""
    extension_loader.keep_arguments(piece_bytes, MOST_BYTES)
    try:
        with extension_loader.watched_launches(run.launched), run, extension_loader.without_interpreter_lock():
            yield
    finally:
        extension_loader.keep_arguments(0, 0)
