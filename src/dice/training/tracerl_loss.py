"""TraceRL's objective (arXiv 2509.06949): the policy's loss over the steps in which a response was decoded.

A response was filled block by block, a few tokens per forward. Round r of a block is the r-th forward that fixed tokens
of it: its input was the clean earlier blocks and the tokens of the block that earlier rounds had fixed. Replaying a round
gives the log-probability of each token in the very context in which it was drawn.

All rounds of a response are noised copies beside one clean copy (`dice.model.attention_masks`), so a response costs its
length plus its rounds; dLLM-RL's rl_sdar.py builds a row for every round instead. Blocks lie where they lay during
decoding, at multiples of the block size from position 0; with `align="response"` they start at the response, as released.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dice.model.transformer import Transformer
from dice.training.losses import AttentionName, TrainingRows, join_rows, target_log_probs
from dice.training.packing import Ints

Align = Literal["position", "response"]
Normaliser = Literal["tokens", "responses", "released"]
MAX_DELTA = 10.0
"""Log-ratios are clamped to this magnitude, as released."""


@dataclass(frozen=True)
class Trajectory:
    """One response as it was decoded, and what it earned."""

    prompt: Ints
    """[prompt tokens]"""
    response: Ints
    """[response tokens], to the end of the last block that was decoded."""
    step_map: Ints
    """[response tokens]: the forward, from 1, that fixed each token (`step_map` in dLLM-RL)."""
    log_probs: NDArray[np.float32]
    """[response tokens]: log-probabilities under the policy that drew them."""
    answer: int
    """Response tokens up to and including the end token; tokens behind it carry no loss."""
    advantage: float

    @property
    def length(self) -> int:
        """Tokens of prompt and response."""
        return len(self.prompt) + len(self.response)


def blocks_of(prompt: int, length: int, block_size: int, align: Align = "position") -> Ints:
    """Block number of each position [length].

    `response`: the response begins a block, and the prompt's blocks are counted backwards from its end, as released.
    """
    position = np.arange(length)
    if align == "position":
        return position // block_size
    before = -(-prompt // block_size)
    return np.where(
        position < prompt,
        before - 1 - (prompt - 1 - position) // block_size,
        before + (position - prompt) // block_size,
    )


def rounds_of(step_map: Ints, block: Ints) -> Ints:
    """Round, from 0, in which each response token was fixed: the rank of its forward among those of its block."""
    rounds = np.zeros(len(step_map), np.int64)
    for number in np.unique(block):
        inside = block == number
        rounds[inside] = np.unique(step_map[inside], return_inverse=True)[1]
    return rounds


@dataclass(frozen=True)
class PolicyRows:
    """Responses of one micro-batch, replayed. Per-target tensors are in the order of `rows.targets`."""

    rows: TrainingRows
    """`weights`: the share of each target in the loss."""
    old: Tensor
    """[targets] fp32: log-probabilities recorded while drawing, or computed at the start of the step."""
    reference: Tensor
    """[targets] fp32: log-probabilities of the policy from which the KL is measured."""
    advantage: Tensor
    """[targets] fp32"""

    def to(self, device: torch.device | str) -> PolicyRows:
        """The same on another device."""
        return PolicyRows(*(getattr(self, name).to(device) for name in ("rows", "old", "reference", "advantage")))


def policy_rows(
    trajectories: Sequence[Trajectory],
    *,
    block_size: int,
    mask_id: int,
    normaliser: Normaliser = "tokens",
    multiple: int = 1,
    align: Align = "position",
    released_length: int | None = None,
) -> PolicyRows:
    """Replay responses side by side. Divide the loss summed over the step's micro-batches by `step_normaliser`.

    `weights`: `tokens` 1, `responses` 1 / targets of the response, `released` 1 / `released_length` (the longest
    padded response of the step).
    """
    noised: dict[str, list[Ints]] = {name: [] for name in ("ids", "positions", "sample", "block", "copy")}
    clean: dict[str, list[Ints]] = {name: [] for name in ("ids", "positions", "sample", "block")}
    at, targets, weights, old, advantage = [], [], [], [], []
    first = 0
    for number, one in enumerate(trajectories):
        prompt, length = len(one.prompt), one.length
        ids, position = np.concatenate((one.prompt, one.response)), np.arange(length)
        block = blocks_of(prompt, length, block_size, align)
        fixed = np.full(length, -1)  # the prompt is there from the start
        fixed[prompt:] = rounds_of(one.step_map, block[prompt:])
        labelled = (position >= prompt) & (position < prompt + one.answer)
        mine = int(labelled.sum())
        for turn in range(int(fixed.max(initial=-1)) + 1):
            wanted = labelled & (fixed == turn)
            kept = np.isin(block, block[wanted])
            if not wanted.any():
                continue
            noised["ids"].append(np.where(fixed >= turn, mask_id, ids)[kept])
            noised["positions"].append(position[kept])
            noised["sample"].append(np.full(kept.sum(), number))
            noised["block"].append(block[kept])
            noised["copy"].append(np.full(kept.sum(), turn + 1))
            at.append(first + np.flatnonzero(wanted[kept]))
            targets.append(ids[wanted])
            old.append(one.log_probs[wanted[prompt:]])
            count = int(wanted.sum())
            advantage.append(np.full(count, one.advantage))
            share = {"tokens": 1.0, "responses": 1.0 / mine, "released": 1.0 / (released_length or length)}[normaliser]
            weights.append(np.full(count, share))
            first += int(kept.sum())
        clean["ids"].append(ids)
        clean["positions"].append(position)
        clean["sample"].append(np.full(length, number))
        clean["block"].append(block)

    def both(name: str) -> tuple[Ints, Ints]:
        return _joined(noised[name]), _joined(clean[name])

    rows = join_rows(
        ids=both("ids"),
        positions=both("positions"),
        sample=both("sample"),
        block=both("block"),
        copy=_joined(noised["copy"]),
        multiple=multiple,
        at=_joined(at),
        targets=_joined(targets),
        weights=_joined(weights),
    )
    drawn = torch.from_numpy(_joined(old).astype(np.float32))
    return PolicyRows(rows, drawn, drawn.clone(), torch.from_numpy(_joined(advantage).astype(np.float32)))


def _joined(parts: Sequence[NDArray]) -> NDArray:
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def step_normaliser(trajectories: Sequence[Trajectory], normaliser: Normaliser, block_size: int, align: Align) -> float:
    """Divisor of the weighted sum over a step's targets: targets, responses, or (released) rounds."""
    if normaliser == "tokens":
        return float(max(1, sum(one.answer for one in trajectories)))
    if normaliser == "responses":
        return float(max(1, len(trajectories)))
    rounds = 0
    for one in trajectories:
        block = blocks_of(len(one.prompt), one.length, block_size, align)[len(one.prompt) :]
        rounds += int(rounds_of(one.step_map, block)[: one.answer].max(initial=-1)) + 1
    return float(max(1, rounds))


