"""`benchmarks/rl_curves.py` on rows of a recorded run, counted here by hand."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest
import rl_curves

from dice.errors import DiceError
from dice.training.rl_history import RlRow

RECORDED = Path(__file__).parents[2] / "results" / "recorded" / "wide" / "models.tar.xz"


@pytest.fixture(scope="module")
def lines() -> list[str]:
    with tarfile.open(RECORDED) as archive:
        member = archive.extractfile("8B-rl1/history.jsonl")
        assert member is not None
        return member.read().decode().splitlines()


def test_a_line_for_each_range(lines: list[str]) -> None:
    plain = [json.loads(line) for line in lines]
    run = [RlRow.model_validate_json(line) for line in lines]
    head, rule, first, second = rl_curves.table([run, run], [rl_curves.span("1-3"), rl_curves.span("4")])
    assert head.count("|") == rule.count("|") == first.count("|")
    reward = sum(row["reward"] for row in plain[:3]) / 3
    waits = sum(row["wait_s"] for row in plain[:3]) / sum(row["seconds"] for row in plain[:3])
    cells = [cell.strip() for cell in first.split("|")]
    assert cells[1] == "1-3"
    assert cells[3] == f"{reward:.2f}, {reward:.2f}"
    assert cells[8] == f"{waits:.0%}, {waits:.0%}"
    assert second.startswith("| 4-4 |")
    assert f"{plain[3]['seconds']:.1f}" in second


def test_a_run_that_is_too_short(lines: list[str]) -> None:
    run = [RlRow.model_validate_json(line) for line in lines]
    with pytest.raises(DiceError, match="run 1 has 2 steps; steps 1-4 were asked for"):
        rl_curves.table([run, run[:2]], [rl_curves.span("1-4")])
