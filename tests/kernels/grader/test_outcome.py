"""Whether a candidate follows changed values, of one that stands in for a process."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from dice.kernels.grader.candidate_run import CandidateRun
from dice.kernels.grader.outcome import changed_output, outcome_of


@pytest.mark.parametrize(
    ("actual", "idle", "outcome"),
    [(2.0, False, "right"), (2.0, True, "idle"), (1.0, True, "stale"), (7.0, False, "wrong")],
)
def test_outcomes(actual: float, idle: bool, outcome: str) -> None:
    run: Any = SimpleNamespace(
        last=SimpleNamespace(expected=torch.ones(4), forward_seed=0),
        send=lambda *_: None,
        forward=lambda _: None,
        fetch=lambda *_: torch.full((4,), actual),
        is_idle=lambda: idle,
    )
    assert outcome_of(cast(CandidateRun, run), [], torch.full((4,), 2.0)) == outcome


def test_an_output_of_floats_of_eight_bits_changes_too() -> None:
    before, after = (torch.full((4,), value).to(torch.float8_e5m2) for value in (1.0, 2.0))
    run: Any = SimpleNamespace(
        last=SimpleNamespace(expected=before, forward_seed=0),
        place=SimpleNamespace(device=torch.device("cpu")),
        reference=SimpleNamespace(run=lambda *_: after),
    )
    assert changed_output(cast(CandidateRun, run), torch.nn.Identity(), []) is after
    run.last.expected = after
    assert changed_output(cast(CandidateRun, run), torch.nn.Identity(), []) is None
