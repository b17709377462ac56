"""What the candidate counts up, looked at between its calls and set ahead (`dice.kernels.candidate.advancing`)."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import torch

from dice.kernels.candidate import extension_loader
from dice.kernels.candidate.advancing import Look, Number, advancing, look_at, static_memory


class LaterCalls:
    """The last three looks, and what advances. `scratch`: folder of the candidate's files."""

    def __init__(self, scratch: str) -> None:
        self._scratch = scratch
        self._looks: list[Look] = []
        self._advancing: list[tuple[Number, float]] = []

    def look(self, model: torch.nn.Module, spared: Iterable[str]) -> None:
        """Look at all numbers that outlive a call. `spared`: names in the model's state that are left alone."""
        own = {
            name: module
            for name, module in sys.modules.items()
            if (getattr(module, "__file__", None) or "").startswith(self._scratch)
        }
        state = model.state_dict()
        kept = {state[name].untyped_storage().data_ptr() for name in spared if torch.is_tensor(state.get(name))}
        roots = [model, *(module.__dict__ for module in own.values())]
        memory = static_memory(extension_loader.loaded_paths())
        self._looks = [*self._looks[-2:], look_at(roots, set(own), kept, memory)]

    def find(self, calls: int) -> int:
        """How many numbers advance: between the last three looks there were one call and `calls` more."""
        looks = self._looks
        self._advancing = advancing(looks[0], looks[1], looks[2], calls) if len(looks) == 3 else []
        return len(self._advancing)

    def ahead(self, near: int, before: int, far: int) -> None:
        """Set them ahead: to `before` calls below `near`, for those that come there; by `far` calls where `near` is 0."""
        for number, step in self._advancing:
            steps = int((near - number.value) // step) - before if near else far
            if steps > 0:
                number.ahead(steps, step)
