# pyright: reportCallIssue=false, reportArgumentType=false, reportGeneralTypeIssues=false
# pyright: reportMissingImports=false, reportIndexIssue=false
# (the launchers of Triton kernels have no static types)
"""The open rows of all sequences, kept on the device, so that the next step can start without waiting for the host.

Two kernels do on the device what `dice.decoding.block_diffusion` and `.autoregressive` do with a result on the host:
`line_up` lays out the rows of the next step, `advance` takes in what was chosen. Host and device both keep the state.
Answers are read from the host's, and every step checks that both continue the same number of rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl
from numpy.typing import NDArray
from torch import Tensor
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from dice.decoding.cuda_kernel import overlap
from dice.decoding.kernels import TILE_FIELDS
from dice.decoding.rows import Ints, Rule
from dice.decoding.sampling import uniforms_on_device
from dice.decoding.sequences import Sequences

_FIELDS = tl.constexpr(8)  # active, start, step, step of the block, unwritten, prompt length, length, nothing


def to_device(array: NDArray[Any], device: torch.device) -> Tensor:
    """A copy that does not wait for the GPU's earlier work."""
    tensor = torch.from_numpy(array)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


def _power(size: int) -> int:
    return max(2, triton.next_power_of_2(size))


class RowLayout:
    """Memory for the rows of a step (`open` rows of `tokens` tokens, then `done` finished ones) and for its results."""

    def __init__(self, open_: int, done: int, tokens: int, device: torch.device) -> None:
        self.open, self.done, self.tokens = open_, done, tokens
        rows = open_ + done

        def ints(*shape: int) -> Tensor:
            return torch.zeros(shape, dtype=torch.int32, device=device)

        self.ids, self.positions, self.slots = ints(rows * tokens), ints(rows * tokens), ints(rows * tokens)
        self.tiles = ints(open_, TILE_FIELDS)
        """One for a sequence's finished and open block together."""
        self.quota, self.steps = ints(open_), ints(open_)
        self.output = ints(3 * open_ * tokens + 2)
        """Tokens, acceptance and confidence (as bits) [3, open, tokens]; then the open and done rows of the next step."""


@triton.jit(do_not_specialize=["n_open", "n_done"])  # batch shapes are many; each would be compiled
def _line_up(
    state, quotas, ids, positions, slots, tiles, quota, steps, counts, n_slots, n_quotas, n_open, n_done,
    TOKENS: tl.constexpr, WIDTH: tl.constexpr, FIELDS: tl.constexpr, SLOTS: tl.constexpr,
    ROWS: tl.constexpr, PLACES: tl.constexpr, OVERLAP: tl.constexpr,
):  # fmt: skip
    if OVERLAP:
        gdc_launch_dependents()
        gdc_wait()
    slot = tl.arange(0, SLOTS)
    there = slot < n_slots
    own = state + slot * WIDTH
    active = tl.load(own, mask=there, other=0)
    start = tl.load(own + 1, mask=there, other=0)
    unwritten = tl.load(own + 4, mask=there, other=0) * active
    n = tl.sum(active, 0)
    c = tl.sum(unwritten, 0)
    rank = tl.cumsum(active, 0) - active
    done_rank = tl.cumsum(unwritten, 0) - unwritten
    tl.store(counts, 0)
    tl.store(counts + 1, 0)

    place = tl.arange(0, PLACES)
    within = (place < TOKENS)[None, :]
    is_open = (active > 0) & (rank < n_open)  # more rows than foreseen must be an error, not a stray write
    cell = rank[:, None] * TOKENS + place[None, :]
    mask = is_open[:, None] & within
    open_ids = tl.load(own[:, None] + _FIELDS + place[None, :], mask=mask, other=0)
    tl.store(ids + cell, open_ids, mask=mask)
    tl.store(positions + cell, start[:, None] + place[None, :], mask=mask)
    tl.store(slots + cell, slot[:, None] + place[None, :] * 0, mask=mask)
    block_step = tl.load(own + 3, mask=there, other=0)
    tl.store(quota + rank, tl.load(quotas + tl.minimum(block_step, n_quotas - 1), mask=is_open, other=0), mask=is_open)
    tl.store(steps + rank, tl.load(own + 2, mask=there, other=0), mask=is_open)
    first = rank * TOKENS

    is_done = (unwritten > 0) & (done_rank < n_done)
    done_first = (n_open + done_rank) * TOKENS
    cell = done_first[:, None] + place[None, :]
    mask = is_done[:, None] & within
    done_ids = tl.load(own[:, None] + _FIELDS + TOKENS + place[None, :], mask=mask, other=0)
    tl.store(ids + cell, done_ids, mask=mask)
    tl.store(positions + cell, (start - TOKENS)[:, None] + place[None, :], mask=mask)
    tl.store(slots + cell, slot[:, None] + place[None, :] * 0, mask=mask)
    # the two blocks of a sequence share a tile, so that its keys are read once
    tile = tiles + rank * FIELDS
    tl.store(tile, slot, mask=is_open)
    tl.store(tile + 1, tl.where(is_done, start - TOKENS, start), mask=is_open)
    tl.store(tile + 2, tl.where(is_done, done_first, first), mask=is_open)
    tl.store(tile + 3, tl.where(is_done, 2 * TOKENS, TOKENS), mask=is_open)
    tl.store(tile + 4, first, mask=is_open)

    # rows that nobody needs go to the slot behind the last one, and their tiles are empty
    row = tl.arange(0, ROWS)
    nothing = row * 0
    spare = ((row >= n) & (row < n_open)) | ((row >= n_open + c) & (row < n_open + n_done))
    cell = row[:, None] * TOKENS + place[None, :]
    mask = spare[:, None] & within
    tl.store(ids + cell, nothing[:, None] + place[None, :] * 0, mask=mask)
    tl.store(positions + cell, nothing[:, None] + place[None, :], mask=mask)
    tl.store(slots + cell, nothing[:, None] + place[None, :] * 0 + n_slots, mask=mask)
    empty = (row >= n) & (row < n_open)
    tl.store(tiles + row * FIELDS + 3, nothing, mask=empty)
    tl.store(quota + row, nothing, mask=empty)
    tl.store(steps + row, nothing, mask=empty)


