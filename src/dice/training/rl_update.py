"""From the answers of a step to new weights: groups, trajectories, micro-batches, updates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.distributed as dist

from dice.data.tokenizer import CodeTokenizer
from dice.decoding.requests import Completion
from dice.model.transformer import Transformer
from dice.training.engine import TrainingEngine
from dice.training.local_engine import LocalEngine
from dice.training.losses import target_log_probs
from dice.training.packing import GPU_ROWS
from dice.training.rl_config import ReleasedBehaviour, RlConfig
from dice.training.tracerl_loss import (
    Align,
    PolicyObjective,
    PolicyRows,
    Trajectory,
    advantages,
    blocks_of,
    policy_rows,
    rounds_of,
    step_normaliser,
)

RELEASED_PROCESSES = 8
"""In the authors' runs of eight processes, accelerate advances the schedule once per process in every update."""


@dataclass(frozen=True)
class Groups:
    """The rewards of a step's groups, as advantages and counts."""

    all_right: int
    all_wrong: int
    with_signal: int
    advantages: list[list[float | None]]
    """For each group and answer; None: left out."""


def compare(rewards: Sequence[Sequence[float | None]]) -> Groups:
    """z-scores within each group, over the answers that earned 0 or 1. Groups whose rewards are equal are dropped."""
    right = wrong = signal = 0
    found: list[list[float | None]] = []
    for group in rewards:
        known = [reward for reward in group if reward is not None]
        differs = len(set(known)) > 1
        signal += differs
        right += bool(known) and not differs and known[0] > 0
        wrong += bool(known) and not differs and known[0] == 0
        scores = iter(advantages(known))
        found.append([next(scores) if differs and reward is not None else None for reward in group])
    return Groups(right, wrong, signal, found)


def trajectory_of(
    completion: Completion, advantage: float, released: ReleasedBehaviour, tokenizer: CodeTokenizer
) -> Trajectory:
    """The completion as it was decoded; with `text_round_trip`, tokenized again from its text, as released."""
    trace, answer = completion.trace, len(completion.ids)
    ids, step_map, log_probs = list(trace.ids), list(trace.step_map), list(trace.log_confidence)
    if released.text_round_trip:
        stopped = completion.finish_reason == "stop"
        ids = tokenizer.encode_plain(tokenizer.decode(completion.ids[:-1] if stopped else completion.ids))
        ids += list(completion.ids[-1:]) if stopped else []
        step_map = list(completion.step_map[: len(ids)])
        step_map += [max(completion.step_map) + 1] * (len(ids) - len(step_map))
        log_probs, answer = [0.0] * len(ids), len(ids)
    return Trajectory(
        prompt=np.array(completion.request.prompt, np.int64),
        response=np.array(ids, np.int64),
        step_map=np.array(step_map, np.int64),
        log_probs=np.array(log_probs, np.float32),
        answer=answer,
        advantage=advantage,
    )


def rows_of(one: Trajectory, block_size: int, align: Align) -> int:
    """Most rows that one answer takes: its tokens, and a whole noised block for every round."""
    block = blocks_of(len(one.prompt), one.length, block_size, align)[len(one.prompt) :]
    rounds = rounds_of(one.step_map, block)[: one.answer]
    turns = sum(int(rounds[block[: one.answer] == number].max()) + 1 for number in np.unique(block[: one.answer]))
    return one.length + turns * block_size


def learning_rate(config: RlConfig, update: int, updates: int) -> float:
    """Constant; or the cosine of the authors' code, which starts again in every step (docs/reference/deviations.md)."""
    rate = config.optimizer.learning_rate
    if not config.released_behaviour.cosine_within_step:
        return rate
    return rate * 0.5 * (1 + math.cos(math.pi * RELEASED_PROCESSES * (update + 1) / (updates + 1)))


@dataclass(frozen=True)
class UpdateReport:
    """Numbers of a step's updates; means as in dice.training.rl_history."""

    updates: int
    loss: float | None = None
    grad_norm: float | None = None
    kl: float | None = None
    clip_share: float | None = None
    mismatch: float | None = None
    targets: int = 0


@dataclass(frozen=True)
class _Batch:
    rows: PolicyRows
    silent: bool
    """A batch without weight: this process runs it because the others have one more."""


