"""Decoding of models that see all positions at once: masks behind the prompt are filled in the order of a schedule.

A canvas is the prompt and as many masks as the answer may have tokens. Every step runs the whole canvas through the
model, without a cache, and fixes some masks; a token that was fixed never changes. Which masks, and by what score, says
a `Schedule`: LLaDA's (`dice.decoding.llada`) or Dream's (`dice.decoding.dream`).

Canvases of any length are decoded together, one behind the other: no padding. The head runs over masks that compete.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dice.decoding.memory import CANVAS_LOGITS
from dice.decoding.requests import Completion, Request, Trace, check_mask, check_no_mask, check_request
from dice.decoding.sampling import Compat
from dice.errors import DiceError
from dice.model.attention_masks import PackedAttention
from dice.model.families import FAMILIES
from dice.model.transformer import Transformer


class Plan(Protocol):
    """The schedule of one answer."""

    def next(self, masked: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], int] | None:
        """(masks that compete [n], how many of them are fixed) of the next step that fixes any; None: there is none.

        masked [n]: the answer's masks.
        """
        ...

    @property
    def step(self) -> int:
        """The step that `next` gave last, from 1; steps that fix nothing are counted too."""
        ...


class Schedule(Protocol):
    """How a family fills a canvas."""

    compat: Compat
    """`released`: the mask token may be chosen, and ties are broken by torch.topk over the whole canvas."""

    def check(self, max_new_tokens: int) -> None:
        """Raises DiceError for a length that the schedule cannot fill."""
        ...

    def plan(self, max_new_tokens: int, seed: int, start: int) -> Plan:
        """The schedule of an answer that begins at position `start`."""
        ...

    def choose(self, logits: Tensor, seed: int, positions: NDArray[np.int64], step: int) -> tuple[Tensor, Tensor]:
        """(token, score), each [m], of fp32 logits [m, vocab] at absolute positions [m]; the best scores are fixed."""
        ...

    def order(
        self, score: NDArray[np.float32], seed: int, positions: NDArray[np.int64], step: int
    ) -> NDArray[np.floating]:
        """The scores [m] by which positions are ranked; a schedule may add noise."""
        ...


class _Canvas:
    """One answer that is being made."""

    def __init__(self, request: Request, plan: Plan, mask_id: int) -> None:
        n = request.max_new_tokens
        self.request, self.plan, self.mask_id = request, plan, mask_id
        self.start = len(request.prompt)
        self.tokens = np.concatenate((np.array(request.prompt, np.int64), np.full(n, mask_id)))
        self.step_map = np.zeros(n, np.int64)
        self.log_confidence = np.zeros(n, np.float32)
        self.forwards = 0
        self.began = time.perf_counter()

    @property
    def answer(self) -> NDArray[np.int64]:
        """The tokens behind the prompt [n]; writing to it writes to the canvas."""
        return self.tokens[self.start :]

    def is_final(self, stop_ids: NDArray[np.int64]) -> bool:
        """Whether later steps cannot change the text up to its first end token: no mask is left before that."""
        ends = np.flatnonzero(np.isin(self.answer, stop_ids))
        return len(ends) > 0 and not (self.answer[: ends[0]] == self.mask_id).any()

    def write(self, places: NDArray[np.int64], tokens: NDArray[np.int64], log_confidence: NDArray[np.float32]) -> None:
        """Fix tokens at these places of the answer."""
        self.answer[places] = tokens
        self.step_map[places] = self.forwards
        self.log_confidence[places] = log_confidence

    def completion(self, stop_ids: NDArray[np.int64]) -> Completion:
        """The answer, cut behind its first end token."""
        ends = np.flatnonzero(np.isin(self.answer, stop_ids))
        length = int(ends[0]) + 1 if len(ends) else len(self.answer)
        trace = Trace(tuple(self.answer.tolist()), tuple(self.step_map.tolist()), tuple(self.log_confidence.tolist()))
        return Completion(
            request=self.request,
            ids=trace.ids[:length],
            step_map=trace.step_map[:length],
            log_confidence=trace.log_confidence[:length],
            n_forwards=self.forwards,
            seconds=time.perf_counter() - self.began,
            finish_reason="stop" if len(ends) else "length",
            trace=trace,
        )


class CanvasDecoder:
    """Decodes with one model, `max_batch` canvases at a time, each of at most `max_length` positions.

    `early_stop`: a canvas leaves when the text up to its first end token is final. The answer stays the same;
    `n_forwards` and `seconds` shrink, and behind the end the trace keeps masks (step 0).
    Without stop ids (`compat: released`) the whole canvas is the answer, as the vendors' loops return it.
    """

    def __init__(
        self,
        model: Transformer,
        schedule: Schedule,
        *,
        mask_id: int | None,
        stop_ids: Iterable[int],
        max_batch: int,
        max_length: int,
        early_stop: bool = True,
    ) -> None:
        if mask_id is None:
            raise DiceError("a model that fills a canvas needs the id of the mask token.")
        self.model, self.schedule, self.mask_id = model, schedule, mask_id
        self.vocab_size = int(model.lm_head.weight.shape[0])
        check_mask(mask_id, self.vocab_size)
        self.stop_ids = np.array(sorted(stop_ids), np.int64)
        self.max_batch, self.max_length, self.early_stop = max_batch, max_length, early_stop
        self.shift = int(FAMILIES[model.config.model_type].predicts_next)
        self.steps = 0
        """Forwards of the whole batch so far."""

    def check(self, request: Request) -> None:
        """Raises DiceError for a request that cannot be decoded."""
        check_request(request, self.vocab_size)
        check_no_mask(request.prompt, self.mask_id)
        self.schedule.check(request.max_new_tokens)
        if (length := len(request.prompt) + request.max_new_tokens) > self.max_length:
            raise DiceError(f"prompt and answer take {length} positions, and {self.max_length} were planned.")

    def run(self, requests: Iterable[Request]) -> Iterator[Completion]:
        """Yield completions as they finish. A request is taken from the iterable when another one has left."""
        waiting = iter(requests)
        held: list[_Canvas] = []
        while True:
            while len(held) < self.max_batch and (request := next(waiting, None)) is not None:
                self.check(request)
                plan = self.schedule.plan(request.max_new_tokens, request.seed, len(request.prompt))
                held.append(_Canvas(request, plan, self.mask_id))
            if not held:
                return
            moves = [canvas.plan.next(canvas.answer == self.mask_id) for canvas in held]
            open_ = [(canvas, *move) for canvas, move in zip(held, moves, strict=True) if move is not None]
            done = [canvas for canvas, move in zip(held, moves, strict=True) if move is None]
            if open_:
                self._step(open_)
                self.steps += 1
            if self.early_stop:
                done += [canvas for canvas, *_ in open_ if canvas.is_final(self.stop_ids)]
            held = [canvas for canvas in held if canvas not in done]
            for canvas in done:
                yield canvas.completion(self.stop_ids)

    @torch.no_grad()
    def _step(self, moves: list[tuple[_Canvas, NDArray[np.bool_], int]]) -> None:
        """One forward of these canvases, and their choices."""
        device = self.model.lm_head.weight.device
        lengths = [len(canvas.tokens) for canvas, *_ in moves]
        ids = torch.from_numpy(np.concatenate([canvas.tokens for canvas, *_ in moves])).to(device)
        positions = torch.from_numpy(np.concatenate([np.arange(length) for length in lengths])).to(device)
        hidden = self.model(ids[None], positions[None], PackedAttention(lengths))[0]
        for (canvas, competing, quota), seen in zip(moves, hidden.split(lengths), strict=True):
            canvas.forwards += 1
            self._fix(canvas, np.flatnonzero(competing), quota, seen)

    def _fix(self, canvas: _Canvas, places: NDArray[np.int64], quota: int, hidden: Tensor) -> None:
        """Choose tokens at these places of the answer and fix the best; hidden [length, hidden]."""
        seed, step = canvas.request.seed, canvas.plan.step
        positions = places + canvas.start
        read = torch.from_numpy(np.maximum(positions - self.shift, 0)).to(hidden.device)
        found: list[list[Tensor]] = []
        for first in range(0, len(places), CANVAS_LOGITS):
            part = slice(first, first + CANVAS_LOGITS)
            logits = self.model.logits(hidden[read[part]]).float()
            if self.schedule.compat == "none":
                logits[:, self.mask_id] = float("-inf")
            token, score = self.schedule.choose(logits, seed, positions[part], step)
            log_confidence = logits.gather(-1, token[:, None])[:, 0] - logits.logsumexp(-1)
            found.append([token, score, log_confidence])
        token, score, log_confidence = (torch.cat(parts) for parts in zip(*found, strict=True))
        ranked = self.schedule.order(score.float().cpu().numpy(), seed, positions, step)
        if self.schedule.compat == "released":
            whole = torch.full((len(canvas.tokens),), float("-inf"), device=hidden.device)
            whole[torch.from_numpy(positions).to(hidden.device)] = torch.from_numpy(ranked).to(whole)
            best = np.searchsorted(positions, torch.topk(whole, quota).indices.cpu().numpy())
        else:
            best = np.argsort(-ranked, kind="stable")[:quota]
        canvas.write(places[best], token.cpu().numpy()[best], log_confidence.float().cpu().numpy()[best])