@triton.jit(do_not_specialize=["n_open"])
def _advance(
    state, stops, slots, quota, token, confidence, accepted, output, counts, n_slots, n_stops, mask_id, threshold,
    n_open, TOKENS: tl.constexpr, WIDTH: tl.constexpr, PLACES: tl.constexpr,
    MASKS: tl.constexpr, DYNAMIC: tl.constexpr, GIVEN: tl.constexpr, OVERLAP: tl.constexpr,
):  # fmt: skip
    if OVERLAP:
        gdc_launch_dependents()
        gdc_wait()
    row = tl.program_id(0)
    slot = tl.load(slots + row * TOKENS)
    if slot < n_slots:
        own = state + slot * WIDTH
        place = tl.arange(0, PLACES)
        within = place < TOKENS
        cell = row * TOKENS + place
        chosen = tl.load(token + cell, mask=within, other=0).to(tl.int32)
        sure_of = tl.load(confidence + cell, mask=within, other=float("-inf"))
        start = tl.load(own + 1)
        length = tl.load(own + 6)
        before = tl.load(own + _FIELDS + place, mask=within, other=0)
        previous = tl.load(own + _FIELDS + TOKENS + place, mask=within, other=0)
        block_step = tl.load(own + 3)
        prompt = tl.load(own + 5)
        step = tl.load(own + 2)
        if MASKS:
            masked = (before == mask_id) & within
            if GIVEN:
                take = (tl.load(accepted + cell, mask=within, other=0) != 0) & within
            else:
                least = tl.load(quota + row)
                score = tl.where(masked, sure_of, float("-inf"))
                higher = score[None, :] > score[:, None]
                left = (score[None, :] == score[:, None]) & (place[None, :] < place[:, None])
                take = masked & (tl.sum((higher | left).to(tl.int32), 1) < least)
                if DYNAMIC:
                    certain = masked & (tl.exp(score) > threshold)
                    take = tl.where(tl.sum(certain.to(tl.int32), 0) >= least, certain, take)
            after = tl.where(take, chosen, before)
            full = tl.sum(((after == mask_id) & within).to(tl.int32), 0) == 0
            answer = within & (start + place >= prompt)
            ends = start + TOKENS >= length
        else:
            take = within
            after = chosen
            full = tl.sum(place, 0) >= 0  # a row of one token is always full
            answer = within
            ends = start + 2 >= length
        found = tl.zeros((PLACES,), tl.int32)
        for i in range(n_stops):
            found = found | ((after == tl.load(stops + i)) & answer).to(tl.int32)
        over = full & ((tl.sum(found, 0) > 0) | ends)
        more = full & (over == 0)
        tl.store(own, 1 - over.to(tl.int32))
        tl.store(own + 2, step + 1)
        if MASKS:
            tl.store(own + 1, tl.where(more, start + TOKENS, start))
            tl.store(own + 3, tl.where(more, 0, block_step + 1))
            tl.store(own + 4, more.to(tl.int32))
            tl.store(own + _FIELDS + place, tl.where(more, mask_id, after), mask=within)
            tl.store(own + _FIELDS + TOKENS + place, tl.where(more, after, previous), mask=within)
            tl.atomic_add(counts + 1, more.to(tl.int32))
        else:
            tl.store(own + 1, start + 1)
            tl.store(own + _FIELDS + place, after, mask=within)
        tl.atomic_add(counts, 1 - over.to(tl.int32))
        tl.store(output + cell, chosen, mask=within)
        tl.store(output + n_open * TOKENS + cell, take.to(tl.int32), mask=within)
        tl.store(output + 2 * n_open * TOKENS + cell, sure_of.to(tl.int32, bitcast=True), mask=within)


