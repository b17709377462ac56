"""The steps that a candidate takes for the same inputs, of one that stands in for a process."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dice.kernels.grader.candidate_run import CandidateRun
from dice.kernels.grader.same_steps import experiment_same_steps
from dice.kernels.records.evidence import ExperimentResult


class Counted:
    """A run whose calls take the steps of `draws`: a row for each draw of inputs, of steps here and there in the first call,
    and in each call of the rounds that follow."""

    def __init__(
        self, draws: list[list[tuple[int, int]]], backend: str = "cpu", kept: bool = True, variables: bool = False
    ) -> None:
        known = [ExperimentResult(name="kept_values", outcome="right")] if kept else []
        self.evidence: Any = SimpleNamespace(experiments=known)
        self.record = SimpleNamespace(phase=lambda _: contextlib.nullcontext())
        self.place = SimpleNamespace(backend=backend)
        self.builds = SimpleNamespace(keep_variables=lambda: variables)
        self.last, self.inputs_change = object(), False
        self._calls, self._taken = [steps for draw in draws for steps in draw], [70, 7]
        self.counting, self.called = False, 0

    @contextlib.contextmanager
    def counting_steps(self) -> Any:
        self.counting = True
        yield
        self.counting = False

    def draw_inputs(self, _: int) -> list[Any]:
        return []

    def send(self, *_: Any) -> None:
        """Nothing to send."""

    def ask(self, op: str, _: Any, calls: int = 0, **__: Any) -> Any:
        if op == "steps":
            return SimpleNamespace(taken=list(self._taken))
        assert op == "repeat"
        done = calls - self.called % 2  # the time ends sooner in each second round
        if calls == 4:
            self._call(done)
        return SimpleNamespace(calls=done)

    def forward(self, _: int, poison: int) -> None:
        self._call(1)

    def _call(self, calls: int) -> None:
        assert self.counting
        self._taken = [a + calls * b for a, b in zip(self._taken, self._calls[self.called], strict=True)]
        self.called += 1


A, B = (900, 100), (300, 100)
SAME = [A, A, A, A]
FOUND = [A, B, B, B]


@pytest.mark.parametrize(
    ("draws", "detail", "called"),
    [
        ([FOUND] * 3, "600 of 1,000 steps", 12),
        ([[A, A, B, B]] * 3, "600 of 1,000 steps", 12),  # two memories by turns
        ([[B, A, A, A]] * 3, "600 of 400 steps", 12),  # finding it takes more steps
        ([[A, (100, 900), (100, 900), (100, 900)]] * 3, "1,600 of 1,000 steps", 12),  # as many, but others
        ([[A, (889, 100), (889, 100), (889, 100)]] * 3, "11 of 1,000 steps", 12),
        ([SAME], "", 4),
        ([FOUND, SAME], "", 8),
        ([FOUND, FOUND, SAME], "", 12),
        ([[A, (890, 100), (890, 100), (890, 100)]], "", 4),
        ([[A, (800, 100), (700, 100), (600, 100)]], "", 4),  # not yet at rest
        ([[A, B, (500, 100), B]], "", 4),
    ],
)
def test_who_takes_another_way_for_inputs_that_he_knows_is_told(
    draws: list[list[tuple[int, int]]], detail: str, called: int
) -> None:
    run = Counted(draws)
    experiment_same_steps(cast(CandidateRun, run))
    found = run.evidence.experiments[-1]
    assert (found.name, found.outcome) == ("same_steps", "stale" if detail else "right")
    assert (found.detail, run.called) == (detail, called)


@pytest.mark.parametrize(
    ("backend", "kept", "variables", "asked"),
    [("cuda", True, True, False), ("cpu", True, False, True), ("cpu", False, False, False), ("cpu", False, True, True)],
)
def test_it_is_asked_on_the_cpu_where_something_may_outlive_a_call(
    backend: str, kept: bool, variables: bool, asked: bool
) -> None:
    run = Counted([SAME], backend, kept, variables)
    experiment_same_steps(cast(CandidateRun, run))
    assert run.called == (4 if asked else 0)
    assert any(one.name == "same_steps" for one in run.evidence.experiments) == asked


def test_a_process_that_says_it_made_no_calls_ends_no_grader(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Counted([SAME])
    ask = run.ask
    monkeypatch.setattr(
        run, "ask", lambda op, *a, **k: SimpleNamespace(calls=0) if op == "repeat" else ask(op, *a, **k)
    )
    experiment_same_steps(cast(CandidateRun, run))
    assert run.evidence.experiments[-1].name == "same_steps"
