"""Which problems a step asks: the phases in their order, their schedules, and the pools that were measured.

Pure: everything follows from the settings, the problems, the pools and the step.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from dice.data.schedule import Schedule
from dice.training.rl_config import Phase, RlConfig
from dice.training.rl_data import RlProblem


class Curriculum:
    """The problems of every step. A measured pool takes the place of its phase's problems until the next is measured."""

    def __init__(self, config: RlConfig, problems: Sequence[Sequence[RlProblem]]) -> None:
        """`problems`: of each phase, in the files' order."""
        self.config, self._problems = config, problems
        self._pools: dict[int, list[int]] = {}
        self._schedules: dict[tuple[int, int | None], Schedule] = {}

    def place(self, step: int) -> tuple[int, Phase, int]:
        """(number of the phase, phase, step within it) of `step` (from 1)."""
        for number, phase in enumerate(self.config.phases):
            if step <= phase.steps:
                return number, phase, step
            step -= phase.steps
        raise ValueError("a step beyond the last phase")

    def phase_problems(self, step: int) -> Sequence[RlProblem]:
        """All problems of the step's phase."""
        return self._problems[self.place(step)[0]]

    def measured_at(self, step: int) -> int | None:
        """The step before which the pool of `step` is measured; None where no pool is."""
        pool = self.config.pool
        if not pool.answers:
            return None
        _, phase, inside = self.place(step)
        return step - (inside - 1) % (pool.refresh_every or phase.steps)

    def to_measure(self, step: int) -> list[int]:
        """Positions, among the phase's problems, of those that are measured before `step`."""
        count, most = len(self.phase_problems(step)), self.config.pool.problems
        if most is None or most >= count:
            return list(range(count))
        return sorted(random.Random(f"{self.config.seed}/pool/{step}").sample(range(count), most))

    def use(self, step: int, pool: list[int]) -> None:
        """Ask these of the phase's problems from `step` on, until the next pool is measured."""
        self._pools[step] = pool

    def pool(self, step: int) -> list[int] | None:
        """The positions in use at `step`; None: all are. Raises KeyError before they are measured."""
        at = self.measured_at(step)
        return None if at is None else self._pools[at]

    def schedule(self, step: int) -> Schedule:
        """The schedule of the step's phase, over the pool in use."""
        number, phase, _ = self.place(step)
        key = number, self.measured_at(step)
        if key not in self._schedules:
            self._schedules[key] = Schedule(
                [self._problems[number][item].difficulty for item in self._in_use(step)],
                phase.order,
                steps=phase.steps,
                per_step=self.config.rollout.problems_per_step,
                seed=self.config.seed,
            )
        return self._schedules[key]

    def problems(self, step: int) -> list[RlProblem]:
        """The problems of `step`, one for each group."""
        return self._named(step, self.schedule(step).items(self.place(step)[2]))

    def replacements(self, step: int, first: int, count: int) -> list[RlProblem]:
        """`count` problems for groups of `step` that are drawn anew; `first`: how many were before."""
        order = self.schedule(step).replacements(self.place(step)[2])
        return self._named(step, [order[number % len(order)] for number in range(first, first + count)])

    def _in_use(self, step: int) -> Sequence[int]:
        pool = self.pool(step)
        return range(len(self.phase_problems(step))) if pool is None else pool

    def _named(self, step: int, items: Sequence[int]) -> list[RlProblem]:
        problems, in_use = self.phase_problems(step), self._in_use(step)
        return [problems[in_use[item]] for item in items]
