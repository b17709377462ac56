"""Clocks that are set ahead, of a candidate that stands in for a process."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dice.kernels.grader import clocks
from dice.kernels.grader.candidate_run import CandidateRun
from dice.kernels.grader.clocks import experiment_clocks
from dice.kernels.records.evidence import ExperimentOutcome, ExperimentResult


class Asked:
    """A run whose candidate changes when its clock is `late` seconds ahead: its answer is as `outcome` says."""

    def __init__(self, late: float, outcome: ExperimentOutcome, ways: int = 5) -> None:
        self.evidence: Any = SimpleNamespace(launches={"k": 1}, experiments=[], candidate_ops=None)
        self.record = SimpleNamespace(phase=lambda _: contextlib.nullcontext())
        self.last = SimpleNamespace(inputs=[], forward_seed=0)
        self.inputs_change, self.weights_seed, self.ahead = False, 5, 0
        self._late, self._ways = late, ways
        self._outcome: ExperimentOutcome = outcome

    def make_model(self, _: int) -> None:
        """Nothing to make."""

    def send(self, *_: Any) -> None:
        """Nothing to send."""

    def ask(self, op: str, _: Any, **how: Any) -> Any:
        self.ahead = how.get("ahead", self.ahead)
        return SimpleNamespace(ways=self._ways)

    def draw_inputs(self, _: int) -> list[Any]:
        return []

    def forward(self, _: int, *, watch: bool) -> Any:
        return SimpleNamespace(facts=SimpleNamespace(operators={}))

    def is_idle(self) -> bool:
        return self._outcome == "idle" and self.ahead >= self._late

    def followed(self, *_: Any) -> ExperimentResult:
        """Of new inputs."""
        late = self.ahead >= self._late and self._outcome != "idle"
        return ExperimentResult(name="clock_ahead", outcome=self._outcome if late else "right")


@pytest.mark.parametrize(
    ("late", "outcome", "when"),
    [(3600, "stale", "70 minutes"), (1200, "wrong", "25 minutes"), (86400, "idle", "57600 minutes")],
)
def test_what_comes_late_is_told(
    monkeypatch: pytest.MonkeyPatch, late: float, outcome: ExperimentOutcome, when: str
) -> None:
    monkeypatch.setattr(clocks, "follows", Asked.followed)
    run = Asked(late, outcome)
    experiment_clocks(cast(CandidateRun, run))
    assert [(one.outcome, one.detail.split(":")[0]) for one in run.evidence.experiments] == [(outcome, f"after {when}")]


def test_who_does_the_same_is_right_and_who_cannot_be_asked_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clocks, "follows", Asked.followed)
    for ways, expected in ((5, ["right"]), (0, [])):
        run = Asked(float("inf"), "stale", ways)
        experiment_clocks(cast(CandidateRun, run))
        assert [one.outcome for one in run.evidence.experiments] == expected
