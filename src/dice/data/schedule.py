"""`dice schedule`: the problems of each RL step, as a pure function of the step, the seed and the data.

paper     Easy to hard, one pass spread over all steps (paper, section 4.2): problems are sorted by level, the seed draws
          the order within a level, and a window of `per_step` problems slides evenly from the first to the last, so that
          no step is easier than an earlier one. The problems of a step are distinct. At the paper's sizes every problem
          is taken once or twice; in general those at the two ends are taken least.
released  The authors' code (rl.py, `sequential_select`): step e takes the problems (e-1)*per_step ... +per_step-1 of the
          sorted file, modulo its length. With 4,000 problems, 64 a step and 100 steps it starts over in step 63 and
          trains on the easy ones again. The seed changes nothing.
uniform   No curriculum: every problem once per pass; the seed draws a new order for each pass.
"""

from __future__ import annotations

import argparse
import functools
import random
from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from dice.config import add_options, config_from, stage_config, to_spec
from dice.data.difficulty import Difficulty
from dice.errors import DiceError
from dice.jsonl import read_jsonl, write_jsonl
from dice.manifest import Stopwatch, write_manifest

Order = Literal["paper", "released", "uniform"]


def by_difficulty(levels: Sequence[int], seed: int | None) -> list[int]:
    """Positions sorted by level; `seed` draws the order within a level, None keeps the data's order."""
    positions = list(range(len(levels)))
    if seed is not None:
        random.Random(seed).shuffle(positions)
    return sorted(positions, key=lambda position: levels[position])


def window_start(step: int, n: int, steps: int, per_step: int) -> int:
    """First position of a window that slides evenly over `n` positions, at step `step` (from 1)."""
    if steps == 1 or n <= per_step:
        return 0
    return (step - 1) * (n - per_step) // (steps - 1)


class Schedule:
    """The problems of every step of one RL phase: see `items`."""

    def __init__(self, levels: Sequence[int], order: Order, *, steps: int, per_step: int, seed: int = 0) -> None:
        """`levels`: one per problem, in the data's order. Raises DiceError for no problems or no steps."""
        if not levels or steps < 1 or per_step < 1:
            raise DiceError(
                f"schedule: {len(levels)} problems, {steps} steps and {per_step} a step make no plan; "
                "each must be at least 1."
            )
        self.levels, self.order, self.steps, self.per_step, self.seed = tuple(levels), order, steps, per_step, seed
        self._sorted = by_difficulty(levels, seed if order == "paper" else None)
        self._pass = functools.lru_cache(maxsize=4)(self._shuffled)

    def _shuffled(self, what: int | str) -> list[int]:
        positions = list(range(len(self.levels)))
        random.Random(f"{self.seed}/{what}").shuffle(positions)
        return positions

    def items(self, step: int) -> list[int]:
        """Positions, in the data, of the problems of `step` (from 1). Raises ValueError for a step that is not there."""
        if not 1 <= step <= self.steps:
            raise ValueError(f"step {step} is not one of 1 to {self.steps}")
        n, first = len(self.levels), (step - 1) * self.per_step
        match self.order:
            case "paper":
                start = window_start(step, n, self.steps, self.per_step)
                # with fewer problems than `per_step`: every problem, and the easiest again
                taken = sorted((start + offset) % n for offset in range(self.per_step))
                return [self._sorted[position] for position in taken]
            case "released":
                return [self._sorted[(first + offset) % n] for offset in range(self.per_step)]
            case _:
                draws = range(first, first + self.per_step)
                return [self._pass(draw // n)[draw % n] for draw in draws]

    def replacements(self, step: int) -> list[int]:
        """All positions, in the order in which they take the place of problems of `step` that taught nothing.

        `paper`: the harder ones next to the step's window, then the easier ones next to it; `released`: those that follow,
        modulo their number; `uniform`: a shuffle drawn for the step. The step's own problems come last.
        """
        taken = dict.fromkeys(self.items(step))
        match self.order:
            case "paper":
                start = window_start(step, len(self.levels), self.steps, self.per_step)
                others = self._sorted[start + self.per_step :] + self._sorted[:start][::-1]
            case "released":
                cut = step * self.per_step % len(self.levels)
                others = self._sorted[cut:] + self._sorted[:cut]
            case _:
                others = self._shuffled(f"replacements/{step}")
        return [item for item in others if item not in taken] + list(taken)

    def epoch(self, step: int) -> float:
        """Passes over the data before `step`: with 4,000 problems and 64 a step, one pass takes 62.5 steps."""
        return (step - 1) * self.per_step / len(self.levels)


class PlannedStep(BaseModel):
    """One step of the schedule. A row of the stage's output."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    step: int
    epoch: float
    """Passes over the data before the step."""
    items: list[int]
    """Positions in the data, from 0."""
    ids: list[str]
    level_min: int
    level_mean: float
    level_max: int


def planned_steps(schedule: Schedule, ids: Sequence[str]) -> Iterator[PlannedStep]:
    """Every step of the schedule. `ids`: the problems' ids, in the data's order."""
    for step in range(1, schedule.steps + 1):
        items = schedule.items(step)
        levels = [schedule.levels[item] for item in items]
        yield PlannedStep(
            step=step,
            epoch=round(schedule.epoch(step), 4),
            items=items,
            ids=[ids[item] for item in items],
            level_min=min(levels),
            level_mean=round(sum(levels) / len(levels), 4),
            level_max=max(levels),
        )


@stage_config
class ScheduleConfig:
    """Settings of `dice schedule`."""

    labels: str
    """JSON lines that `dice difficulty` wrote, in the order of the RL data."""
    order: Order = "paper"
    """`paper`, `released` or `uniform`."""
    steps: int = Field(default=100, ge=1)
    """RL steps (paper, A.4.2: 20 for infilling, 100 end to end)."""
    per_step: int = Field(default=64, ge=1)
    """Problems of one step (paper, A.4.2: 64)."""
    seed: int = 0
    """Seed of the order within a level, or of the passes of `uniform`."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `dice schedule`."""
    add_options(parser, ScheduleConfig, "labels", "order", "steps", "per_step", "seed")
    parser.add_argument("--out", help="where the plan is written, as JSON lines; without it a summary is printed only")


def run(args: argparse.Namespace) -> int:
    """Print, and with --out write, the plan. Raises DiceError."""
    watch = Stopwatch()
    config = config_from(args, ScheduleConfig)
    rows = list(read_jsonl(config.labels, Difficulty))
    missing = [row.id for row in rows if row.level is None]
    if missing and config.order != "uniform":
        raise DiceError(
            f"{config.labels}: row {missing[0]!r} has no level ({len(missing)} such rows); remove them first."
        )
    levels = [row.level or 0 for row in rows]
    schedule = Schedule(levels, config.order, steps=config.steps, per_step=config.per_step, seed=config.seed)
    steps = list(planned_steps(schedule, [row.id for row in rows]))
    for row in steps:
        levels_of_step = f"level {row.level_min} to {row.level_max}, mean {row.level_mean:.2f}"
        print(f"step {row.step:4d}  pass {row.epoch:7.3f}  {levels_of_step}")
    if args.out:
        write_jsonl(args.out, steps)
        write_manifest(
            args.out,
            stage="schedule",
            spec=to_spec(config),
            watch=watch,
            inputs=[config.labels],
            seeds=[config.seed],
            extra={"problems": len(rows)},
        )
    return 0
