"""Products of some tens of rows, whose weights are read once by blocks that share the depth (csrc/cluster_product.cu).

With 9 to 64 rows reading the weights is still what takes the time, and cuBLAS reads them nearly as fast as can be; but norm,
gate, and adding up what programs that share the depth have found are kernels of their own, about 14 of 95 microseconds
of a layer at the 4B geometry. Here they are part of the product: blocks of a cluster share the depth and add their
sums through shared memory, in a fixed order.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dice.decoding.cuda_kernel import kernel

MOST_ROWS = 64
"""Beyond, products are no longer bound by reading the weights."""
STEP = 64
"""Depth that the kernel takes at a time."""
SHAPES = {"gated": (1, 4), "plain": (2, 4)}
"""Tiles of 16 columns a warp, steps of the ring."""
BLOCKS = 264
"""Blocks that sharing the depth may not exceed: two for each processor of an H200 lie there at once."""
WARPS = 4
_LET_GO = 1
"""When it lets the next kernel start: when all its loads are under way."""


@dataclass(frozen=True)
class ClusterShape:
    """How the kernel is compiled and launched for a product."""

    defines: dict[str, int]
    blocks: int
    shared_bytes: int


def cluster_shape(rows: int, columns: int, depth: int, *, gated: bool, normed: bool) -> ClusterShape:
    """Few columns: more blocks share the depth, as long as each fills its ring and all lie on the GPU at once."""
    tiles, ring = SHAPES["gated" if gated else "plain"]
    padded = next(size for size in (16, 32, MOST_ROWS) if rows <= size)
    width = WARPS * tiles * 16
    blocks, steps = -(-columns // width), depth // STEP
    splits = next(n for n in (8, 4, 2, 1) if n == 1 or (n * blocks <= BLOCKS and steps >= n * ring))
    slot_bytes = 2 * STEP * (width * (1 + gated) + padded)
    behind_bytes = 2 * STEP * -(-steps // splits) + 8 * padded  # the norm's weights, and sums of squares
    sums_bytes = 4 * (1 + gated) * padded * (width + 4)  # take the place of the ring
    defines = {
        "WARPS": WARPS, "TILES": tiles, "ROWS": padded, "DEPTH": ring, "SPLITS": splits,
        "GATED": int(gated), "NORM": int(normed),
    }  # fmt: skip
    return ClusterShape(defines, blocks * splits, max(ring * slot_bytes, sums_bytes) + behind_bytes)


def cluster_product(
    x: Tensor,
    w: Tensor,
    *,
    norm: Tensor | None = None,
    eps: float = 0.0,
    gated: bool = False,
    residual: Tensor | None = None,
) -> Tensor:
    """`dice.decoding.products.product` for at most 64 rows of bf16 on a GPU from Hopper on; depth a multiple of 64."""
    rows, depth = x.shape
    columns = w.shape[0] // 2 if gated else w.shape[0]
    out = residual if residual is not None else torch.empty((rows, columns), dtype=x.dtype, device=x.device)
    shape = cluster_shape(rows, columns, depth, gated=gated, normed=norm is not None)
    defines = shape.defines | {"RESIDUAL": int(residual is not None), "LET_GO": _LET_GO}
    run = kernel("cluster_product", x.device.index or 0, **defines)
    arguments = (x, w, out, residual, norm, float(eps), rows, columns, depth)
    run.launch(shape.blocks, 32 * WARPS, arguments, shape.shared_bytes)
    return out
