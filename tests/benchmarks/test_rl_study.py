"""`benchmarks/rl_study.py`: what it takes for the end of a stage."""

from __future__ import annotations

import subprocess
from argparse import Namespace
from pathlib import Path

import pytest
import rl_study

from dice.errors import DiceError


@pytest.fixture
def study(tmp_path: Path) -> rl_study.Study:
    return rl_study.Study(Namespace(work=tmp_path / "work", out=tmp_path / "out", minutes=5.0))


def test_a_training_that_the_machine_ended_is_not_asked(study: rl_study.Study, monkeypatch: pytest.MonkeyPatch) -> None:
    """`paused/` of the call before would be asked in its place, under the number of its steps."""
    monkeypatch.setattr(rl_study.subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 3))
    with pytest.raises(DiceError, match="dice rl failed"):
        study.dice("rl", "--config", "x.yaml")
    study.dice("verify", "--candidates", "x.jsonl")  # some verdicts are host errors: the others count
