"""The product of few rows with a matrix, bound by reading the matrix once (csrc/small_product.cu)."""

from __future__ import annotations

import torch
from torch import Tensor

from dice.decoding.cuda_kernel import kernel

SHAPES = {"gated": (2, 4, 4), "wide": (2, 4, 8), "narrow": (1, 4, 16), "gated, more rows": (3, 4, 4)}
"""Tiles of 16 columns a block, steps loaded ahead, warps that share the depth. The fastest of some that were tried in whole
decoding at batch 1 on an H200; the last one, from 9 rows on, was not measured."""
STEP = 32
"""Depth that the kernel takes at a time."""
_LET_GO = 1
"""When it lets the next kernel start: when all its loads are under way."""
_WIDE = 4096
"""Columns that are enough blocks of two tiles for every processor."""


def few_rows_product(
    x: Tensor,
    w: Tensor,
    *,
    norm: Tensor | None = None,
    eps: float = 0.0,
    gated: bool = False,
    residual: Tensor | None = None,
) -> Tensor:
    """`product` for at most 32 rows of bf16 on a GPU; the depth is a multiple of 32."""
    rows, depth = x.shape
    columns = w.shape[0] // 2 if gated else w.shape[0]
    out = residual if residual is not None else torch.empty((rows, columns), dtype=x.dtype, device=x.device)
    most = 8 if rows <= 8 else 32
    kind = ("gated" if most == 8 else "gated, more rows") if gated else "wide" if columns >= _WIDE else "narrow"
    tiles, steps, warps = SHAPES[kind]
    run = kernel(
        "small_product", x.device.index or 0, ROWS=most, TILES=tiles, DEPTH=steps, WARPS=warps, GATED=int(gated),
        RESIDUAL=int(residual is not None), NORM=int(norm is not None), LET_GO=_LET_GO,
    )  # fmt: skip
    arguments = (x, w, out, residual, norm, float(eps), rows, columns, depth)
    shared_bytes = few_rows_bytes(most, tiles * (1 + gated), steps, warps)
    run.launch(-(-columns // (16 * tiles)), 32 * warps, arguments, shared_bytes)
    return out


def few_rows_bytes(rows: int, parts: int, steps: int, warps: int) -> int:
    """Shared memory of a block of csrc/small_product.cu whose warps hold `parts` tiles of weights."""
    ring, sums = steps * 2 * parts * 32 * warps * 16, warps * (parts * rows * 64 + 4 * rows)
    return ring + sums if rows == 8 else max(ring, sums)
