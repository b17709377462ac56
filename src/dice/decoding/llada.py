"""LLaDA's schedule (arXiv 2502.09992; ML-GSAI/LLaDA, generate.py): the answer in blocks, each over several steps.

A block's masks are spread over its steps, the remainder over the first ones. In each step the masks left of the block's
end compete, and those with the most probable tokens are fixed.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from dice.config import stage_config
from dice.decoding.sampling import Compat, SamplingConfig, draw, uniforms_of
from dice.errors import DiceError


@stage_config
class LladaConfig:
    """How LLaDA decodes."""

    block_size: int = Field(default=32, ge=1)
    """Tokens of a block; the longest answer is a multiple of it."""
    steps: int | None = Field(default=None, ge=1)
    """Steps of the whole answer, a multiple of its blocks; None: one a token."""
    score: Literal["low_confidence", "random"] = "low_confidence"
    """Fix the most probable tokens first, or any."""
    sampling: SamplingConfig = SamplingConfig()
    """How a token is drawn."""
    compat: Compat = "none"
    """`released`: as the vendor's loop: the mask token may be chosen, ties are torch.topk's, and words behind the end
    token stay in the answer."""


class LladaSchedule:
    """`dice.decoding.canvas.Schedule` of LLaDA."""

    def __init__(self, config: LladaConfig) -> None:
        self.config = config
        self.compat: Compat = config.compat

    def check(self, max_new_tokens: int) -> None:
        blocks, rest = divmod(max_new_tokens, self.config.block_size)
        if rest:
            raise DiceError(
                f"max_new_tokens {max_new_tokens} is no multiple of llada.block_size {self.config.block_size}."
            )
        if self.config.steps is not None and self.config.steps % blocks:
            raise DiceError(f"llada.steps {self.config.steps} is no multiple of the answer's {blocks} blocks.")

    def plan(self, max_new_tokens: int, seed: int, start: int) -> LladaPlan:
        del seed, start
        blocks = max_new_tokens // self.config.block_size
        return LladaPlan(self.config.block_size, blocks, (self.config.steps or max_new_tokens) // blocks)

    def choose(self, logits: Tensor, seed: int, positions: NDArray[np.int64], step: int) -> tuple[Tensor, Tensor]:
        uniform = torch.from_numpy(uniforms_of(seed, positions, step)).to(logits.device)
        token, log_confidence = draw(logits, uniform, self.config.sampling)
        return token, log_confidence.exp()

    def order(
        self, score: NDArray[np.float32], seed: int, positions: NDArray[np.int64], step: int
    ) -> NDArray[np.floating]:
        if self.config.score == "low_confidence":
            return score
        return uniforms_of(~seed, positions, step)


class LladaPlan:
    """Blocks from left to right; a mask that is left in a finished block competes in the next."""

    def __init__(self, block_size: int, blocks: int, steps_per_block: int) -> None:
        self.block_size, self.blocks, self.steps_per_block = block_size, blocks, steps_per_block
        self.step = 0
        self._masks = 0
        """Masks of the block when it was entered."""

    def next(self, masked: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], int] | None:
        while self.step < self.blocks * self.steps_per_block:
            block, step = divmod(self.step, self.steps_per_block)
            end = (block + 1) * self.block_size
            if step == 0:
                self._masks = int(masked[end - self.block_size : end].sum())
            self.step += 1
            each, rest = divmod(self._masks, self.steps_per_block)
            if quota := each + (step < rest):
                return masked & (np.arange(len(masked)) < end), quota
        return None
