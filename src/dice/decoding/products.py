"""Products of a decoding forward: cuBLAS, and kernels of our own where reading the weights is what takes the time.

Measured on an H200 at the 4B geometry, in a CUDA graph over the weights of all layers, microseconds a layer with norm and
gate: cuBLAS 70 at 4 rows, 72 at 32 and 73 at 64; a kernel that only reads the weights 55. cuBLAS streams a matrix of a
vocabulary's size at full rate whatever the rows.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from dice.decoding.cuda_kernel import kernel
from dice.decoding.kernels import add_rms_norm, gate

FEW_ROWS = 8
"""Rows up to which the kernel is used: one side of the tensor cores' product."""
FEW_ROWS_SHAPES = {"gated": (2, 4, 4), "wide": (2, 4, 8), "narrow": (1, 4, 16)}
"""Of the kernel for few rows: tiles of 16 columns a block, steps loaded ahead, warps that share the depth. The fastest of
some that were tried in whole decoding at batch 1 on an H200."""
_LET_GO = 1
"""When it lets the next kernel start: when all its loads are under way."""
_WIDE = 4096
"""Columns that are enough blocks of two tiles for every processor."""
_STEP = 32
"""Depth that csrc/small_product.cu takes at a time."""
_LARGE = 2**28
"""Elements from which on cuBLAS reads weights as fast as can be."""


def product(
    x: Tensor,
    w: Tensor,
    *,
    norm: Tensor | None = None,
    eps: float = 0.0,
    gated: bool = False,
    residual: Tensor | None = None,
) -> Tensor:
    """rms_norm(x) @ w.T, x [rows, depth], w [columns, depth].

    `gated`: w holds gate and up one under the other, and the result is silu(gate) * up, [rows, columns / 2].
    `residual` [rows, columns] is added to in place, and is the result.
    """
    rows, depth = x.shape
    ours = x.is_cuda and x.dtype == torch.bfloat16 and w.numel() < _LARGE and w.data_ptr() % 16 == 0
    if ours and rows <= FEW_ROWS and depth % _STEP == 0:
        return few_rows_product(x, w, norm=norm, eps=eps, gated=gated, residual=residual)
    if norm is not None:
        _, x = add_rms_norm(x, None, norm, eps)
    if residual is not None:
        return residual.addmm_(x, w.T)
    out = F.linear(x, w)
    return gate(out) if gated else out


def few_rows_product(
    x: Tensor,
    w: Tensor,
    *,
    norm: Tensor | None = None,
    eps: float = 0.0,
    gated: bool = False,
    residual: Tensor | None = None,
) -> Tensor:
    """`product` for at most 8 rows of bf16 on a GPU; the depth is a multiple of 32."""
    rows, depth = x.shape
    columns = w.shape[0] // 2 if gated else w.shape[0]
    out = residual if residual is not None else torch.empty((rows, columns), dtype=x.dtype, device=x.device)
    tiles, steps, warps = FEW_ROWS_SHAPES["gated" if gated else "wide" if columns >= _WIDE else "narrow"]
    run = kernel(
        "small_product", x.device.index or 0, ROWS=FEW_ROWS, TILES=tiles, DEPTH=steps, WARPS=warps, GATED=int(gated),
        RESIDUAL=int(residual is not None), NORM=int(norm is not None), LET_GO=_LET_GO,
    )  # fmt: skip
    ring = steps * 2 * tiles * (1 + gated) * 32 * warps * 16
    arguments = (x, w, out, residual, norm, float(eps), rows, columns, depth)
    run.launch(-(-columns // (16 * tiles)), 32 * warps, arguments, ring)
    return out
