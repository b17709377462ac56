"""One token a forward, left to right, as Qwen3 decodes. The cache and the batcher are those of block diffusion.

Position i predicts token i + 1, so the prompt but for its last token is prefilled, and each step feeds one token.
"""

from __future__ import annotations

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from dice.config import stage_config
from dice.decoding.rows import Rule, StepResult, StepRows
from dice.decoding.sampling import SamplingConfig, draw, uniforms
from dice.decoding.sequences import Sequences


@stage_config
class AutoregressiveConfig:
    """How a causal model decodes."""

    sampling: SamplingConfig = SamplingConfig()
    """How a token is drawn."""
    repetition_penalty: float = Field(default=1.0, gt=0)
    """Divides the positive logits of tokens that prompt and answer have, and multiplies the negative ones, before
    anything else (the confidence is counted after it); 1 does nothing. The plain engine has it."""


class ChooseNext:
    """The next token of each row, which is always kept."""

    synchronises = False

    def __init__(self, sampling: SamplingConfig, mask_id: int | None = None) -> None:
        self.sampling = sampling
        self.mask_id = mask_id

    def __call__(self, logits: Tensor, ids: Tensor, quota: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        if self.mask_id is not None:
            logits[..., self.mask_id] = float("-inf")
        token, confidence = draw(logits, uniform, self.sampling)
        return token, confidence, torch.ones_like(ids, dtype=torch.bool)


class Autoregressive:
    """State machine of the sequences in flight. `start` is the position of the last known token."""

    block_size = 1
    rule = Rule(block_size=1, quotas=(1,), threshold=None, mask_id=None)

    def __init__(self, config: AutoregressiveConfig, mask_id: int | None = None) -> None:
        self.choose = ChooseNext(config.sampling, mask_id)

    def length_of(self, prompt: int, new: int) -> int:
        """Cache positions that a prompt and an answer need."""
        return prompt + new

    def open(self, sequences: Sequences, slot: int) -> int:
        """Returns how many prompt tokens to prefill: all but the last."""
        start = int(sequences.prompt_length[slot]) - 1
        sequences.start[slot] = start
        return start

    def rows(self, sequences: Sequences) -> StepRows:
        """The last token of every active sequence."""
        slots = sequences.active_slots()
        starts = sequences.start[slots]
        nothing = np.zeros((0, 1), np.int64)
        return StepRows(
            ids=sequences.tokens[slots, starts][:, None],
            starts=starts,
            slots=slots,
            done_ids=nothing,
            done_starts=nothing[:, 0],
            done_slots=nothing[:, 0],
            quota=np.ones_like(starts),
            uniform=uniforms(sequences.seed[slots], starts + 1, sequences.step[slots])[:, None],
        )

    def ahead(self, sequences: Sequences, rows: StepRows) -> tuple[int, int]:
        """The most open and the most finished rows of the next step; stop tokens may leave fewer."""
        return int((rows.starts + 2 < sequences.length[rows.slots]).sum()), 0

    def absorb(self, sequences: Sequences, rows: StepRows, result: StepResult) -> None:
        """Write the next tokens; close sequences that are finished."""
        slots, positions = rows.slots, rows.starts + 1
        tokens = result.tokens[:, 0]
        sequences.step[slots] += 1
        sequences.start[slots] = positions
        sequences.tokens[slots, positions] = tokens
        sequences.step_map[slots, positions] = sequences.step[slots]
        sequences.log_confidence[slots, positions] = result.log_confidence[:, 0]
        over = np.isin(tokens, sequences.stop_ids) | (positions + 1 >= sequences.length[slots])
        sequences.finish(slots[over])
