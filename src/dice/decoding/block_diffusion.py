"""Block diffusion: masks of one block are filled over several forwards, the most confident first.

Static and dynamic low-confidence decoding of SDAR (arXiv 2510.06303; generate.py). Blocks are aligned to absolute
position 0; prompt tokens that do not fill a block stand at the front of the first one. In each forward
- `static` accepts the `quota` most confident masks,
- `dynamic` accepts every mask whose confidence exceeds the threshold, or the `quota` most confident if there are fewer.

The released loop runs a finished block through the model once more to put it into the cache. Here the next block's
first forward does that as well (`StepRows.done_ids`): the same tokens, with one forward less per block.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from dice.config import stage_config
from dice.decoding.requests import check_no_mask
from dice.decoding.rows import Rule, StepResult, StepRows
from dice.decoding.sampling import Compat, SamplingConfig, draw, uniforms
from dice.decoding.sequences import Sequences


@stage_config
class BlockDiffusionConfig:
    """How a block-diffusion model decodes."""

    strategy: Literal["static", "dynamic"] = "static"
    """Which masks a forward fills: a fixed number, or those above the threshold."""
    block_size: int = Field(default=4, ge=1)
    """Tokens of a block; must be the one that the model was trained with."""
    denoising_steps: int = Field(default=4, ge=1)
    """Forwards that a block takes at most."""
    threshold: float = Field(default=0.9, ge=0)
    """Confidence above which `dynamic` accepts a token; 1 or more accepts none but the quota."""
    sampling: SamplingConfig = SamplingConfig()
    """How a token is drawn."""
    ends: Literal["block", "budget"] = "block"
    """`block`: the last block is filled whole, and a block's size is spread over its steps (SDAR). `budget`: the last block
    ends with the budget, and a block's masks are spread over its steps (Stable-DiffCoder); the plain engine has it."""
    compat: Compat = "none"
    """`released`: confidence after the filters, and ties broken by torch.topk, as the authors' script does."""

    @property
    def quotas(self) -> tuple[int, ...]:
        """Tokens to accept at least in each forward of a block; they sum to the block."""
        return tuple(quota for quota in self.spread(self.block_size) if quota > 0)

    def spread(self, masks: int) -> list[int]:
        """`masks` over the forwards of a block, the remainder over the first ones."""
        each, rest = divmod(masks, self.denoising_steps)
        return [each + (step < rest) for step in range(self.denoising_steps)]


