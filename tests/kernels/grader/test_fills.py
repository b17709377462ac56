"""Forwards whose fresh memory is not NaN, of a candidate that stands in for a process."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dice.kernels.candidate.noise import LEFT_OVER
from dice.kernels.grader import fills
from dice.kernels.grader.candidate_run import NAN_BYTE, CandidateRun
from dice.kernels.grader.fills import experiment_fills
from dice.kernels.records.evidence import ExperimentResult, OpUse

_WORK = {"aten::relu": OpUse(count=1, elements=100)}


class Asked:
    """A run whose candidate launches what `launches` says, by what new memory holds."""

    def __init__(self, launches: dict[int, dict[str, int] | None]) -> None:
        self.evidence: Any = SimpleNamespace(launches={"k": 1}, experiments=[], candidate_ops=None)
        self.record = SimpleNamespace(phase=lambda _: contextlib.nullcontext())
        self.last = SimpleNamespace(inputs=[], forward_seed=0)
        self.inputs_change = False
        self._by_fill, self._fill = launches, NAN_BYTE

    def send(self, *_: Any) -> None:
        """Nothing to send."""

    def ask(self, *_: Any, **__: Any) -> None:
        """Nothing to ask."""

    def draw_inputs(self, _: int) -> list[Any]:
        return []

    def forward(self, _: int, *, watch: bool, poison: int) -> Any:
        self._fill = poison
        return SimpleNamespace(facts=SimpleNamespace(operators=_WORK if watch else {}))

    def launches(self) -> dict[str, int] | None:
        return self._by_fill[self._fill]


@pytest.mark.parametrize(
    ("launches", "outcome"),
    [
        ({NAN_BYTE: {"k": 2}, LEFT_OVER: {"k": 2}, 0: {"k": 1}}, "right"),
        ({NAN_BYTE: {"k": 1}, LEFT_OVER: {}, 0: {"k": 1}}, "idle"),
        ({NAN_BYTE: {"k": 1, "l": 1}, LEFT_OVER: {"k": 1, "l": 1}, 0: {"k": 3}}, "stale"),
        ({NAN_BYTE: {"k": 1}, LEFT_OVER: None, 0: {"k": 1}}, None),
    ],
    ids=["the same kernels", "none", "fewer", "not counted"],
)
def test_kernels_that_run_for_nan_alone(
    monkeypatch: pytest.MonkeyPatch, launches: dict[int, dict[str, int] | None], outcome: str | None
) -> None:
    monkeypatch.setattr(fills, "follows", lambda *_: None)
    run = Asked(launches)
    experiment_fills(cast(CandidateRun, run))
    assert [(one.name, one.outcome) for one in run.evidence.experiments] == [
        ("other_fill_again", each) for each in [outcome] if each
    ]
    assert run.evidence.candidate_ops == _WORK, "the busier of what was recorded"


def test_a_stale_answer_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found = ExperimentResult(name="other_fill", outcome="stale")
    monkeypatch.setattr(fills, "follows", lambda *_: found)
    run = Asked({})
    experiment_fills(cast(CandidateRun, run))
    assert run.evidence.experiments == [found]