def policy_loss(
    new: Tensor, old: Tensor, reference: Tensor, advantage: Tensor, *, clip: float, beta: float
) -> tuple[Tensor, Tensor, Tensor]:
    """(loss, k3, clipped), each [targets]: clipped surrogate and KL of the policy from the reference.

    rho = exp(new - old); loss = -min(rho A, clip(rho, 1 - eps, 1 + eps) A) + beta k3, with
    k3 = exp(reference - new) - 1 - (reference - new), which is not negative and has the KL as its mean.
    """
    ratio = (new - old).clamp(-MAX_DELTA, MAX_DELTA).exp()
    plain, bounded = ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage
    delta = (new - reference).clamp(-MAX_DELTA, MAX_DELTA)
    k3 = (-delta).exp() - 1 + delta
    return beta * k3 - torch.minimum(plain, bounded), k3, (bounded < plain).float()


def advantages(rewards: Sequence[float]) -> list[float]:
    """z-scores within a group, with the population's standard deviation; zeros when all rewards are equal."""
    if len(set(rewards)) < 2:
        return [0.0] * len(rewards)
    values = np.asarray(rewards, np.float64)
    return ((values - values.mean()) / values.std()).tolist()


class PolicyObjective(nn.Module):
    """Model and loss as one module, which an engine can wrap.

    `statistics` has an entry [4] for each micro-batch since it was last cleared: sums over targets of k3, of clipped
    ratios and of |log ratio|, and the number of targets.
    """

    def __init__(
        self, model: Transformer, mask_id: int, *, clip: float, beta: float, chunk: int, attention: AttentionName
    ) -> None:
        super().__init__()
        self.model, self.mask_id, self.clip, self.beta = model, mask_id, clip, beta
        self.chunk = chunk
        self.attention: AttentionName = attention
        self.statistics: list[Tensor] = []

    def log_probs(self, rows: TrainingRows) -> Tensor:
        """fp32 log-probabilities [targets] in the contexts of the rollout."""
        return target_log_probs(self.model, rows, chunk=self.chunk, attention=self.attention, never=self.mask_id)

    def forward(self, batch: PolicyRows, normaliser: float) -> Tensor:
        """The micro-batch's share of the step's loss."""
        new = self.log_probs(batch.rows)
        loss, k3, clipped = policy_loss(
            new, batch.old, batch.reference, batch.advantage, clip=self.clip, beta=self.beta
        )
        with torch.no_grad():
            apart = (new - batch.old).abs()
            count = torch.full((), float(len(new)), device=new.device)
            self.statistics.append(torch.stack((k3.sum(), clipped.sum(), apart.sum(), count)))
        return (loss * batch.rows.weights).sum() / normaliser