class ChooseMasks:
    """Fill masks by confidence. The mask token itself is never chosen."""

    def __init__(self, config: BlockDiffusionConfig, mask_id: int) -> None:
        self.config, self.sampling = config, config.sampling
        self.mask_id: int | None = mask_id
        self.synchronises = config.compat == "released"

    def __call__(self, logits: Tensor, ids: Tensor, quota: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        logits[..., self.mask_id] = float("-inf")
        token, confidence = draw(logits, uniform, self.sampling, self.config.compat)
        return token, confidence, self.accept(confidence, ids, quota)

    def accept(self, confidence: Tensor, ids: Tensor, quota: Tensor) -> Tensor:
        """Boolean [n, block]: which positions keep their choice. Ties go to the left."""
        masked = ids == self.mask_id
        score = confidence.masked_fill(~masked, float("-inf"))
        if self.config.compat == "released":
            best = _released_best(score.exp(), masked, quota)
        else:
            place = torch.arange(ids.shape[1], device=ids.device)
            ahead = (score[:, None, :] > score[:, :, None]) | (
                (score[:, None, :] == score[:, :, None]) & (place[None, :] < place[:, None])
            )
            best = masked & (ahead.sum(-1) < quota[:, None])
        if self.config.strategy == "static":
            return best
        sure = masked & (score.exp() > self.config.threshold)
        return torch.where((sure.sum(-1) >= quota)[:, None], sure, best)


def _released_best(score: Tensor, masked: Tensor, quota: Tensor) -> Tensor:
    """The released script's own call, row by row: torch.topk breaks ties, and how depends on the device."""
    best = torch.zeros_like(masked)
    for row in range(len(score)):
        scored = torch.where(masked[row], score[row], float("-inf"))
        best[row, torch.topk(scored, min(int(quota[row]), int(masked[row].sum()))).indices] = True
    return best


class BlockDiffusion:
    """State machine of the sequences in flight."""

    def __init__(self, config: BlockDiffusionConfig, mask_id: int) -> None:
        self.config = config
        self.mask_id = mask_id
        self.choose = ChooseMasks(config, mask_id)
        self.block_size = config.block_size
        threshold = config.threshold if config.strategy == "dynamic" else None
        self.rule = Rule(config.block_size, config.quotas, threshold, mask_id)
        self._quotas = np.array([config.spread(masks) for masks in range(config.block_size + 1)])
        """[masks of a block when it is entered, step]"""
        self._offsets = np.arange(config.block_size)

    def length_of(self, prompt: int, new: int) -> int:
        """Cache positions that a prompt and an answer need."""
        if self.config.ends == "budget":
            return prompt + new
        return -(-(prompt + new) // self.block_size) * self.block_size

    def open(self, sequences: Sequences, slot: int) -> int:
        """Fill the slot's answer with masks; returns how many prompt tokens to prefill (whole blocks)."""
        prompt = int(sequences.prompt_length[slot])
        check_no_mask(sequences.tokens[slot, :prompt], self.mask_id)
        # what a partial last block holds behind the budget is no mask
        sequences.tokens[slot, prompt:] = 0 if self.mask_id else 1
        sequences.tokens[slot, prompt : sequences.length[slot]] = self.mask_id
        start = prompt // self.block_size * self.block_size
        sequences.start[slot] = start
        sequences.unwritten[slot] = False
        return start

    def rows(self, sequences: Sequences) -> StepRows:
        """The open block of every active sequence, and the finished ones that the cache lacks."""
        slots = sequences.active_slots()
        starts = sequences.start[slots]
        done = slots[sequences.unwritten[slots]]
        done_starts = sequences.start[done] - self.block_size
        positions = starts[:, None] + self._offsets
        steps = sequences.step[slots]
        masks = np.full_like(starts, self.block_size)
        if self.config.ends == "budget":
            ends = np.minimum(starts + self.block_size, sequences.length[slots])
            masks = ends - np.maximum(starts, sequences.prompt_length[slots])
        return StepRows(
            ids=sequences.tokens[slots[:, None], positions],
            starts=starts,
            slots=slots,
            done_ids=sequences.tokens[done[:, None], done_starts[:, None] + self._offsets],
            done_starts=done_starts,
            done_slots=done,
            quota=self._quotas[masks, np.minimum(sequences.step_of_block[slots], len(self.config.quotas) - 1)],
            limits=sequences.length[slots],
            uniform=uniforms(sequences.seed[slots, None], positions, np.broadcast_to(steps[:, None], positions.shape)),
        )

    def ahead(self, sequences: Sequences, rows: StepRows) -> tuple[int, int] | None:
        """The most open and the most finished rows of the next step; None where it depends on confidences."""
        if self.config.strategy == "dynamic" and self.config.threshold < 1:
            return None
        full = (rows.ids == self.mask_id).sum(1) <= rows.quota
        ended = full & (rows.starts + self.block_size >= sequences.length[rows.slots])
        return int((~ended).sum()), int((full & ~ended).sum())

    def absorb(self, sequences: Sequences, rows: StepRows, result: StepResult) -> None:
        """Write what was accepted; close blocks that are full and sequences that are finished."""
        slots = rows.slots
        sequences.unwritten[rows.done_slots] = False
        sequences.step[slots] += 1
        sequences.step_of_block[slots] += 1
        row, offset = np.nonzero(result.accepted)
        slot, position = slots[row], rows.starts[row] + offset
        sequences.tokens[slot, position] = result.tokens[row, offset]
        sequences.step_map[slot, position] = sequences.step[slot]
        sequences.log_confidence[slot, position] = result.log_confidence[row, offset]
        positions = rows.starts[:, None] + self._offsets
        block = sequences.tokens[slots[:, None], positions]
        full = (block != self.mask_id).all(1)
        answer = (positions >= sequences.prompt_length[slots, None]) & (positions < sequences.length[slots, None])
        stopped = full & (np.isin(block, sequences.stop_ids) & answer).any(1)
        ended = full & (rows.starts + self.block_size >= sequences.length[slots])
        sequences.finish(slots[stopped | ended])
        more = slots[full & ~stopped & ~ended]
        sequences.start[more] += self.block_size
        sequences.step_of_block[more] = 0
        sequences.unwritten[more] = True
