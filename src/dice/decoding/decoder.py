"""Continuous batching: requests enter free cache slots, finished sequences leave, a step runs over all that are there.

A sequence's tokens depend only on its prompt and seed, not on the rest of the batch (up to the rounding of matrix
products of other shapes).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Literal

import numpy as np

from dice.decoding.autoregressive import Autoregressive, AutoregressiveConfig
from dice.decoding.block_diffusion import BlockDiffusion, BlockDiffusionConfig
from dice.decoding.memory import PREFILL_TOKENS
from dice.decoding.requests import Completion, Request, Trace, check_mask, check_request
from dice.decoding.rows import Forward, PlainForward, StepRows
from dice.decoding.sequences import Sequences
from dice.errors import DiceError, HarnessError
from dice.model.cache import KVCache
from dice.model.transformer import ModelConfig, Transformer

Engine = Literal["plain", "fast"]


def lacks_fast(model: ModelConfig, config: BlockDiffusionConfig | AutoregressiveConfig) -> str | None:
    """What this model's decoding needs and the fast engine does not have; None: nothing."""
    if not model.qk_norm:
        return "heads without a norm"
    if model.attention_bias:
        return "bias of query, key and value"
    if isinstance(config, AutoregressiveConfig) and config.repetition_penalty != 1:
        return "repetition penalty"
    if isinstance(config, BlockDiffusionConfig) and config.ends == "budget":
        return "partial last block"
    return None


class Decoder:
    """Decodes with one model. Its weights may change between calls of `run`: no copy of them is kept.

    `mask_id` is needed for block diffusion; a causal model that has a mask token never emits it. `max_length` bounds
    prompt and answer together. `engine="fast"` (CUDA graphs, Triton and CUDA kernels) needs a GPU.
    """

    def __init__(
        self,
        model: Transformer,
        config: BlockDiffusionConfig | AutoregressiveConfig,
        *,
        mask_id: int | None,
        stop_ids: Iterable[int],
        max_batch: int,
        max_length: int,
        engine: Engine = "plain",
    ) -> None:
        if isinstance(config, BlockDiffusionConfig):
            if mask_id is None:
                raise DiceError("block diffusion needs the id of the mask token.")
            self.algorithm = BlockDiffusion(config, mask_id)
        else:
            self.algorithm = Autoregressive(config, mask_id)
        weight = model.lm_head.weight
        check_mask(mask_id, weight.shape[0])
        self.stop_ids = tuple(stop_ids)
        block = self.algorithm.block_size
        self.max_length = -(-max_length // block) * block
        cache = KVCache(model.config, max_batch, self.max_length, dtype=weight.dtype, device=weight.device)
        self.forward: Forward
        if engine == "fast":
            if reason := lacks_fast(model.config, config):
                raise DiceError(f"the fast engine has no {reason}; use engine 'plain'.")
            from dice.decoding.fast import FastForward

            self.forward = FastForward(model, cache, self.algorithm.choose, self.algorithm.rule, self.stop_ids)
        else:
            penalty = config.repetition_penalty if isinstance(config, AutoregressiveConfig) else 1.0
            self.forward = PlainForward(model, cache, self.algorithm.choose, block, repetition_penalty=penalty)
        self.max_batch = max_batch
        self.vocab_size = int(weight.shape[0])
        self.steps = 0
        """Forwards of the whole batch so far, prefill not counted."""

    def check(self, request: Request) -> None:
        """Raises DiceError for a request that cannot be decoded."""
        check_request(request, self.vocab_size)
        needed = self.algorithm.length_of(len(request.prompt), request.max_new_tokens)
        if needed > self.max_length:
            raise DiceError(
                f"a prompt of {len(request.prompt)} tokens and {request.max_new_tokens} new ones need {needed} "
                f"positions, and the cache has {self.max_length}; raise max_length or shorten one of them."
            )

    def run(self, requests: Iterable[Request]) -> Iterator[Completion]:
        """Yield completions as they finish. A request is taken from the iterable when a slot is free."""
        sequences = Sequences(self.max_batch, self.max_length, self.stop_ids)
        held: dict[int, tuple[Request, float, int]] = {}
        waiting = iter(requests)
        free = list(range(self.max_batch - 1, -1, -1))
        exhausted = False
        rows: StepRows | None = None  # of the step under way
        self.forward.clear()
        while True:
            if not exhausted and free:
                exhausted = self._admit(waiting, free, sequences, held)
            if rows is None:
                if not held:
                    return
                rows = self.algorithm.rows(sequences)
                self.forward.begin(rows)
            result, following = self.forward.finish(self.algorithm.ahead(sequences, rows))
            self.algorithm.absorb(sequences, rows, result)
            self.steps += 1
            rows = self.algorithm.rows(sequences) if following else None
            if rows is not None and len(rows.slots) != following:
                raise HarnessError(f"decoding: the device continues {following} rows, the host {len(rows.slots)}.")
            for slot in sequences.take_finished():
                request, started, prefilled = held.pop(slot)
                free.append(slot)
                yield self._completion(sequences, slot, request, time.perf_counter() - started, prefilled)

    def _admit(
        self,
        waiting: Iterator[Request],
        free: list[int],
        sequences: Sequences,
        held: dict[int, tuple[Request, float, int]],
    ) -> bool:
        """Fill free slots and prefill their prompts; returns whether no request is left.

        The device works on the first prompts while the host prepares the next ones.
        """
        part: list[tuple[int, np.ndarray]] = []
        size = 0
        entered: list[int] = []
        exhausted = False
        while free:
            request = next(waiting, None)
            if request is None:
                exhausted = True
                break
            self.check(request)
            slot = free.pop()
            prompt = np.array(request.prompt, np.int64)
            length = self.algorithm.length_of(len(prompt), request.max_new_tokens)
            sequences.enter(slot, prompt, length, request.seed)
            tokens = self.algorithm.open(sequences, slot)
            entered.append(slot)
            held[slot] = (request, time.perf_counter(), int(tokens > 0))
            if not tokens:
                continue
            if part and size + tokens > PREFILL_TOKENS:
                self.forward.prefill(part)
                part, size = [], 0
            part.append((slot, prompt[:tokens]))
            size += tokens
        if part:
            self.forward.prefill(part)
        if entered:
            self.forward.enter(sequences, np.array(entered))
        return exhausted

    def _completion(
        self, sequences: Sequences, slot: int, request: Request, seconds: float, prefilled: int
    ) -> Completion:
        start = len(request.prompt)
        fixed_in = sequences.step_map[slot, start : int(sequences.length[slot])]
        # Without gaps: blocks are filled one after the other, and the last one to its end.
        decoded = slice(start, start + int(np.count_nonzero(fixed_in)))
        trace = Trace(
            tuple(sequences.tokens[slot, decoded].tolist()),
            tuple(sequences.step_map[slot, decoded].tolist()),
            tuple(sequences.log_confidence[slot, decoded].tolist()),
        )
        end = min(request.max_new_tokens, len(trace.ids))
        stops = np.flatnonzero(np.isin(sequences.tokens[slot, start : start + end], sequences.stop_ids))
        end = int(stops[0]) + 1 if len(stops) else end
        return Completion(
            request=request,
            ids=trace.ids[:end],
            step_map=trace.step_map[:end],
            log_confidence=trace.log_confidence[:end],
            n_forwards=int(sequences.step[slot]) + prefilled,
            seconds=seconds,
            finish_reason="stop" if len(stops) else "length",
            trace=trace,
        )
