"""WeDLM's decoding (arXiv 2512.22737; Tencent/WeDLM, wedlm/engine): a causal model that fills a window of masks.

The window follows the answer's known prefix. Its filled tokens stand before its masks in the sequence that the model
sees, each with its true position for the rotary embedding, so that masks see all that is filled; keys are stored in this
order, and the filled tokens at the window's front have exactly the keys of a prefix. A step
1. moves the window behind the filled tokens at its front and appends as many masks,
2. fills every mask whose entropy, with a penalty for its distance to the first one, is below a threshold; else the one
   with the least.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from dice.config import stage_config
from dice.decoding.requests import Completion, Request, Trace, check_mask, check_no_mask, check_request
from dice.decoding.sampling import Compat, SamplingConfig, filter_logits, invert, uniforms_of
from dice.errors import DiceError
from dice.model.cache import CachedAttention, KVCache
from dice.model.transformer import Transformer


@stage_config
class WindowConfig:
    """How WeDLM decodes."""

    window: int = Field(default=16, ge=1)
    """Masks of a fresh window."""
    threshold: float | None = Field(default=0.4, ge=0)
    """Penalised entropy (nats) below which a mask is filled; None: one mask a forward."""
    position_penalty: float = Field(default=0.02, ge=0)
    """Added to the entropy for each position behind the first mask."""
    sampling: SamplingConfig = SamplingConfig(temperature=0.2)
    """How a token is drawn: top-k, then top-p, then temperature."""
    compat: Compat = "none"
    """`released`: the mask token may be chosen."""

    def positions(self, prompt: int, new: int) -> int:
        """Cache positions that a prompt and an answer need: the window reaches beyond the answer's end."""
        return prompt + new + 2 * self.window


@dataclass
class _Window:
    """One answer that is being made. The arrays are as long as the answer and the windows behind it."""

    request: Request
    tokens: NDArray[np.int64]
    """Behind the prompt."""
    filled: NDArray[np.bool_]
    step_map: NDArray[np.int64]
    log_confidence: NDArray[np.float32]
    end: int
    """End of the window; it starts at `known`."""
    known: int = 0
    """Tokens of the answer whose keys are in the cache."""
    forwards: int = 0
    began: float = 0.0

    @property
    def prefix(self) -> int:
        """Tokens of the answer before its first mask."""
        return int(np.argmin(self.filled))

    def order(self) -> NDArray[np.int64]:
        """Places of the window: filled ones, then masks."""
        places = np.arange(self.known, self.end)
        return np.concatenate((places[self.filled[places]], places[~self.filled[places]]))


