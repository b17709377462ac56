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
    watch.run, watch.sets, watch.device = run, [], torch.device("cpu")  # type: ignore[assignment]
    assert watch.provide_inputs(wanted) == sets == run.drawn == len(watch.sets)
    assert run.sent == list(range(sets))
    assert len({float(inputs[0]) for inputs in watch.sets}) == sets
