"""Dream's schedule (arXiv 2508.15487; Dream-org/Dream-v0-Instruct-7B, generation_utils.py), DiffuCoder's too.

Times run from 1 to `eps` in equal steps. From time t to s the share 1 - s / t of the masks is fixed, rounded down, and
all that are left in the last step. All masks compete, by how sure the model is of them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from dice.config import stage_config
from dice.decoding.sampling import Compat, SamplingConfig, filter_logits, invert, uniforms_of

TIES = 32
"""Tokens that are looked at behind the top-k: those as probable as its last one are kept too."""


def filtered_shares(logits: Tensor, config: SamplingConfig) -> tuple[Tensor, Tensor | None]:
    """(shares [m, n], the tokens [m, n] that have them, ascending) after temperature, top-p and top-k, in this order.

    Tokens are None where n is the vocabulary. With a top-k, n is a little more than k: over a whole vocabulary, what
    follows would take longer than the head's product.
    """
    k, few = config.top_k, config.top_k + TIES
    if k > 0 and few < logits.shape[-1]:
        tempered = filter_logits(logits, config, ("temperature",))
        ordered, index = tempered.topk(few, -1)
        kept = ordered >= ordered[:, k - 1 : k]
        if config.top_p < 1:
            passed = (ordered - tempered.logsumexp(-1, keepdim=True)).exp().cumsum(-1) > config.top_p
            kept[:, 1:] &= ~passed[:, :-1]  # the token that passes it stays
        if not kept[:, -1].any():
            tokens, order = index.sort(-1)
            return ordered.masked_fill(~kept, float("-inf")).softmax(-1).gather(-1, order), tokens
    logits = filter_logits(logits, replace(config, top_k=0), ("temperature", "top_p"))  # sorts the whole vocabulary
    return filter_logits(logits, config, ("top_k",)).softmax(-1), None


@stage_config
class DreamConfig:
    """How Dream decodes."""

    algorithm: Literal["entropy", "maskgit_plus", "topk_margin", "origin"] = "entropy"
    """What makes a mask's token sure: little entropy, its probability, its distance to the second best; `origin`: each
    mask is drawn, whatever its token."""
    steps: int | None = Field(default=None, ge=1)
    """Steps of the whole answer; None: one a token."""
    eps: float = Field(default=1e-3, gt=0, lt=1)
    """Time at which the schedule ends."""
    position_temperature: float = Field(default=0.0, ge=0)
    """Above 0 positions are drawn by their score at this temperature (the vendor's alg_temp)."""
    sampling: SamplingConfig = SamplingConfig(temperature=0.2, top_p=0.95, top_k=50)
    """How a token is drawn: temperature, then top-p, then top-k. The vendor's documentation says that top_k is off;
    transformers' default of 50 comes in with the model's configuration."""
    compat: Compat = "none"
    """`released`: as the vendor's loop: the mask token may be chosen, and ties, which top-p makes often, are torch.topk's."""


class DreamSchedule:
    """`dice.decoding.canvas.Schedule` of Dream."""

    def __init__(self, config: DreamConfig) -> None:
        self.config = config
        self.compat: Compat = config.compat

    def check(self, max_new_tokens: int) -> None:
        """Every length can be filled."""

    def plan(self, max_new_tokens: int, seed: int, start: int) -> DreamPlan:
        return DreamPlan(self.config, self.config.steps or max_new_tokens, seed, start)

    def choose(self, logits: Tensor, seed: int, positions: NDArray[np.int64], step: int) -> tuple[Tensor, Tensor]:
        config = self.config
        shares, tokens = filtered_shares(logits, config.sampling)
        if config.sampling.temperature > 0:
            place = invert(shares, torch.from_numpy(uniforms_of(seed, positions, step)).to(logits.device))
        else:
            place = shares.argmax(-1)
        token = place if tokens is None else tokens.gather(-1, place[:, None])[:, 0]
        if config.algorithm == "entropy":
            return token, (shares * (shares + 1e-10).log()).sum(-1)
        if config.algorithm == "topk_margin":
            best = shares.topk(2, -1).values
            return token, best[:, 0] - best[:, 1]
        return token, shares.gather(-1, place[:, None])[:, 0]

    def order(
        self, score: NDArray[np.float32], seed: int, positions: NDArray[np.int64], step: int
    ) -> NDArray[np.floating]:
        if self.config.position_temperature == 0:
            return score
        # the largest of score / temperature + Gumbel noise: draws without replacement (arXiv 1903.06059)
        noise = -np.log(-np.log(np.maximum(uniforms_of(~seed, positions, step), 2.0**-25, dtype=np.float64)))
        return score / self.config.position_temperature + noise


class DreamPlan:
    """The steps of one answer, in fp32 as the vendor's: their rounding decides how many masks are fixed."""

    def __init__(self, config: DreamConfig, steps: int, seed: int, start: int) -> None:
        self.config, self.steps, self.seed, self.start = config, steps, seed, start
        times = torch.linspace(1, config.eps, steps + 1)
        self.shares = 1 - times[1:] / times[:-1]
        self.step = 0

    def next(self, masked: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], int] | None:
        while self.step < self.steps:
            step, share = self.step + 1, self.shares[self.step]
            self.step = step
            if self.config.algorithm == "origin" and step < self.steps:
                drawn = uniforms_of(~self.seed, np.arange(len(masked)) + self.start, step) < share.numpy()
                competing = masked & drawn
                quota = int(competing.sum())
            else:
                left = int(masked.sum())
                competing, quota = masked, left if step == self.steps else int(left * share)
            if quota:
                return competing, quota
        return None