@triton.jit
def _deliver(output, arrivals, delivered, size, stride, BLOCK: tl.constexpr, OVERLAP: tl.constexpr):
    if OVERLAP:
        gdc_launch_dependents()
        gdc_wait()
    count = tl.load(delivered)
    for first in range(0, size, BLOCK):
        place = first + tl.arange(0, BLOCK)
        value = tl.load(output + place, mask=place < size, other=0)
        tl.store(arrivals + count % 2 * stride + place, value, mask=place < size)
    tl.store(delivered, count + 1)


class DeviceRows:
    """State [slots, fields + open and previous block] of every cache slot, and the kernels that change it."""

    def __init__(self, slots: int, rule: Rule, stop_ids: tuple[int, ...], device: torch.device) -> None:
        self.rule, self.slots = rule, slots
        self.state = torch.zeros(slots, _FIELDS.value + 2 * rule.block_size, dtype=torch.int32, device=device)
        self.seeds = torch.zeros(slots + 1, dtype=torch.int64, device=device)
        self.quotas = torch.tensor(rule.quotas, dtype=torch.int32, device=device)
        self.stops = torch.tensor(stop_ids or (-1,), dtype=torch.int32, device=device)
        self._delivered = torch.zeros(1, dtype=torch.int32, device=device)
        """Steps whose results were delivered."""

    def clear(self) -> None:
        """Forget all sequences."""
        self.state.zero_()

    def enter(self, sequences: Sequences, slots: Ints) -> None:
        """Take over the host's state of these slots."""
        size, start = self.rule.block_size, sequences.start[slots]
        places = start[:, None] + np.arange(size)
        fields = (
            sequences.active[slots], start, sequences.step[slots], sequences.step_of_block[slots],
            sequences.unwritten[slots], sequences.prompt_length[slots], sequences.length[slots], np.zeros_like(start),
        )  # fmt: skip
        done = sequences.tokens[slots[:, None], np.maximum(places - size, 0)]
        rows = np.concatenate((np.stack(fields, 1), sequences.tokens[slots[:, None], places], done), 1)
        device = self.state.device
        index = to_device(slots, device)
        self.state[index] = to_device(rows.astype(np.int32), device)
        self.seeds[index] = to_device(sequences.seed[slots].view(np.int64), device)

    def line_up(self, layout: RowLayout) -> None:
        """Lay out the rows of the next step; `layout` has room for them."""
        tokens, rows = layout.tokens, layout.open + layout.done
        _line_up[(1,)](
            self.state, self.quotas, layout.ids, layout.positions, layout.slots, layout.tiles, layout.quota,
            layout.steps, layout.output[3 * layout.open * tokens :], self.slots, len(self.quotas),
            layout.open, layout.done, TOKENS=tokens, WIDTH=self.state.shape[1], FIELDS=TILE_FIELDS,
            SLOTS=_power(self.slots), ROWS=_power(rows), PLACES=_power(tokens), **overlap(self.state),
        )  # fmt: skip

    def uniform(self, layout: RowLayout) -> Tensor:
        """Random numbers of the open rows [open, tokens], the same as the host's."""
        count, tokens = layout.open, layout.tokens
        ahead = 0 if self.rule.mask_id is not None else 1  # the position that a row predicts
        slots, positions = (part[: count * tokens].view(count, tokens) for part in (layout.slots, layout.positions))
        return uniforms_on_device(self.seeds[slots.long()], positions.long() + ahead, layout.steps.long()[:, None])

    def advance(self, layout: RowLayout, token: Tensor, confidence: Tensor, accepted: Tensor | None) -> None:
        """Take in the choice [open, tokens]; without `accepted` the rule decides what is kept."""
        rule, tokens = self.rule, layout.tokens
        given = token if accepted is None else accepted.contiguous().view(torch.int8)
        _advance[(layout.open,)](
            self.state, self.stops, layout.slots, layout.quota, token.contiguous(), confidence.contiguous(), given,
            layout.output, layout.output[3 * layout.open * tokens :], self.slots, len(self.stops),
            -1 if rule.mask_id is None else rule.mask_id, rule.threshold if rule.threshold is not None else 0.0,
            layout.open, TOKENS=tokens, WIDTH=self.state.shape[1], PLACES=_power(tokens),
            MASKS=rule.mask_id is not None, DYNAMIC=rule.threshold is not None, GIVEN=accepted is not None, num_warps=1,
            **overlap(self.state),
        )  # fmt: skip

    def deliver(self, layout: RowLayout, arrivals: Tensor) -> None:
        """Write the step's results to the host's pinned memory `arrivals` [2, n], whose two rows take turns.

        This is part of the graph, so that no copy stands between two steps.
        """
        _deliver[(1,)](
            layout.output, arrivals, self._delivered, len(layout.output), arrivals.stride(0), BLOCK=1024, num_warps=4,
            **overlap(self.state),
        )  # fmt: skip
