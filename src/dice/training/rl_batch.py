"""The answers of a step with their rewards: measures pools, draws groups anew, draws the next step's answers ahead.

The answers depend on seeds, steps and weights alone, never on the verifier's speed: the step decides which weights draw, and
the rewards of all processes decide what is drawn anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import torch.distributed as dist

from dice.decoding.decoder import Decoder
from dice.decoding.requests import Request
from dice.jsonl import write_jsonl
from dice.training.curriculum import Curriculum
from dice.training.processes import rank_and_world
from dice.training.rl_config import RlConfig
from dice.training.rl_data import RlProblem
from dice.training.rl_drawn import read_drawn, write_drawn
from dice.training.rl_pool import PoolRow, chosen, read_pool, write_pool
from dice.training.rl_report import answer_row
from dice.training.rl_update import compare
from dice.training.rollout import (
    Answer,
    Asked,
    PendingVerdicts,
    Verifier,
    answer_of,
    answer_seed,
    draw,
    reward_of,
    rewards_of,
)

Item = TypeVar("Item")


@dataclass
class Batch:
    """The answers of one step with their rewards, and the time that this process spent on them."""

    groups: list[list[Answer]] = field(default_factory=list)
    """Of all processes: a group for each problem asked, those drawn anew last."""
    redrawn: int = 0
    host_errors: int = 0
    rollout_s: float = 0.0
    verify_s: float = 0.0
    wait_s: float = 0.0
    pool_s: float = 0.0


@dataclass
class _Drawn:
    """Answers of this process; `pending`: their verdicts, when they are with the verifier."""

    answers: list[Answer]
    pending: PendingVerdicts | None = None
    judged: bool = False


class Batches:
    """One process's part in the batches of a run, which are taken in the order of the steps."""

    def __init__(
        self,
        config: RlConfig,
        curriculum: Curriculum,
        verifier: Verifier,
        decoder: Callable[[], Decoder],
        to_text: Callable[[Sequence[int]], str],
        *,
        done: int,
        tell: Callable[[str], None] = lambda text: None,
    ) -> None:
        """`decoder`: of the present weights. `done`: steps that the run has done; `tell` gets progress in words."""
        self.config, self.curriculum, self.verifier = config, curriculum, verifier
        self._decoder, self._to_text, self._tell = decoder, to_text, tell
        self.rank, self.world = rank_and_world()
        self._behind = done
        """Steps whose pools were measured before this process began."""
        self._ahead: _Drawn | None = None
        self._spent = Batch()

    def asked(self, problems: Sequence[RlProblem], first: int, samples: int) -> list[Asked]:
        """The answers that this process draws to the problems, whose groups are numbered from `first` on."""
        return [
            Asked(problem, group, sample)
            for group, problem in enumerate(problems, first)
            if group % self.world == self.rank
            for sample in range(samples)
        ]

    def take(self, step: int) -> Batch:
        """The batch of `step`. With `draw_ahead`, the next step's answers are drawn too, with the present weights."""
        rollout = self.config.rollout
        spent = self._spent = Batch()
        drawn, self._ahead = self._ahead, None
        if drawn is None:
            drawn = self._drawn(self._problems(step), step)
        self._submit(drawn)  # those of a checkpoint
        if rollout.draw_ahead and step < self.config.steps:
            if self._measures_before(step + 1):
                self._judge(drawn)  # the verifier judges the pool's answers next, so these come first
            # groups that are drawn anew are judged before the next step's answers
            self._ahead = self._drawn(self._problems(step + 1), step + 1, judge=not rollout.redraws)
        answers = self._judge(drawn)
        groups = self._groups(answers)
        for _ in range(rollout.redraws):
            flat = rollout.problems_per_step - compare(rewards_of(groups)).with_signal
            if not flat:
                break
            problems = self.curriculum.replacements(step, spent.redrawn, flat)
            more = self._judge(self._drawn(problems, step, first=len(groups)))
            answers, groups = answers + more, groups + self._groups(more)
            spent.redrawn += flat
        if self.config.save_rollouts:
            path = Path(self.config.out) / "rollouts" / f"step-{step:06d}.{self.rank}.jsonl"
            write_jsonl(path, [answer_row(step, answer) for answer in answers])
        if self._ahead is not None:
            self._submit(self._ahead)
        spent.groups = groups
        return spent

    def save(self, folder: Path) -> None:
        """Keep the answers that are drawn ahead in a checkpoint's folder."""
        if self._ahead is not None:
            write_drawn(folder, self.rank, self._ahead.answers)

    def resume(self, folder: Path) -> None:
        """Take up the answers that a checkpoint keeps for the step after `done`, if it keeps any."""
        rows = read_drawn(folder)
        if not rows:
            return
        self._behind += 1
        step, answers = self._behind, []
        problems = self._problems(step)
        for row in rows:
            if row.group % self.world == self.rank:
                asked = Asked(problems[row.group], row.group, row.sample)
                seed = answer_seed(self.config.seed, step, asked.problem.id, row.group, row.sample)
                request = Request(asked.problem.prompt, self.config.rollout.max_new_tokens, seed)
                answers.append(answer_of(asked, row.completion(request), self._to_text))
        self._ahead = _Drawn(answers)

    # -- drawing and judging -----------------------------------------------------------------------------------------

    def _draw(self, asked: list[Asked], purpose: int | str, on_answer: Callable[[Answer], object]) -> list[Answer]:
        began, drawn = time.perf_counter(), 0

        def finished(answer: Answer) -> None:
            nonlocal drawn
            drawn += 1
            on_answer(answer)
            if drawn % 16 == 0:
                self._tell(f"answer {drawn} of {len(asked)}")

        answers = draw(
            self._decoder(),
            asked,
            purpose=purpose,
            seed=self.config.seed,
            new_tokens=self.config.rollout.max_new_tokens,
            to_text=self._to_text,
            on_answer=finished,
        )
        self._spent.rollout_s += time.perf_counter() - began
        return answers

    def _drawn(
        self,
        problems: Sequence[RlProblem],
        purpose: int | str,
        *,
        first: int = 0,
        samples: int | None = None,
        judge: bool = True,
    ) -> _Drawn:
        """Answers to the problems. With `judge` they go to the verifier one by one while others are drawn."""
        pending = self.verifier.begin() if judge else None
        asked = self.asked(problems, first, samples or self.config.rollout.samples)
        # where these wait, verdicts of those before are taken, so that what is to be tried again is soon
        on_answer = pending.submit if pending else lambda answer: self.verifier.take()
        return _Drawn(self._draw(asked, purpose, on_answer), pending)

    def _submit(self, drawn: _Drawn) -> None:
        """Give the answers to the verifier, unless it has them."""
        if drawn.pending is None:
            drawn.pending = self.verifier.begin()
            for answer in drawn.answers:
                drawn.pending.submit(answer)

    def _judge(self, drawn: _Drawn) -> list[Answer]:
        """The answers with their rewards, when all verdicts are there."""
        if drawn.judged:
            return drawn.answers
        pending, spent, began = drawn.pending, self._spent, time.perf_counter()
        assert pending is not None
        pending.finish()
        spent.wait_s += time.perf_counter() - began
        if pending.began is not None and pending.ended is not None:
            spent.verify_s += pending.ended - pending.began
        spent.host_errors += pending.host_errors
        for answer in drawn.answers:
            answer.reward = self._reward(answer)
        drawn.judged = True
        return drawn.answers

    def _reward(self, answer: Answer) -> float | None:
        if answer.candidate.code is None:
            return 0.0
        fault = self.config.released_behaviour.host_error_earns_zero
        return reward_of(answer.verdict, self.config.reward, host_error_earns_zero=fault)

    def _groups(self, mine: list[Answer]) -> list[list[Answer]]:
        """The answers of all processes, in the order of their groups."""
        groups: dict[int, list[Answer]] = {}
        for answer in sorted(self._all(mine), key=lambda answer: (answer.asked.group, answer.asked.sample)):
            groups.setdefault(answer.asked.group, []).append(answer)
        return list(groups.values())

    def _all(self, mine: list[Item]) -> list[Item]:
        """The items of all processes."""
        if self.world == 1:
            return mine
        found: list[list[Item] | None] = [None] * self.world
        dist.all_gather_object(found, mine)
        return [item for part in found for item in part or []]

    # -- pools -------------------------------------------------------------------------------------------------------

    def _measures_before(self, step: int) -> bool:
        return self.curriculum.measured_at(step) == step and step > self._behind

    def _problems(self, step: int) -> list[RlProblem]:
        """The problems of `step`; its pool is measured where it begins, or read where it was measured earlier."""
        at, out = self.curriculum.measured_at(step), Path(self.config.out)
        if self._measures_before(step):
            self._measure(step)
        elif at is not None and at <= self._behind:
            self.curriculum.use(at, read_pool(out, at))
        return self.curriculum.problems(step)

    def _measure(self, step: int) -> None:
        """Measure the pass rates of the present policy, keep the problems in the range, and write them down."""
        config, began = self.config, time.perf_counter()
        before, self._spent = self._spent, Batch()  # the time of the pool is its own
        positions = self.curriculum.to_measure(step)
        problems = [self.curriculum.phase_problems(step)[position] for position in positions]
        drawn = self._drawn(problems, f"pool/{step}", samples=config.pool.answers)
        groups = self._groups(self._judge(drawn))
        known = [[reward for reward in rewards if reward is not None] for rewards in rewards_of(groups)]
        rates = [sum(rewards) / len(rewards) if rewards else None for rewards in known]
        rows = [
            PoolRow(
                step=step,
                problem_id=problem.id,
                position=position,
                answers=len(rewards),
                right=int(sum(rewards)),
                pass_rate=rate,
                kept=kept,
            )
            for problem, position, rewards, rate, kept in zip(
                problems,
                positions,
                known,
                rates,
                chosen(rates, config.pool, config.rollout.problems_per_step),
                strict=True,
            )
        ]
        if self.rank == 0:
            write_pool(Path(config.out), step, rows)
        self.curriculum.use(step, [row.position for row in rows if row.kept])
        before.host_errors += self._spent.host_errors
        before.pool_s += time.perf_counter() - began
        self._spent = before
