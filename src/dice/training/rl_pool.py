"""The pool of a phase: problems whose measured pass rate leaves something to learn, and its file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from dice.errors import DiceError
from dice.jsonl import read_jsonl, write_jsonl
from dice.training.rl_config import PoolConfig


class PoolRow(BaseModel):
    """One measured problem: a row of pool/step-NNNNNN.jsonl."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)
    step: int
    """The step before which it was measured."""
    problem_id: str
    position: int
    """Place among the phase's problems."""
    answers: int
    """Answers that earned 0 or 1."""
    right: int
    pass_rate: float | None
    """None: no answer earned either."""
    kept: bool
    """Asked in the steps that follow."""


def chosen(rates: Sequence[float | None], config: PoolConfig, at_least: int) -> list[bool]:
    """Which problems are kept: those with a rate from `lowest` to `highest`.

    Where these are fewer than `at_least` (a step's problems), those with rates nearest to one half are added until there are
    as many, of equal ones the earlier first.
    """
    inside = [rate is not None and config.lowest <= rate <= config.highest for rate in rates]
    if sum(inside) >= min(at_least, len(rates)):
        return inside
    distance = [1.0 if rate is None else abs(rate - 0.5) for rate in rates]
    nearest = sorted(range(len(rates)), key=lambda number: (not inside[number], distance[number]))
    kept = set(nearest[:at_least])
    return [number in kept for number in range(len(rates))]


def _path(out: Path, step: int) -> Path:
    return out / "pool" / f"step-{step:06d}.jsonl"


def write_pool(out: Path, step: int, rows: Sequence[PoolRow]) -> None:
    """Write what was measured before `step`."""
    write_jsonl(_path(out, step), rows)


def read_pool(out: Path, step: int) -> list[int]:
    """Positions of the problems that the pool measured before `step` kept. Raises DiceError where its file is gone."""
    path = _path(out, step)
    if not path.is_file():
        raise DiceError(
            f"{path}: the pool of the steps from {step} on is gone; delete {out}/checkpoints to start again."
        )
    return [row.position for row in read_jsonl(path, PoolRow) if row.kept]
