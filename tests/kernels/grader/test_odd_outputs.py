"""Outputs of types that PyTorch hardly knows: what a candidate returns never raises in the grader."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from dice.kernels.compare import Comparison
from dice.kernels.grader.trials import look_for_races
from dice.kernels.grader.without_kernels import _empty, _nearly_equal
from dice.kernels.sandbox.values import _DTYPES


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("dtype", _DTYPES.values(), ids=_DTYPES)
def test_outputs_of_every_type_are_compared_and_looked_through(dtype: torch.dtype) -> None:
    output = torch.zeros(3 * dtype.itemsize, dtype=torch.uint8).view(dtype)
    assert _nearly_equal(output, output.clone())
    assert not _empty(output)


class Run:
    """A candidate that was wrong once, and returns `output` from now on."""

    def __init__(self, output: Any) -> None:
        self.last = SimpleNamespace(inputs=[], forward_seed=0, expected=torch.ones(2))
        self.place = SimpleNamespace(judging=SimpleNamespace(explain=False))
        self.evidence = SimpleNamespace(extensions=["e"])
        self.record = SimpleNamespace(
            comparisons={"paper": Comparison("wrong_value")}, phase=self._phase, notes=[], race=None, orders_tried=None
        )
        self.output, self.turns = output, 0

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        yield

    def take_turns(self, turn: Any) -> None:
        self.turns, self.turn = self.turns + 1, turn

    def send(self, op: str, inputs: list[Any]) -> None: ...

    def forward(self, seed: int) -> Any:
        return SimpleNamespace(outline=SimpleNamespace(value=self.output))

    def fetch(self, offer: Any, like: Any) -> Any:
        return offer.outline.value

    def launches(self) -> dict[str, int]:
        return {"k": 1}


@pytest.mark.parametrize("output", [1j, torch.ones(2, dtype=torch.complex64), None])
def test_a_race_is_looked_for_only_among_outputs_that_can_be_compared(output: Any) -> None:
    run: Any = Run(output)
    look_for_races(run)
    assert run.turns == 2, "one try, and the order of before"
    assert run.record.race is None


def test_a_race_shows_in_outputs_that_differ() -> None:
    run: Any = Run(torch.ones(2))
    run.fetch = lambda offer, like: torch.full((2,), float(run.turn.order))
    look_for_races(run)
    assert run.record.race is not None
