"""csrc/small_product.cu without a GPU, against fp64. It also runs on GPUs (test_fast.py), which tests the emulation."""

from __future__ import annotations

import shutil

import pytest
import torch
from emulation import emulate, random
from torch.nn import functional as F

from dice.decoding.few_rows_product import few_rows_bytes

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
EPS = 1e-6


@pytest.mark.parametrize(
    ("rows", "columns", "depth", "gated", "tiles", "steps", "warps"),
    [
        (7, 72, 704, True, 2, 4, 4),
        (4, 40, 2208, False, 1, 4, 16),
        (8, 100, 96, False, 2, 4, 8),
        (29, 88, 736, True, 3, 4, 4),
    ],
)
def test_emulated_kernel(rows, columns, depth, gated, tiles, steps, warps, tmp_path):
    x, w = random(rows, depth) * 2, (random(columns * (1 + gated), depth).float() / depth**0.5).bfloat16()
    norm, residual = (None, random(rows, columns)) if not gated else ((random(depth).float() / 4 + 1).bfloat16(), None)
    most = 8 if rows <= 8 else 32
    defines = {
        "ROWS": most, "TILES": tiles, "DEPTH": steps, "WARPS": warps, "GATED": int(gated), "NORM": int(gated),
        "RESIDUAL": 1 - int(gated), "LET_GO": 1, "SPLITS": 1, "THREADS": 32 * warps,
    }  # fmt: skip
    out = torch.full((rows, columns), float("nan")).bfloat16()
    arguments = {
        "x": x, "w": w, "out": out, "residual": residual, "norm": norm, "eps": EPS, "rows": rows, "columns": columns,
        "depth": depth,
    }  # fmt: skip
    shared_bytes = few_rows_bytes(most, tiles * (1 + gated), steps, warps)
    at_once, late = emulate(
        tmp_path, "small_product", defines, -(-columns // (16 * tiles)), shared_bytes, arguments, out
    )
    expected = x.double() if norm is None else F.rms_norm(x.double(), (depth,), norm.double(), EPS)
    expected = expected @ w.double().T
    if gated:
        expected = F.silu(expected[:, :columns]) * expected[:, columns:]
    if residual is not None:
        expected += residual.double()
    torch.testing.assert_close(at_once.double(), expected, atol=4e-2, rtol=2e-2)
    assert torch.equal(at_once, late)
