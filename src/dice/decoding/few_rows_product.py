"""The product of few rows with a matrix; reading the matrix once is its lower bound (csrc/small_product.cu)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dice.decoding.cuda_kernel import kernel

MOST_ROWS = 8
"""One side of the tensor cores' tile."""
STEP = 32
"""Part of the depth that the kernel takes at a time."""


@dataclass(frozen=True)
class Shape:
    """How a thread block goes through the matrix."""

    tiles: int
    """Tiles of 16 columns (gated: as many of gate and of up)."""
    steps: int
    """Steps that each warp loads ahead."""
    warps: int
    """Warps that share the depth."""
    blocks: int
    """Thread blocks that fit into the registers of a processor."""


SHAPES = {
    "gated": Shape(2, 4, 4, 4),
    "wide": Shape(2, 5, 8, 2),
    "narrow": Shape(2, 4, 16, 1),
    "short": Shape(1, 6, 16, 2),
}
"""The fastest of several, measured by decoding at batch 1 on an H200."""
LET_GO = 4
"""The next kernel may start when the loads of only this many steps are left."""
_WIDE, _SHORT = 4096, 4096
"""Columns from which on blocks of two tiles fill all processors; depth up to which most of it is loaded ahead."""


def few_rows_product(
    x: Tensor,
    w: Tensor,
    *,
    norm: Tensor | None = None,
    eps: float = 0.0,
    gated: bool = False,
    residual: Tensor | None = None,
) -> Tensor:
    """`product` for at most MOST_ROWS rows of bf16 on a GPU; the depth is a multiple of STEP."""
    rows, depth = x.shape
    columns = w.shape[0] // 2 if gated else w.shape[0]
    out = residual if residual is not None else torch.empty((rows, columns), dtype=x.dtype, device=x.device)
    kind = "gated" if gated else "wide" if columns >= _WIDE else "short" if depth <= _SHORT else "narrow"
    shape = SHAPES[kind]
    run = kernel(
        "small_product", x.device.index or 0, TILES=shape.tiles, DEPTH=shape.steps, WARPS=shape.warps, BLOCKS=shape.blocks,
        GATED=int(gated), RESIDUAL=int(residual is not None), NORM=int(norm is not None), LET_GO=LET_GO,
    )  # fmt: skip
    arguments = (x, w, out, residual, norm, float(eps), rows, columns, depth)
    run.launch(-(-columns // (16 * shape.tiles)), 32 * shape.warps, arguments, few_rows_bytes(shape, gated))
    return out


def few_rows_bytes(shape: Shape, gated: bool) -> int:
    """Bytes of shared memory of a thread block of csrc/small_product.cu."""
    parts = shape.tiles * (1 + gated)
    ring_bytes = shape.steps * 2 * parts * 32 * shape.warps * 16
    return ring_bytes + 4 * shape.warps * (parts * 16 * MOST_ROWS + MOST_ROWS)
