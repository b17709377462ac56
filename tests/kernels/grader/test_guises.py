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


class Asked:
    """A run whose candidate gives `output` and runs `launches` kernels in such a call."""

    def __init__(self, output: torch.Tensor, idle: bool, launched: bool = True) -> None:
        self.evidence = SimpleNamespace(launches={"k": 1} if launched else {}, probes=[])
        self.record = SimpleNamespace(phase=lambda _: contextlib.nullcontext())
        self.last, self.weights_seed = object(), 5
        self.requests: list[Any] = []
        self._output, self._idle = output, idle

    def make_model(self, seed: int) -> None:
        self.requests.append(("model", seed))

    def draw_inputs(self, _: int) -> list[Any]:
        return [torch.ones(4)]

    def send(self, op: str, _: list[Any], *, within: bool) -> None:
        self.requests.append((op, within))

    def forward(self, _: int, *, inference: bool) -> None:
        self.requests.append(("forward", inference))

    def fetch(self, _: Any, __: Any) -> torch.Tensor:
        return self._output

    def is_idle(self) -> bool:
        return self._idle


@pytest.mark.parametrize(
    ("output", "idle", "outcomes"),
    [
        (torch.full((4,), 2.0), False, ["right"]),
        (torch.full((4,), 2.0), True, ["idle"]),
        (torch.zeros(4), True, []),
    ],
    ids=["launches", "launches nothing", "is wrong"],
)
def test_a_right_answer_without_a_kernel_is_told(
    monkeypatch: pytest.MonkeyPatch, output: torch.Tensor, idle: bool, outcomes: list[str]
) -> None:
    monkeypatch.setattr(guises, "expected_outputs", lambda *_: torch.full((4,), 2.0))
    monkeypatch.setattr(
        guises, "compare", lambda _, trial, actual, __: SimpleNamespace(ok=trial.expected.equal(actual))
    )
    run = Asked(output, idle)
    experiment_guises(cast(CandidateRun, run))
    assert run.requests == [("model", 5), ("inputs", True), ("forward", True)]
    assert [(probe.name, probe.outcome) for probe in run.evidence.probes] == [
        ("other_guise", each) for each in outcomes
    ]


def test_who_never_launched_a_kernel_is_not_asked() -> None:
    run = Asked(torch.zeros(4), idle=True, launched=False)
    experiment_guises(cast(CandidateRun, run))
    assert run.requests == []
