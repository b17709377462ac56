"""Products of a decoding forward: cuBLAS, and our own kernels where reading the weights takes most of the time.

Measured on an H200 at the 4B geometry, in a CUDA graph over the weights of all layers, microseconds a layer with norm and
gate: cuBLAS 70 at 4 rows, 72 at 32 and 73 at 64; a kernel that only reads the weights 55.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from dice.decoding.few_rows_product import MOST_ROWS, STEP, few_rows_product
from dice.decoding.kernels import add_rms_norm, gate

_MOST_ELEMENTS = 2**32
"""Elements of the largest matrix that the kernel can index."""


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
    ours = x.is_cuda and x.dtype == torch.bfloat16 and w.numel() <= _MOST_ELEMENTS and w.data_ptr() % 16 == 0
    if ours and rows <= MOST_ROWS and depth % STEP == 0:
        return few_rows_product(x, w, norm=norm, eps=eps, gated=gated, residual=residual)
    if norm is not None:
        _, x = add_rms_norm(x, None, norm, eps)
    if residual is not None:
        return residual.addmm_(x, w.T)
    out = F.linear(x, w)
    return gate(out) if gated else out
