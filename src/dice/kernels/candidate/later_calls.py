"""What the candidate counts up, looked at between its calls and set ahead (`dice.kernels.candidate.advancing`), and the
clocks that it asks (`dice.kernels.candidate.clock_ahead`)."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import torch

from dice.kernels.candidate import extension_loader
from dice.kernels.candidate.advancing import Look, Number, advancing, look_at, static_memory
from dice.kernels.candidate.program import Program


class LaterCalls:
    """Answers the requests for it, and holds the last three looks, and what advances."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._looks: list[Look] = []
        self._advancing: list[tuple[Number, float]] = []

    def do_look(self, spared: Iterable[str]) -> dict[str, Any]:
        """Look at all numbers that outlive a call. `spared`: names in the model's state that are left alone."""
        with self._program.accelerator.honest():
            self._looks = [*self._looks[-2:], self._look(spared)]
        return {}

    def _look(self, spared: Iterable[str]) -> Look:
        model, scratch = self._program.model, self._program.scratch
        own = {
            name: module
            for name, module in sys.modules.items()
            if (getattr(module, "__file__", None) or "").startswith(scratch)
        }
        state = model.state_dict()
        kept = {state[name].untyped_storage().data_ptr() for name in spared if torch.is_tensor(state.get(name))}
        roots = [model, *(module.__dict__ for module in own.values())]
        return look_at(roots, set(own), kept, static_memory(extension_loader.loaded_paths()))

    def do_advancing(self, calls: int) -> dict[str, Any]:
        """How many numbers advance: between the last three looks there were one call and `calls` more."""
        looks = self._looks
        with self._program.accelerator.honest():
            self._advancing = advancing(looks[0], looks[1], looks[2], calls) if len(looks) == 3 else []
        return {"numbers": len(self._advancing)}

    def do_ahead(self, near: int, before: int, far: int) -> dict[str, Any]:
        """Set them ahead: to `before` calls below `near`, for those that come there; by `far` calls where `near` is 0."""
        with self._program.accelerator.honest():
            for number, step in self._advancing:
                steps = int((near - number.value) // step) - before if near else far
                if steps > 0:
                    number.ahead(steps, step)
        return {}

    def do_clocks(self, ahead: int) -> dict[str, Any]:
        """Set the clocks ahead by seconds, for the candidate's code, and leave them so."""
        with self._program.accelerator.honest():
            return {"ways": extension_loader.set_clocks_ahead(ahead)}
