"""What the candidate counts up, looked at between its calls and set ahead (`dice.kernels.candidate.advancing`), the
clocks that it asks (`dice.kernels.candidate.clock_ahead`), the answers and the steps of its work that it keeps
(`dice.kernels.candidate.kept_answers`, `dice.kernels.candidate.kept_values`)."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import torch

from dice.kernels.candidate import extension_loader, probes
from dice.kernels.candidate.advancing import (
    Look,
    Number,
    Region,
    advancing,
    look_at,
    moves,
    set_ahead,
    static_memory,
)
from dice.kernels.candidate.copies_in_memory import copies_in_memory
from dice.kernels.candidate.kept_answers import Part, answers_of, held_tensors, overwrite_answers
from dice.kernels.candidate.kept_values import followers, overwrite
from dice.kernels.candidate.program import Program
from dice.kernels.sandbox.leaves import memory_of, place_of, tensors_of


class LaterCalls:
    """Answers the requests for it, and holds the last three looks, and what advances."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._looks: list[Look] = []
        self._advancing: list[tuple[Number, float]] = []
        self._answers: list[torch.Tensor] = []

    def do_look(self, spared: Iterable[str]) -> dict[str, Any]:
        """Look at all numbers that outlive a call. `spared`: names in the model's state that are left alone."""
        with self._program.accelerator.honest():
            self._looks = [*self._looks[-2:], self._look(spared)]
        return {}

    def _look(self, spared: Iterable[str], also: Iterable[torch.Tensor] = ()) -> Look:
        model, scratch = self._program.model, self._program.scratch
        own = {
            name: module
            for name, module in sys.modules.items()
            if (getattr(module, "__file__", None) or "").startswith(scratch)
        }
        state = model.state_dict()
        kept = {state[name].untyped_storage().data_ptr() for name in spared if torch.is_tensor(state.get(name))}
        roots = [model, *(module.__dict__ for module in own.values()), *also]
        return look_at(roots, set(own), kept, static_memory(extension_loader.loaded_paths()))

    def do_advancing(self, calls: int) -> dict[str, Any]:
        """How many numbers advance, and whether anything moves: between the last three looks there were one call and `calls`
        more."""
        with self._program.accelerator.honest():
            self._advancing = []
            if len(self._looks) < 3:
                return {"numbers": 0, "moves": False}
            first, second, third = self._looks
            self._advancing = advancing(first, second, third, calls)
            return {"numbers": len(self._advancing), "moves": moves(first, second, third)}

    def do_ahead(self, near: int, before: int, far: int) -> dict[str, Any]:
        """Set them ahead: to `before` calls below `near`, for those that come there; by `far` calls where `near` is 0."""
        with self._program.accelerator.honest():
            set_ahead(self._advancing, near, before, far)
        return {}

    def do_remember_answer(self) -> dict[str, Any]:
        """Remember the last answer, and all numbers that outlive a call, wherever a tensor of the process has them."""
        with self._program.accelerator.honest():
            self._answers = [answer.clone() for answer in answers_of(self._program.outputs)]
            self._looks = [self._look(self._program.model.state_dict(), held_tensors())]
        return {}

    def do_overwrite_answer(self, slot: int, part: Part) -> dict[str, Any]:
        """Overwrite the last answer where it is kept, but for what is an input or the model's state. It is the answer to
        other inputs than the one that is remembered."""
        program = self._program
        with program.accelerator.honest():
            own = [*tensors_of(list(program.inputs[slot])), *probes.state_of(program.model)]
            spared = {tensor.untyped_storage().data_ptr() for tensor in own if tensor.layout is torch.strided}
            earlier = self._looks[-1].regions
            ours = {one.copy.untyped_storage().data_ptr() for one in earlier.values()}
            look = self._look(program.model.state_dict(), held_tensors()).regions
            pieces = list[tuple[torch.Tensor, torch.Tensor]]()
            for key, region in look.items():
                if key not in spared | ours and region.copy.element_size() == 4:
                    pieces.append(_since(region, earlier.get(key)))
            known = [*own, *tensors_of(program.outputs), *self._answers]
            known += [memory for one in (*look.values(), *earlier.values()) for memory in (one.live(), one.copy)]
            for answer, before in zip(answers_of(program.outputs), self._answers, strict=False):
                if answer.dtype is torch.float32 and answer.is_contiguous() and answer.shape == before.shape:
                    pieces += copies_in_memory(answer, answer != before, map(memory_of, known))
            numbers, copies = overwrite_answers(program.outputs, self._answers, spared, pieces, part)
            self._answers, self._looks = [], []
        program.accelerator.settle()
        return {"numbers": numbers, "kept": copies}

    def do_overwrite_kept(self, slot: int, piece: int) -> dict[str, Any]:
        """Overwrite one piece of the memory that follows the inputs: others came before the first of the last three looks
        than before the other two. How many words are overwritten, and how many pieces there are."""
        with self._program.accelerator.honest():
            looks, self._looks = self._looks, []
            own = [*tensors_of(list(self._program.inputs[slot])), *probes.state_of(self._program.model)]
            found = followers(looks[0], looks[1], looks[2], {place_of(tensor) for tensor in own})
            numbers = overwrite(*found[piece]) if piece < len(found) else 0
        self._program.accelerator.settle()
        return {"numbers": numbers, "kept": len(found)}

    def do_clocks(self, ahead: int) -> dict[str, Any]:
        """Set the clocks ahead by seconds, for the candidate's code, and leave them so."""
        with self._program.accelerator.honest():
            return {"ways": extension_loader.set_clocks_ahead(ahead)}


def _since(region: Region, earlier: Region | None) -> tuple[torch.Tensor, torch.Tensor]:
    """A piece of memory as words, and what stood there before: in new memory, nothing that stands there now."""
    live = region.live().view(torch.int32)
    if earlier is None or earlier.copy.nbytes != live.nbytes:
        return live, ~live
    return live, earlier.copy.view(torch.int32).to(live.device)