class Updater:
    """Updates the policy with a step's trajectories, of which every process has the same list."""

    def __init__(
        self,
        config: RlConfig,
        engine: TrainingEngine,
        objective: PolicyObjective,
        *,
        step_start: Transformer,
        reference: Transformer | None,
        block_size: int,
    ) -> None:
        """`step_start`: a model that has the step's first weights until the first update. `reference`: for `kl_reference`."""
        self.config, self.engine, self.objective = config, engine, objective
        self.step_start, self.reference = step_start, reference
        self.block_size = block_size
        released = config.released_behaviour
        self.align: Align = "response" if released.response_aligned_blocks else "position"
        self.recomputes = config.objective.old_log_probs == "recomputed" or released.recomputes

    def permutation(self, count: int, step: int, epoch: int) -> list[int]:
        """The order in which a step's answers are used."""
        if self.config.released_behaviour.unshuffled_updates:
            return list(range(count))
        return np.random.default_rng([self.config.seed, step, epoch]).permutation(count).tolist()

    def update(self, trajectories: Sequence[Trajectory], step: int) -> UpdateReport:
        """Run all updates of a step. Without trajectories nothing changes, not even the moments."""
        config, engine = self.config, self.engine
        released = config.released_behaviour
        if not trajectories:
            return UpdateReport(0)
        if released.reset_optimizer:
            assert isinstance(engine, LocalEngine)
            engine.forget()
        updates: list[tuple[float, list[_Batch]]] = []
        for epoch in range(config.objective.epochs):
            order = self.permutation(len(trajectories), step, epoch)
            for part in np.array_split(np.array(order), min(config.objective.updates_per_step, len(order))):
                updates.append(self._micro_batches([trajectories[number] for number in part], trajectories))
        self.objective.statistics.clear()
        losses, norms, sums = [], [], []
        for number, (normaliser, batches) in enumerate(updates):
            loss = torch.zeros((), device=engine.device)
            kept = []
            for place, batch in enumerate(batches):
                part = engine.backward(batch.rows, normaliser / released.loss_scale, last=place == len(batches) - 1)
                if not batch.silent:
                    loss += part
                    kept.append(self.objective.statistics[-1])
            self.objective.statistics.clear()
            norms.append(engine.step(learning_rate(config, number, len(updates))))
            losses.append(engine.total(loss))
            sums.append(torch.stack(kept).sum(0) if kept else torch.zeros(4, device=engine.device))
        if released.weights_16bit:
            assert isinstance(engine, LocalEngine)
            engine.round_masters(torch.bfloat16)
        table = torch.stack(sums).double()
        if engine.world > 1:
            dist.all_reduce(table)
        k3, clipped, _, count = table.sum(0).tolist()
        return UpdateReport(
            updates=len(updates),
            loss=sum(losses) / len(losses),
            grad_norm=sum(norms) / len(norms),
            kl=k3 / max(1, count),
            clip_share=clipped / max(1, count),
            mismatch=float(table[0, 2] / table[0, 3].clamp(min=1)),
            targets=int(count),
        )

    def _micro_batches(self, part: Sequence[Trajectory], step: Sequence[Trajectory]) -> tuple[float, list[_Batch]]:
        """(normaliser, this process's micro-batches) of one update, equally many in every process.

        Call it before the step's first update: the policy that drew the answers may be needed.
        """
        normaliser = self.config.objective.normaliser
        total = step_normaliser(part, normaliser, self.block_size, self.align)
        batches: list[list[Trajectory]] = []
        used = 0
        for one in part[self.engine.rank :: self.engine.world]:
            rows = rows_of(one, self.block_size, self.align)
            if not batches or used + rows > self.config.objective.micro_batch_rows:
                batches.append([])
                used = 0
            batches[-1].append(one)
            used += rows
        count = torch.tensor(len(batches), device=self.engine.device)
        if self.engine.world > 1:
            dist.all_reduce(count, dist.ReduceOp.MAX)
        longest = max(len(one.response) for one in step)
        found = [_Batch(self._rows(batch, longest), False) for batch in batches]
        while len(found) < int(count):
            rows = self._rows(part[:1], longest)
            rows.rows.weights.zero_()
            found.append(_Batch(rows, True))
        return total, [self._compared(batch) for batch in found]

    def _rows(self, batch: Sequence[Trajectory], longest: int) -> PolicyRows:
        on_gpu = self.engine.device.type == "cuda"
        return policy_rows(
            batch,
            block_size=self.block_size,
            mask_id=self.objective.mask_id,
            normaliser=self.config.objective.normaliser,
            multiple=GPU_ROWS if on_gpu and self.config.attention == "auto" else 1,
            align=self.align,
            released_length=longest,
        )

    def _compared(self, batch: _Batch) -> _Batch:
        """The batch with the log-probabilities that the loss compares to."""
        rows = batch.rows
        if self.recomputes:
            old = self._log_probs(self.step_start, batch)
            rows = replace(rows, old=old, reference=old)
        if self.reference is not None:
            rows = replace(rows, reference=self._log_probs(self.reference, batch))
        return _Batch(rows, batch.silent)

    @torch.no_grad()
    def _log_probs(self, model: Transformer, batch: _Batch) -> torch.Tensor:
        return target_log_probs(
            model,
            batch.rows.rows.to(self.engine.device),
            chunk=self.config.head_chunk,
            attention=self.config.attention,
            never=self.objective.mask_id,
        ).cpu()
