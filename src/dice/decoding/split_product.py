# pyright: reportCallIssue=false, reportArgumentType=false, reportGeneralTypeIssues=false
# pyright: reportMissingImports=false, reportIndexIssue=false, reportPossiblyUnboundVariable=false
# (the launchers of Triton kernels have no static types)
"""Products of some tens of rows: weights are the first operand of the tensor cores, and programs share the depth.

At 16 to 64 rows a product is bound by reading its weights, as it is at 8, but there are too many rows for every lane to
read them by itself: tiles of both operands go through shared memory, several steps ahead. A matrix with few columns has
too few tiles to keep the memory busy, so several programs share the depth of one; the last to arrive adds their sums, in
a fixed order, so the result does not depend on who that was.
"""

from __future__ import annotations

from functools import cache

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from dice.decoding.launch import overlap

STEP = 64
"""Depth of one step; a product's depth is a multiple of it."""
MOST_ROWS = 64
"""Rows of the largest tile: beyond, products are no longer bound by their weights."""
_COLUMNS = 64
"""Rows of the weights that a program takes (twice as many where they are gate and up)."""
_PROGRAMS = 264
"""Programs that keep an H200's memory busy: two for each of its processors."""
_HEAD = 64
"""Depth whose weights are loaded before the program waits for the kernel before it."""
_STAGES = (5, 3)
"""Steps under way, without and with the gate."""


@triton.jit
def _split_product(
    x, w, out, part, arrived, rows, columns, depth,
    SPLITS: tl.constexpr, WIDE: tl.constexpr, ROWS: tl.constexpr, STEP: tl.constexpr,
    HEAD: tl.constexpr, GATED: tl.constexpr, RESIDUAL: tl.constexpr, PRECISION: tl.constexpr, OVERLAP: tl.constexpr,
):  # fmt: skip
    tile = tl.program_id(0)
    split = tl.program_id(1)
    column = tile * WIDE + tl.arange(0, WIDE)
    own = w + tl.minimum(column, columns - 1).to(tl.int64) * depth
    span = tl.cdiv(tl.cdiv(depth, STEP), SPLITS) * STEP
    low = split * span
    high = tl.minimum(low + span, depth)
    half = columns.to(tl.int64) * depth
    row = tl.arange(0, ROWS)
    there = (row < rows)[None, :]
    inner = tl.arange(0, STEP)
    sums = tl.zeros((WIDE, ROWS), tl.float32)
    up_sums = tl.zeros((WIDE, ROWS), tl.float32)
    if HEAD > 0:  # these weights are on their way while the program waits
        front = low + tl.arange(0, HEAD)
        first = tl.load(own[:, None] + front[None, :])
        if GATED:
            first_up = tl.load(own[:, None] + half + front[None, :])
    if OVERLAP:
        gdc_wait()
    if HEAD > 0:
        front_inputs = tl.load(x + row[None, :] * depth + front[:, None], mask=there, other=0.0)
        sums = tl.dot(first, front_inputs, sums, input_precision=PRECISION)
        if GATED:
            up_sums = tl.dot(first_up, front_inputs, up_sums, input_precision=PRECISION)
    for start in range(low + HEAD, high, STEP):
        place = start + inner
        inputs = tl.load(x + row[None, :] * depth + place[:, None], mask=there, other=0.0)
        sums = tl.dot(tl.load(own[:, None] + place[None, :]), inputs, sums, input_precision=PRECISION)
        if GATED:
            up = tl.load(own[:, None] + half + place[None, :])
            up_sums = tl.dot(up, inputs, up_sums, input_precision=PRECISION)
    if OVERLAP:
        gdc_launch_dependents()
    last = split >= 0
    if SPLITS > 1:
        cell = tl.arange(0, WIDE)[:, None] * ROWS + row[None, :]
        size: tl.constexpr = WIDE * ROWS * (2 if GATED else 1)
        mine = part + (tile * SPLITS + split).to(tl.int64) * size
        tl.store(mine + cell, sums)
        if GATED:
            tl.store(mine + WIDE * ROWS + cell, up_sums)
        tl.debug_barrier()
        last = tl.atomic_add(arrived + tile, 1, sem="acq_rel") == SPLITS - 1
        if last:
            sums = tl.zeros((WIDE, ROWS), tl.float32)
            up_sums = tl.zeros((WIDE, ROWS), tl.float32)
            for other in tl.static_range(SPLITS):
                theirs = part + (tile * SPLITS + other).to(tl.int64) * size
                sums += tl.load(theirs + cell, cache_modifier=".cg")
                if GATED:
                    up_sums += tl.load(theirs + WIDE * ROWS + cell, cache_modifier=".cg")
            tl.store(arrived + tile, 0)
    if last:
        target = out + row[None, :] * columns + column[:, None]
        mask = there & (column < columns)[:, None]
        if GATED:
            sums = sums * tl.sigmoid(sums) * up_sums
        if RESIDUAL:
            sums += tl.load(target, mask=mask, other=0.0).to(tl.float32)
        tl.store(target, sums.to(out.dtype.element_ty), mask=mask)


@cache
def _arrivals(device: torch.device) -> Tensor:
    return torch.zeros(8192, dtype=torch.int32, device=device)


def split_product(x: Tensor, w: Tensor, *, gated: bool = False, residual: Tensor | None = None) -> Tensor:
    """x @ w.T, or silu(gate) * up of it; `residual` is added to in place. At most 64 rows, depth a multiple of 64."""
    rows, depth = x.shape
    columns = w.shape[0] // 2 if gated else w.shape[0]
    out = residual if residual is not None else torch.empty((rows, columns), dtype=x.dtype, device=x.device)
    tiles = triton.cdiv(columns, _COLUMNS)
    splits = max(1, min(_PROGRAMS // tiles, depth // (4 * STEP)))
    steps = depth // STEP
    least = steps - (splits - 1) * -(-steps // splits)  # of the last program
    head = _HEAD if least * STEP >= _HEAD else 0
    padded = max(16, triton.next_power_of_2(rows))
    part = torch.empty(splits * tiles * _COLUMNS * padded * (1 + gated) if splits > 1 else 1, device=x.device)
    _split_product[(tiles, splits)](
        x, w, out, part, _arrivals(x.device), rows, columns, depth,
        SPLITS=splits, WIDE=_COLUMNS, ROWS=padded, STEP=STEP, HEAD=head, GATED=gated, RESIDUAL=residual is not None,
        PRECISION="ieee" if x.dtype == torch.float32 else "tf32",
        num_warps=4, num_stages=_STAGES[gated], **overlap(x),
    )  # fmt: skip
    return out
