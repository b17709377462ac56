"""The last answer is overwritten, of a candidate that stands in for a process."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from dice.kernels.candidate.kept_answers import Part
from dice.kernels.candidate.noise import LAST_ANSWER
from dice.kernels.grader import kept_answers
from dice.kernels.grader.candidate_run import NAN_BYTE, CandidateRun
from dice.kernels.grader.kept_answers import experiment_kept_answers, experiment_kept_values, experiment_left_answer
from dice.kernels.grader.reference import Trial


class Asked:
    """A run whose candidate is wrong after an answer was overwritten, if it was by one of `parts`."""

    def __init__(self, parts: set[Part], numbers: int = 9, kept: int = 5) -> None:
        self.evidence: Any = SimpleNamespace(launches={"k": 1}, experiments=[])
        self.record = SimpleNamespace(phase=lambda _: contextlib.nullcontext())
        self.last, self.weights_seed, self.inputs_change = object(), 5, False
        self._parts, self._numbers, self._kept, self._spoilt = parts, numbers, kept, False
        self.asked: list[Part] = []

    def make_model(self, _: int) -> None:
        """Nothing to make."""

    def send(self, op: str, _: Any) -> None:
        if op == "inputs":
            self._spoilt = False

    def ask(self, op: str, _: Any, **how: Any) -> Any:
        self._spoilt = how.get("part") in self._parts
        self.asked += [how["part"]] if "part" in how else []
        return SimpleNamespace(numbers=self._numbers, kept=self._kept)

    def forward(self, _: int, poison: int = NAN_BYTE) -> None:
        """Nothing to do."""

    def fetch(self, _: Any, expected: torch.Tensor) -> torch.Tensor:
        return expected * float("nan") if self._spoilt else expected


def trials_of_ones(monkeypatch: pytest.MonkeyPatch, again: float) -> None:
    """Ones are right in every trial. `again`: what the reference gives when it is asked once more."""
    monkeypatch.setattr(kept_answers, "new_trial", lambda _: Trial([], 0, torch.ones(4)))
    monkeypatch.setattr(kept_answers, "expected_outputs", lambda *_: torch.full((4,), again))
    monkeypatch.setattr(
        kept_answers, "compare", lambda _, trial, actual, __: SimpleNamespace(ok=trial.expected.equal(actual))
    )


@pytest.mark.parametrize(
    ("parts", "numbers", "again", "outcomes"),
    [
        (set(), 9, 1.0, ["right"]),
        ({"none"}, 9, 1.0, ["stale"]),
        ({3}, 9, 1.0, ["stale"]),
        ({4}, 9, 1.0, ["right"]),
        ({"all"}, 0, 1.0, []),
        ({"all"}, 9, 2.0, []),
    ],
    ids=[
        "computes",
        "kept what it returned",
        "kept a copy",
        "kept it among many",
        "nothing there",
        "the reference remembers",
    ],
)
def test_who_gives_a_kept_answer_is_told(
    monkeypatch: pytest.MonkeyPatch, parts: set[Part], numbers: int, again: float, outcomes: list[str]
) -> None:
    trials_of_ones(monkeypatch, again)
    run = Asked(parts, numbers)
    experiment_kept_answers(cast(CandidateRun, run))
    assert [(one.name, one.outcome) for one in run.evidence.experiments] == [("kept_answer", one) for one in outcomes]


def test_parts_of_what_is_kept_are_asked_only_where_something_is(monkeypatch: pytest.MonkeyPatch) -> None:
    trials_of_ones(monkeypatch, 1.0)
    asked = {}
    for kept in (0, 1, 2, 9):
        run = Asked(set(), kept=kept)
        experiment_kept_answers(cast(CandidateRun, run))
        asked[kept] = run.asked
    both: list[Part] = ["none", "all"]
    assert asked == {0: ["none"], 1: both, 2: [*both, 0, 1], 9: [*both, 0, 1, 2, 3]}


class Keeps(Asked):
    """A run whose candidate has `pieces` that follow its inputs, and is wrong once one of those in `read` is overwritten."""

    def __init__(self, read: set[int], pieces: int, numbers: int = 20) -> None:
        super().__init__(set())
        self._read, self._pieces, self._overwritten = read, pieces, numbers
        self.reference: Any = SimpleNamespace(model=lambda _: torch.nn.Linear(2, 2))
        self.pieces: list[int] = []

    def make_model(self, _: int) -> None:
        self._spoilt = False

    def send(self, op: str, _: Any) -> None:
        """The inputs change nothing here."""

    def ask(self, op: str, _: Any, **how: Any) -> Any:
        if op == "overwrite_kept":
            self.pieces.append(how["piece"])
            self._spoilt = how["piece"] in self._read and self._overwritten > 0
        return SimpleNamespace(numbers=self._overwritten if self._pieces else 0, kept=self._pieces)


@pytest.mark.parametrize(
    ("read", "pieces", "again", "outcomes", "asked"),
    [
        (set(), 0, 1.0, [], [0]),
        (set(), 3, 1.0, ["right"], [0, 1, 2]),
        ({1}, 3, 1.0, ["stale"], [0, 1, 1]),
        ({11}, 20, 1.0, ["stale"], [*range(12), 11]),
        ({12}, 20, 1.0, ["right"], [*range(12)]),
        ({0}, 1, 2.0, [], []),
    ],
    ids=["keeps nothing", "writes anew", "reads one", "the last that is asked", "beyond", "the reference remembers"],
)
def test_who_goes_on_from_what_it_kept_is_told(
    monkeypatch: pytest.MonkeyPatch, read: set[int], pieces: int, again: float, outcomes: list[str], asked: list[int]
) -> None:
    trials_of_ones(monkeypatch, again)
    run = Keeps(read, pieces)
    experiment_kept_values(cast(CandidateRun, run))
    assert [(one.name, one.outcome) for one in run.evidence.experiments] == [("kept_values", one) for one in outcomes]
    assert run.pieces == asked


class Trusts(Asked):
    """A run whose candidate is wrong from its `wrong`-th call on new memory with the last answer; 0: without it, too."""

    def __init__(self, wrong: int) -> None:
        super().__init__(set())
        self.left, self._wrong = 0, wrong

    def forward(self, _: int, poison: int = NAN_BYTE) -> None:
        self.left += poison == LAST_ANSWER
        self._spoilt = self.left >= self._wrong and (poison == LAST_ANSWER or not self._wrong)


@pytest.mark.parametrize(
    ("wrong", "again", "outcomes", "calls"),
    [
        (9, 1.0, ["right"], 3),
        (1, 1.0, ["stale"], 2),
        (3, 1.0, ["stale"], 4),
        (4, 1.0, ["right"], 3),
        (0, 1.0, ["stale"], 0),
        (1, 2.0, [], 0),
    ],
    ids=["writes all", "trusts", "was given other memory at first", "later", "trusts any", "the reference remembers"],
)
def test_who_trusts_new_memory_is_told(
    monkeypatch: pytest.MonkeyPatch, wrong: int, again: float, outcomes: list[str], calls: int
) -> None:
    trials_of_ones(monkeypatch, again)
    run = Trusts(wrong)
    experiment_left_answer(cast(CandidateRun, run))
    assert [(one.name, one.outcome) for one in run.evidence.experiments] == [("left_answer", one) for one in outcomes]
    assert run.left == calls
