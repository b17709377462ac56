"""What the batcher and the model exchange in one step, and the plain implementation that runs anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dice.decoding.sampling import SamplingConfig
from dice.decoding.sequences import Sequences
from dice.model.cache import CachedAttention, KVCache
from dice.model.transformer import Transformer

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class StepRows:
    """n open rows of T tokens, whose logits are wanted, and c finished rows that only enter the cache."""

    ids: Ints
    """[n, T]"""
    starts: Ints
    """[n]: absolute position of each row's first token."""
    slots: Ints
    """[n]: cache slots."""
    done_ids: Ints
    """[c, T]"""
    done_starts: Ints
    done_slots: Ints
    quota: Ints
    """[n]: tokens to accept at least."""
    uniform: NDArray[np.float32]
    """[n, T]"""
    limits: Ints | None = None
    """[n]: positions from here on are seen by nobody; None: every row ends within its sequence."""


@dataclass(frozen=True)
class StepResult:
    """The choice at every position of the open rows; each [n, T]."""

    tokens: Ints
    log_confidence: NDArray[np.float32]
    accepted: NDArray[np.bool_]


@dataclass(frozen=True)
class Rule:
    """How a sequence continues after a step, for a device that does so without the host."""

    block_size: int
    quotas: tuple[int, ...]
    """Tokens to accept at least, by step of a block; the last entry holds for all later steps."""
    threshold: float | None
    """Log-confidence whose exponential accepts a token by itself; None: the quota alone decides."""
    mask_id: int | None
    """The token that fills a new block; None: a row is the last known token, and the next one is predicted."""


class Choose(Protocol):
    """Tokens, log-confidences and acceptance [n, T] from fp32 logits [n, T, vocab]."""

    mask_id: int | None
    sampling: SamplingConfig
    """How a token is drawn."""
    synchronises: bool
    """Whether a call waits for the device, so that it cannot be part of a CUDA graph."""

    def __call__(self, logits: Tensor, ids: Tensor, quota: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """ids [n, T], quota [n], uniform [n, T]; graph-safe unless `synchronises`."""
        ...


class Forward(Protocol):
    """The model behind the batcher.

    `begin` starts a step over all sequences that have entered; `finish` waits for it. A device that keeps the state of
    the open rows already works on the next step by then, while the host updates its own state.
    """

    cache: KVCache

    def clear(self) -> None:
        """Forget all sequences and the running step."""
        ...

    def prefill(self, prompts: Sequence[tuple[int, Ints]]) -> None:
        """Write whole blocks of tokens, from position 0 on, into the given cache slots."""
        ...

    def enter(self, sequences: Sequences, slots: Ints) -> None:
        """Add the sequences of these slots to the next step that starts."""
        ...

    def begin(self, rows: StepRows) -> None:
        """Start one forward over open and finished rows; no other step may be running."""
        ...

    def finish(self, ahead: tuple[int, int] | None) -> tuple[StepResult, int]:
        """(choices of the running step, open rows of the next step if that has started, else 0).

        ahead: the most open and the most finished rows of the next step; None where they depend on the choices.
        """
        ...


class PlainForward:
    """The readable transformer with the static cache, on any device."""

    def __init__(
        self, model: Transformer, cache: KVCache, choose: Choose, block_size: int, *, repetition_penalty: float
    ) -> None:
        self.model = model
        self.cache = cache
        self.choose = choose
        self.block_size = block_size
        self.repetition_penalty = repetition_penalty
        vocab = model.config.vocab_size if repetition_penalty != 1 else 0
        self._seen = torch.zeros(cache.slots, vocab, dtype=torch.bool, device=cache.key.device)
        """Tokens of each slot's prompt and answer."""
        self._rows: StepRows | None = None

    def clear(self) -> None:
        self._rows = None

    def enter(self, sequences: Sequences, slots: Ints) -> None:
        """The host sends everything with each step, but for the tokens that the repetition penalty remembers."""
        if self.repetition_penalty == 1:
            return
        for slot in slots.tolist():
            self._seen[slot] = False
            prompt = sequences.tokens[slot, : sequences.prompt_length[slot]]
            self._seen[slot, torch.from_numpy(prompt).to(self._seen.device)] = True

    @torch.no_grad()
    def prefill(self, prompts: Sequence[tuple[int, Ints]]) -> None:
        for slot, ids in prompts:
            self._hidden(ids[None], np.zeros(1, np.int64), np.array([slot]))

    def begin(self, rows: StepRows) -> None:
        self._rows = rows

    @torch.no_grad()
    def finish(self, ahead: tuple[int, int] | None) -> tuple[StepResult, int]:
        assert self._rows is not None
        rows, n = self._rows, len(self._rows.ids)
        hidden = self._hidden(
            np.concatenate((rows.ids, rows.done_ids)),
            np.concatenate((rows.starts, rows.done_starts)),
            np.concatenate((rows.slots, rows.done_slots)),
            rows.limits if rows.limits is None else np.concatenate((rows.limits, rows.done_starts + rows.ids.shape[1])),
        )
        logits = self.model.logits(hidden[:n]).float()
        if self.repetition_penalty != 1:
            logits = self._penalised(logits, rows)
        device = logits.device
        inputs = (torch.from_numpy(part).to(device) for part in (rows.ids, rows.quota, rows.uniform))
        tokens, confidence, accepted = self.choose(logits, *inputs)
        return StepResult(tokens.cpu().numpy(), confidence.float().cpu().numpy(), accepted.cpu().numpy()), 0

    def _penalised(self, logits: Tensor, rows: StepRows) -> Tensor:
        """Logits of tokens that were there before, divided by the penalty where positive, else multiplied (CTRL's rule,
        arXiv 1909.05858, as in transformers)."""
        slots, ids = (torch.from_numpy(part).to(logits.device) for part in (rows.slots, rows.ids))
        self._seen[slots[:, None], ids] = True
        weighed = torch.where(logits > 0, logits / self.repetition_penalty, logits * self.repetition_penalty)
        return torch.where(self._seen[slots][:, None], weighed, logits)

    def _hidden(self, ids: Ints, starts: Ints, slots: Ints, limits: Ints | None = None) -> Tensor:
        device = self.cache.key.device
        tokens = ids.shape[1]
        attend = CachedAttention(
            self.cache,
            torch.from_numpy(slots).to(device),
            torch.from_numpy(starts).to(device),
            tokens=tokens,
            block_size=self.block_size,
            longest=int(starts.max()) + tokens,
            limits=None if limits is None else torch.from_numpy(limits).to(device),
        )
        return self.model(torch.from_numpy(ids).to(device), attend.positions, attend)
