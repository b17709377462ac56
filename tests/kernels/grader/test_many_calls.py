"""Calls as anybody makes them, where another experiment raised."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dice.kernels.grader import later, many_calls
from dice.kernels.grader.candidate_run import CandidateRun
from dice.kernels.grader.later import experiment_later
from dice.kernels.grader.many_calls import experiment_many_calls
from dice.kernels.records.evidence import ExperimentResult
from dice.kernels.sandbox.replies import CandidateError, Facts
from dice.kernels.sandbox.session import CandidateRaised


def raised(status: str = "runtime_error") -> CandidateRaised:
    error = CandidateError(type="TypeError", text="no tensor", place="", exit=False, out_of_memory=None)
    return CandidateRaised(status, error, Facts())  # type: ignore[arg-type]


class Run:
    """A run whose candidate raises at some requests."""

    def __init__(self, **raising: CandidateRaised) -> None:
        self.evidence: Any = SimpleNamespace(launches={"k": 1}, experiments=[])
        self.record = SimpleNamespace(phase=lambda _: contextlib.nullcontext())
        self.reference = SimpleNamespace(model=lambda _: SimpleNamespace(state_dict=dict))
        self.last, self.place = SimpleNamespace(inputs=[]), SimpleNamespace(backend="cpu")
        self.inputs_change, self.weights_seed, self.code = False, 1, "x = 700"
        self.processes = 0
        self._raising = raising

    def send(self, *_: Any) -> None:
        """Nothing to send."""

    def ask(self, op: str, *_: Any, **__: Any) -> Any:
        if op in self._raising:
            raise self._raising[op]
        return SimpleNamespace(calls=100, numbers=1)

    def make_model(self, _: int) -> None:
        if "make_model" in self._raising:
            raise self._raising["make_model"]

    def draw_inputs(self, _: int) -> list[Any]:
        return []

    def end(self) -> None:
        """The process ends."""

    def revive(self) -> None:
        self.processes += 1


def asked(run: Run, experiment: Any = experiment_many_calls) -> list[tuple[str, str]]:
    experiment(cast(CandidateRun, run))
    return [(each.name, each.outcome) for each in run.evidence.experiments]


@pytest.mark.parametrize(
    ("raising", "found", "outcome"),
    [
        ({}, ["right", "right"], "right"),
        ({}, [None, None], "right"),
        ({}, ["stale"], "stale"),
        ({}, ["right", "error"], "error"),
        ({"repeat": raised()}, [], "error"),
        ({"repeat": raised("out_of_memory")}, ["right"], "right"),
        ({"make_model": raised()}, ["right"], "right"),
    ],
)
def test_what_comes_of_many_calls(
    monkeypatch: pytest.MonkeyPatch, raising: dict[str, CandidateRaised], found: list[Any], outcome: str
) -> None:
    results = iter(None if each is None else ExperimentResult(name="many_calls", outcome=each) for each in found)
    monkeypatch.setattr(many_calls, "follows", lambda *_: next(results))
    run = Run(**raising)
    assert asked(run) == [("many_calls", outcome)]
    assert run.processes == 1


def test_one_that_raises_when_it_is_set_ahead_is_only_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many_calls, "follows", lambda *_: None)
    run = Run(ahead=raised())
    assert asked(run, experiment_later) == [("many_calls", "right")]
    assert run.processes > 2, "another process goes on with what is left"


def test_one_that_is_right_ahead_is_not_called_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(later, "follows", lambda *_: None)
    run = Run()
    assert asked(run, experiment_later) == [("later", "right")]
    assert run.processes == 0