class WindowDecoder:
    """Decodes with one model, several answers at a time. `max_length` bounds prompt, answer and two windows."""

    def __init__(
        self,
        model: Transformer,
        config: WindowConfig,
        *,
        mask_id: int | None,
        stop_ids: Iterable[int],
        max_batch: int,
        max_length: int,
    ) -> None:
        if mask_id is None:
            raise DiceError("a model that fills a window needs the id of the mask token.")
        weight = model.lm_head.weight
        self.model, self.config, self.mask_id = model, config, mask_id
        self.vocab_size = int(weight.shape[0])
        check_mask(mask_id, self.vocab_size)
        self.stop_ids = np.array(sorted(stop_ids), np.int64)
        self.cache = KVCache(model.config, max_batch, max_length, dtype=weight.dtype, device=weight.device)
        self.steps = 0
        """Forwards of the whole batch so far, prefill not counted."""

    def check(self, request: Request) -> None:
        """Raises DiceError for a request that cannot be decoded."""
        check_request(request, self.vocab_size)
        check_no_mask(request.prompt, self.mask_id)
        needed = self.config.positions(len(request.prompt), request.max_new_tokens)
        if needed > self.cache.max_length:
            raise DiceError(
                f"prompt, answer and windows take {needed} positions; the cache has {self.cache.max_length}."
            )

    def run(self, requests: Iterable[Request]) -> Iterator[Completion]:
        """Yield completions as they finish. A request is taken from the iterable when a slot is free."""
        waiting = iter(requests)
        held: dict[int, _Window] = {}
        free = list(range(self.cache.slots - 1, -1, -1))
        while True:
            while free and (request := next(waiting, None)) is not None:
                self.check(request)
                slot = free.pop()
                held[slot] = self._open(request, slot)
            if not held:
                return
            self._step(held)
            self.steps += 1
            for slot, window in list(held.items()):
                if (length := self._length(window)) is not None:
                    del held[slot]
                    free.append(slot)
                    yield self._completion(window, length)

    @torch.no_grad()
    def _open(self, request: Request, slot: int) -> _Window:
        """Run the prompt; a window of masks behind it."""
        began = time.perf_counter()
        self._hidden(
            np.array([request.prompt]), np.arange(len(request.prompt))[None], np.array([slot]), np.zeros(1, np.int64)
        )
        room = request.max_new_tokens + 2 * self.config.window + 1  # the last place stays a mask
        return _Window(
            request=request,
            tokens=np.full(room, self.mask_id, np.int64),
            filled=np.zeros(room, np.bool_),
            step_map=np.zeros(room, np.int64),
            log_confidence=np.zeros(room, np.float32),
            end=self.config.window,
            began=began,
        )

    @torch.no_grad()
    def _step(self, held: dict[int, _Window]) -> None:
        """One forward of all windows; each gets new tokens and moves."""
        windows = list(held.values())
        for window in windows:
            window.forwards += 1
            window.end += window.prefix - window.known
        orders = [window.order() for window in windows]
        width = max(map(len, orders))  # causal: what stands behind a row's last mask is seen by none of its tokens
        ids = np.full((len(windows), width), self.mask_id, np.int64)
        positions = np.zeros((len(windows), width), np.int64)
        for row, (window, order) in enumerate(zip(windows, orders, strict=True)):
            ids[row, : len(order)] = window.tokens[order]
            positions[row, : len(order)] = order + len(window.request.prompt)
        starts = np.array([len(window.request.prompt) + window.known for window in windows])
        hidden = self._hidden(ids, positions, np.array(list(held)), starts)
        for row, (window, order) in enumerate(zip(windows, orders, strict=True)):
            window.known = window.prefix
            masks = order[~window.filled[order]]
            self._fill(window, masks, hidden[row, len(order) - len(masks) : len(order)])

    def _fill(self, window: _Window, masks: NDArray[np.int64], hidden: Tensor) -> None:
        """Fill some of these masks of the window; hidden [masks, hidden]."""
        config = self.config
        logits = self.model.logits(hidden).float()
        if config.compat == "none":
            logits[:, self.mask_id] = float("-inf")
        log_shares = logits - logits.logsumexp(-1, keepdim=True)
        entropy = -(log_shares.clamp(min=torch.finfo(log_shares.dtype).min) * log_shares.softmax(-1)).sum(-1)
        score = entropy.cpu() + torch.from_numpy(masks - masks[0]).float() * config.position_penalty
        sure = torch.zeros_like(score, dtype=torch.bool) if config.threshold is None else score < config.threshold
        if not sure.any():
            sure[score.argmin()] = True
        if config.sampling.temperature == 0:
            token = logits.argmax(-1)
        else:
            uniform = uniforms_of(window.request.seed, masks + len(window.request.prompt), window.forwards)
            shares = filter_logits(logits, config.sampling, ("top_k", "top_p", "temperature")).softmax(-1)
            token = invert(shares, torch.from_numpy(uniform).to(shares.device))
        chosen = log_shares.gather(-1, token[:, None])[:, 0].cpu().numpy()
        places = masks[sure.numpy()]
        window.tokens[places] = token.cpu().numpy()[sure.numpy()]
        window.filled[places] = True
        window.step_map[places] = window.forwards
        window.log_confidence[places] = chosen[sure.numpy()]

    def _hidden(
        self, ids: NDArray[np.int64], positions: NDArray[np.int64], slots: NDArray[np.int64], starts: NDArray[np.int64]
    ) -> Tensor:
        """Hidden states of rows [n, tokens] that are stored from `starts` [n] on; `positions` are the rotary ones."""
        device = self.cache.key.device
        attend = CachedAttention(
            self.cache,
            torch.from_numpy(slots).to(device),
            torch.from_numpy(starts).to(device),
            tokens=ids.shape[1],
            block_size=1,
            longest=int(starts.max()) + ids.shape[1],
        )
        return self.model(torch.from_numpy(ids).to(device), torch.from_numpy(positions).to(device), attend)

    def _length(self, window: _Window) -> int | None:
        """Tokens of the finished answer; None: it is not finished. Later steps cannot change its known prefix."""
        budget = window.request.max_new_tokens
        ends = np.flatnonzero(np.isin(window.tokens[: min(window.prefix, budget)], self.stop_ids))
        if len(ends):
            return int(ends[0]) + 1
        return budget if window.prefix >= budget else None

    def _completion(self, window: _Window, length: int) -> Completion:
        parts = (window.tokens, window.step_map, window.log_confidence)
        trace = Trace(*(tuple(part[:length].tolist()) for part in parts))
        return Completion(
            request=window.request,
            ids=trace.ids,
            step_map=trace.step_map,
            log_confidence=trace.log_confidence,
            n_forwards=window.forwards + 1,
            seconds=time.perf_counter() - window.began,
            finish_reason="stop" if np.isin(trace.ids[-1], self.stop_ids) else "length",
            trace=trace,
        )
