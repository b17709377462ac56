"""A call in inference mode with views of larger memory, of a candidate that stands in for a process."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from dice.kernels.grader import guises
from dice.kernels.grader.candidate_run import CandidateRun
from dice.kernels.grader.guises import experiment_guises
from dice.kernels.grader.reference import Trial


class Asked:
    """A run whose candidate gives `outputs`, one after the other, and runs no kernel where `idle` says so."""

    def __init__(self, outputs: list[float], idle: list[bool], launched: bool = True) -> None:
        self.evidence = SimpleNamespace(launches={"k": 1} if launched else {}, experiments=[])
        self.record = SimpleNamespace(phase=lambda _: contextlib.nullcontext())
        self.last, self.weights_seed = object(), 5
        self.requests: list[Any] = []
        self._outputs, self._idle = outputs, idle
        self._drawn = 0

    def make_model(self, seed: int) -> None:
        self.requests.append(("model", seed))

    def drawn(self) -> Trial:
        """The first trial has twos for its output, the second threes."""
        self._drawn += 1
        return Trial([self._drawn], 0, torch.full((4,), 1.0 + self._drawn))

    def send(self, op: str, inputs: list[Any], *, within: bool = False) -> None:
        self.requests.append((op, inputs, within))

    def forward(self, _: int, *, inference: bool = False) -> bool:
        self.requests.append(("forward", inference))
        return inference

    def fetch(self, _: Any, __: Any) -> torch.Tensor:
        return torch.full((4,), self._outputs.pop(0))

    def is_idle(self) -> bool:
        return self._idle.pop(0)


@pytest.mark.parametrize(
    ("outputs", "idle", "outcomes"),
    [
        ([2.0, 3.0], [False, False], ["right"]),
        ([2.0, 3.0], [True, True], ["idle"]),
        ([2.0, 0.0], [True], ["idle"]),
        ([2.0, 2.0], [True], ["stale"]),
        ([0.0, 2.0], [], ["stale"]),
        ([0.0, 0.0], [], []),
    ],
    ids=["launches", "launches nothing", "kept", "kept and stale", "stale", "is wrong"],
)
def test_a_right_answer_without_a_kernel_is_told_and_a_stale_one(
    monkeypatch: pytest.MonkeyPatch, outputs: list[float], idle: list[bool], outcomes: list[str]
) -> None:
    monkeypatch.setattr(guises, "new_trial", Asked.drawn)
    monkeypatch.setattr(
        guises, "compare", lambda _, trial, actual, __: SimpleNamespace(ok=trial.expected.equal(actual))
    )
    run = Asked(outputs, idle)
    experiment_guises(cast(CandidateRun, run))
    assert run.requests == [
        ("model", 5),
        ("inputs", [1], False),
        ("forward", False),
        ("inputs", [1], True),
        ("forward", True),
        ("inputs", [2], True),
        ("forward", True),
    ]
    assert [(one.name, one.outcome) for one in run.evidence.experiments] == [("other_guise", each) for each in outcomes]


def test_who_never_launched_a_kernel_is_not_asked() -> None:
    run = Asked([], [], launched=False)
    experiment_guises(cast(CandidateRun, run))
    assert run.requests == []
