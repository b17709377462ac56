"""The token that a position gets, and the model's confidence in it.

Greedy is the arg-max (temperature 0, or top_k 1). Otherwise the token is drawn from the distribution after
temperature, top-k and top-p (in this order, each as in transformers), by the inverse of its cumulative sum at a given
uniform number. The caller gives the numbers, so a sequence's tokens do not depend on the rest of the batch.

Confidence is the token's probability in the model's own distribution: before temperature and filters. The released
script scores after them, which makes every confidence 1 when top_k is 1 (SDAR's generate.py);
`compat="released"` restores that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from dice.config import stage_config

Compat = Literal["none", "released"]


@stage_config
class SamplingConfig:
    """How a token is drawn."""

    temperature: float = Field(default=0.0, ge=0)
    """0 is greedy."""
    top_k: int = Field(default=0, ge=0)
    """Keep the k most probable tokens; 0: all, 1: greedy."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Keep the most probable tokens until their mass passes this; 1: all."""

    @property
    def greedy(self) -> bool:
        """Whether the choice is the arg-max."""
        return self.temperature == 0 or self.top_k == 1


Filter = Literal["temperature", "top_k", "top_p"]
FILTERS: tuple[Filter, ...] = ("temperature", "top_k", "top_p")
"""The order of transformers and of SDAR's script."""


def filter_logits(logits: Tensor, config: SamplingConfig, order: Sequence[Filter] = FILTERS) -> Tensor:
    """Logits [..., vocab] after temperature, top-k and top-p in this `order`; what is removed is -inf."""
    for name in order:
        logits = _FILTERS[name](logits, config)
    return logits


def _tempered(logits: Tensor, config: SamplingConfig) -> Tensor:
    return logits if config.temperature in (0.0, 1.0) else logits / config.temperature


def _top_k(logits: Tensor, config: SamplingConfig) -> Tensor:
    if not 0 < config.top_k < logits.shape[-1]:
        return logits
    smallest = logits.topk(config.top_k, -1).values[..., -1:]
    return logits.masked_fill(logits < smallest, float("-inf"))


def _top_p(logits: Tensor, config: SamplingConfig) -> Tensor:
    if config.top_p >= 1:
        return logits
    # Both filters keep the first tokens in sorted order. So with a top-k, before or after, only that many are looked at:
    # sorting a whole vocabulary takes long.
    ordered, index = logits.topk(min(config.top_k or logits.shape[-1], logits.shape[-1]), -1)
    passed = (ordered - logits.logsumexp(-1, keepdim=True)).exp().cumsum(-1) > config.top_p
    before = torch.cat((torch.zeros_like(passed[..., :1]), passed[..., :-1]), -1)  # the token that passes it stays
    removed = passed[..., -1:].expand_as(logits).scatter(-1, index, before)
    return logits.masked_fill(removed, float("-inf"))


_FILTERS = {"temperature": _tempered, "top_k": _top_k, "top_p": _top_p}


def draw(logits: Tensor, uniform: Tensor, config: SamplingConfig, compat: Compat = "none") -> tuple[Tensor, Tensor]:
    """(token, log-confidence), each [...], of fp32 logits [..., vocab] at uniform numbers [...] in [0, 1).

    No synchronisation with the host, so it can be part of a CUDA graph.
    """
    if config.greedy:
        token = logits.argmax(-1)
    else:
        token = invert(filter_logits(logits, config).softmax(-1), uniform)
    if compat == "released":
        scored = filter_logits(logits, config)
    else:
        scored = logits
    chosen = scored.gather(-1, token[..., None])[..., 0]
    return token, chosen - scored.logsumexp(-1)


def invert(shares: Tensor, uniform: Tensor) -> Tensor:
    """The token [...] at which the cumulative sum of `shares` [..., vocab] passes `uniform` [...] of their whole."""
    mass = shares.cumsum(-1)
    target = uniform[..., None] * mass[..., -1:]
    return torch.searchsorted(mass, target, right=True)[..., 0].clamp_(max=shares.shape[-1] - 1)


def uniforms(seeds: NDArray[np.uint64], positions: NDArray[np.int64], steps: NDArray[np.int64]) -> NDArray[np.float32]:
    """One number in [0, 1) for every (seed, position, step), the same on every machine (SplitMix64's mixing)."""
    with np.errstate(over="ignore"):
        state = seeds.astype(np.uint64)
        for part in (positions, steps):
            state = (state + np.uint64(0x9E3779B97F4A7C15)) ^ (part.astype(np.uint64) * np.uint64(0xD1342543DE82EF95))
            state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            state = state ^ (state >> np.uint64(31))
    return ((state >> np.uint64(40)).astype(np.float64) / 2.0**24).astype(np.float32)


def uniforms_of(seed: int, positions: NDArray[np.int64], step: int) -> NDArray[np.float32]:
    """`uniforms` of one sequence at positions [m] in one step. ~seed is a second stream."""
    return uniforms(np.full(positions.shape, seed % 2**64, np.uint64), positions, np.full_like(positions, step))


def uniforms_on_device(seeds: Tensor, positions: Tensor, steps: Tensor) -> Tensor:
    """`uniforms` for int64 tensors, with the same numbers: products wrap, and a mask makes shifts logical."""

    def shifted(value: Tensor, by: int) -> Tensor:
        return (value >> by) & ((1 << (64 - by)) - 1)

    state = seeds
    for part in (positions, steps):
        state = (state + _signed(0x9E3779B97F4A7C15)) ^ (part * _signed(0xD1342543DE82EF95))
        state = (state ^ shifted(state, 30)) * _signed(0xBF58476D1CE4E5B9)
        state = (state ^ shifted(state, 27)) * _signed(0x94D049BB133111EB)
        state = state ^ shifted(state, 31)
    return (shifted(state, 40).double() / 2.0**24).float()


def _signed(bits: int) -> int:
    return bits - 2**64 if bits >= 2**63 else bits
