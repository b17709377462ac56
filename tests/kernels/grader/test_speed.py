"""Input sets for timing: as many as asked for where they are small, no more than needed where they are gigabytes."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from dice.kernels.grader.speed import _Stopwatch
from dice.kernels.sandbox.replies import Done


class Run:
    """What `_Stopwatch` asks of a candidate's run, counted."""

    inputs_change = False

    def __init__(self, input_bytes: int) -> None:
        self.reference = SimpleNamespace(input_bytes=input_bytes)
        self.record = SimpleNamespace(phase=lambda name: contextlib.nullcontext())
        self.drawn = 0
        self.sent: list[int] = []

    def gpu(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def ask(self, op: str, kind: type[Done]) -> None:
        assert op == "forget"

    def draw_inputs(self, seed: int) -> list[Any]:
        self.drawn += 1
        return [torch.tensor([float(seed)])]

    def send(self, op: str, inputs: list[Any], slot: int) -> None:
        assert op == "inputs"
        self.sent.append(slot)


@pytest.mark.parametrize(
    ("input_bytes", "wanted", "sets"), [(4, 5, 5), (1 << 29, 5, 4), (6 << 30, 5, 2), (6 << 30, 1, 1), (1 << 30, 2, 2)]
)
def test_no_input_is_drawn_in_vain(input_bytes: int, wanted: int, sets: int) -> None:
    watch, run = object.__new__(_Stopwatch), Run(input_bytes)
    watch.run, watch.sets, watch.drawn, watch.device = run, [], [], torch.device("cpu")  # type: ignore[assignment]
    assert watch.provide_inputs(wanted) == sets == run.drawn == len(watch.sets)
    assert run.sent == list(range(sets))
    assert len({float(inputs[0]) for inputs in watch.sets}) == sets


class Doubling(Run):
    """A candidate that doubles its input in place, as the problem does, or sets it to zero."""

    inputs_change = True

    def __init__(self, factor: float) -> None:
        super().__init__(4)
        self.place = SimpleNamespace(device=torch.device("cpu"))
        self.factor, self.slots, self.out = factor, {}, torch.zeros(1)

    def send(self, op: str, inputs: list[Any], slot: int) -> None:
        self.slots[slot] = [tensor.clone() for tensor in inputs]

    def ask(self, op: str, kind: type, **request: Any) -> Any:
        if op == "go":
            for place in (request["before"], request["slot"]):
                self.out = self.slots[place][0].mul_(self.factor)
        return SimpleNamespace(times=None)

    def fetch(self, offer: Any, like: Any) -> torch.Tensor:
        return self.out


@pytest.mark.parametrize(("factor", "wrong"), [(2.0, 0), (3.0, 5)])
def test_a_problem_that_overwrites_its_inputs_gets_them_anew(factor: float, wrong: int) -> None:
    watch, run = object.__new__(_Stopwatch), Doubling(factor)
    watch.run, watch.sets, watch.drawn, watch.device = run, [], [], torch.device("cpu")  # type: ignore[assignment]
    watch.checked = watch.wrong = watch.output_bytes = watch.flush_bytes = 0
    assert watch.provide_inputs(2) == 2
    for call in range(5):
        watch.candidate(call % 2, (call + 1) % 2, seed=call, fills=0)
        watch.check(lambda x: x.mul_(2.0), call % 2, seed=call)  # type: ignore[arg-type]
    assert (watch.checked, watch.wrong) == (5, wrong)
