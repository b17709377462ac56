"""Calls of the candidate's model without a probe, a recorder or poison: timed ones, and many one after another."""

from __future__ import annotations

import copy
import dataclasses
import time
from typing import Any

import torch

from dice.kernels.candidate.program import Program
from dice.kernels.candidate.refill import refilled
from dice.kernels.sandbox.seeding import seed_generators


class BareCalls:
    """Answers the requests for them."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def do_go(self, slot: int, before: int, seed: int, flush_bytes: int, fills: int) -> dict[str, Any]:
        """One timed call, right after an untimed one on another input set."""
        program, timer = self._program, self._program.accelerator.timer
        assert timer is not None
        model, sets = program.model, program.inputs
        program.outputs = None
        with torch.no_grad(), program.trail.phase("timing"):
            model(*sets[before])
            timer.prepare(flush_bytes)
            seed_generators(seed, program.accelerator.device)
            program.outputs, times = timer.time(lambda: model(*sets[slot]), fills)
        program.accelerator.settle()
        return {"times": dataclasses.asdict(times)}

    def do_series(self, slot: int, calls: int, seed: int) -> dict[str, Any]:
        """Timed calls one after another on one input set, without an order for each. The last one's outputs are kept."""
        program, timer = self._program, self._program.accelerator.timer
        assert timer is not None
        model, inputs, times = program.model, program.inputs[slot], []
        with torch.no_grad(), program.trail.phase("timing"):
            for index in range(calls):
                program.outputs = None
                if index == calls - 1:
                    seed_generators(seed, program.accelerator.device)
                program.outputs, found = timer.time(lambda: model(*inputs))
                times.append(dataclasses.asdict(found))
        program.accelerator.settle()
        return {"times": times}

    def do_repeat(self, slot: int, calls: int, budget_s: float, anew: bool) -> dict[str, Any]:
        """Calls on one input set, up to `calls` of them or `budget_s`; how many there were. `anew`: each call gets the
        values that the first one got, where the problem overwrites its inputs."""
        program = self._program
        begun, done = time.monotonic(), 0
        kept = copy.deepcopy(program.inputs[slot]) if anew else None
        while done < calls and time.monotonic() - begun < budget_s:
            if kept is not None:
                refilled(program.inputs[slot], kept)
            with torch.no_grad(), program.trail.phase("forward"):
                program.model(*program.inputs[slot])
                program.accelerator.settle()  # or a GPU would be given hours of work in milliseconds
            done += 1
        return {"calls": done}
