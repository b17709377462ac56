"""Calls as anybody makes them, where another experiment raised."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dice.kernels.candidate.extension_call import load_inline
from dice.kernels.grader import later, many_calls
from dice.kernels.grader.builds import Builds
from dice.kernels.grader.candidate_run import CandidateRun
from dice.kernels.grader.later import experiment_later
from dice.kernels.grader.many_calls import experiment_many_calls
from dice.kernels.records.evidence import ExperimentResult
from dice.kernels.sandbox.replies import Advancing, CandidateError, Facts
from dice.kernels.sandbox.session import CandidateRaised


def raised(status: str = "runtime_error") -> CandidateRaised:
    error = CandidateError(type="TypeError", text="no tensor", place="", exit=False, out_of_memory=None)
    return CandidateRaised(status, error, Facts())  # pyright: ignore[reportArgumentType]


class Run:
    """A run whose candidate raises at some requests."""

    def __init__(self, **raising: CandidateRaised) -> None:
        self.evidence: Any = SimpleNamespace(launches={"k": 1}, experiments=[])
        self.steps: list[Any] = []
        self.record = SimpleNamespace(phase=self._phase)
        self.reference = SimpleNamespace(model=lambda _: SimpleNamespace(state_dict=dict))
        self.last, self.place = SimpleNamespace(inputs=[]), SimpleNamespace(backend="cpu")
        self.inputs_change, self.weights_seed, self.code = False, 1, "x = 700"
        self.processes = 0
        self.moved = {"numbers": 1, "moves": False}
        self.calls = 10_000
        self.builds = Builds.__new__(Builds)
        self.builds.requests = []
        self._raising = raising

    def _phase(self, name: str) -> Any:
        self.steps.append(name)
        return contextlib.nullcontext()

    def send(self, op: str, _: Any) -> None:
        self.steps.append(op)

    def ask(self, op: str, *_: Any, **details: Any) -> Any:
        self.steps.append((op, details))
        if op in self._raising:
            raise self._raising[op]
        made = min(self.calls, details.get("calls", 0))
        return Advancing(**self.moved) if op == "advancing" else SimpleNamespace(calls=made)

    def make_model(self, _: int) -> None:
        self.steps.append("model")
        if "make_model" in self._raising:
            raise self._raising["make_model"]

    def draw_inputs(self, _: int) -> list[Any]:
        return []

    def end(self) -> None:
        self.steps.append("end")

    def revive(self) -> None:
        self.steps.append("revive")
        self.processes += 1


def asked(run: Run, experiment: Any = experiment_many_calls) -> list[tuple[str, str]]:
    experiment(cast(CandidateRun, run))
    return [(each.name, each.outcome) for each in run.evidence.experiments]


@pytest.mark.parametrize(
    ("raising", "found", "outcome"),
    [
        ({}, [*("right",) * 5, "right"], "right"),
        ({}, [*(None,) * 5, None], "right"),
        ({}, ["stale"], "stale"),
        ({}, ["right", None, "wrong"], "wrong"),
        ({}, [*("right",) * 5, "error"], "error"),
        ({"repeat": raised()}, [], "error"),
        ({"repeat": raised("out_of_memory")}, ["right"], "right"),
        ({"make_model": raised()}, ["right"] * 5, "right"),
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


@pytest.mark.parametrize(("backend", "anew", "budget_s"), [("cpu", False, 4.0), ("cuda", True, 1.0)])
def test_the_calls_are_made_in_a_process_of_their_own(
    monkeypatch: pytest.MonkeyPatch, backend: str, anew: bool, budget_s: float
) -> None:
    run = Run()
    run.place.backend, run.inputs_change = backend, anew
    monkeypatch.setattr(many_calls, "follows", lambda _, name, __, op: run.steps.append((name, op)))
    experiment_many_calls(cast(CandidateRun, run))
    assert run.steps[:4] == ["experiments", "end", "revive", "inputs"]
    assert run.steps[-2:] == ["model", ("many_calls", "inputs")]
    repeats, looks = run.steps[4:-2:2], run.steps[5:-2:2]
    assert looks == [("many_calls", "refill")] * 5
    assert {(op, each["slot"], each["anew"]) for op, each in repeats} == {("repeat", 0, anew)}
    assert [sum(each["calls"] for _, each in repeats[: n + 1]) for n in range(5)] == [150, 500, 1000, 2000, 5000]
    assert sum(each["budget_s"] for _, each in repeats) == pytest.approx(budget_s)


def test_slow_calls_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run()
    run.calls = 200
    monkeypatch.setattr(many_calls, "follows", lambda _, name, __, op: run.steps.append((name, op)))
    experiment_many_calls(cast(CandidateRun, run))
    assert run.steps.count(("many_calls", "refill")) == 2, "after 150 calls and at the end"


@pytest.mark.parametrize(("last", "launches"), [(None, {"k": 1}), (SimpleNamespace(inputs=[]), {})])
def test_without_a_correct_call_or_a_kernel_there_is_nothing_to_ask(last: Any, launches: dict[str, int]) -> None:
    run = Run()
    run.last, run.evidence.launches = last, launches
    assert asked(run) == []
    assert run.steps == []


def test_what_raised_is_told_in_short() -> None:
    error = CandidateError(type="TypeError", text="no tensor" * 99, place="", exit=False, out_of_memory=None)
    run = Run(repeat=CandidateRaised("runtime_error", error, Facts()))
    asked(run)
    (result,) = run.evidence.experiments
    assert "no tensor" in result.detail
    assert len(result.detail) == 200


def test_one_that_raises_when_it_is_set_ahead_is_only_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many_calls, "follows", lambda *_: None)
    run = Run(ahead=raised())
    assert asked(run, experiment_later) == [("many_calls", "right")]
    assert run.processes > 2, "another process goes on with what is left"


@pytest.mark.parametrize(
    ("numbers", "moves", "backend", "source", "found"),
    [
        (0, False, "cpu", "__device__ unsigned walk;", []),
        (0, False, "cuda", "void f(float* y) { *y = 1.f; }", []),
        (0, True, "cpu", "", [("many_calls", "right")]),
        (0, False, "cuda", "__device__ unsigned walk;", [("many_calls", "right")]),
        (0, False, "cpu", "void f(void** p) { cudaMallocManaged(p, 4); }", [("many_calls", "right")]),
        (2, True, "cpu", "", [("later", "right"), ("many_calls", "right")]),
    ],
)
def test_what_cannot_be_set_ahead_is_called(
    monkeypatch: pytest.MonkeyPatch, numbers: int, moves: bool, backend: str, source: str, found: list[tuple[str, str]]
) -> None:
    for module in (later, many_calls):
        monkeypatch.setattr(module, "follows", lambda *_: None)
    run = Run()
    run.moved, run.place.backend = {"numbers": numbers, "moves": moves}, backend
    run.builds.requests.append(load_inline("e", "int f();", source))
    assert asked(run, experiment_later) == found


@pytest.mark.parametrize(("calls", "found"), [(39, []), (40, [("later", "right"), ("many_calls", "right")])])
def test_slow_calls_are_not_made_so_often(
    monkeypatch: pytest.MonkeyPatch, calls: int, found: list[tuple[str, str]]
) -> None:
    for module in (later, many_calls):
        monkeypatch.setattr(module, "follows", lambda *_: None)
    run = Run()
    run.calls, run.moved = calls, {"numbers": 1, "moves": True}
    assert asked(run, experiment_later) == found


def test_one_that_is_wrong_ahead_is_not_called_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(later, "follows", lambda *_: ExperimentResult(name="later", outcome="stale"))
    run = Run()
    run.moved = {"numbers": 1, "moves": True}
    assert asked(run, experiment_later) == [("later", "stale")]


def test_one_that_is_right_ahead_is_not_called_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(later, "follows", lambda *_: None)
    run = Run()
    assert asked(run, experiment_later) == [("later", "right")]
    assert run.processes == 0
