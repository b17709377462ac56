"""csrc/small_product.cu without a GPU, against fp64. It also runs on GPUs (test_fast.py), which tests the emulation."""

from __future__ import annotations

import shutil

import pytest
import torch
from emulation import emulate, random
from torch.nn import functional as F

from dice.decoding.few_rows_product import Shape, few_rows_bytes

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
EPS = 1e-6


@pytest.mark.parametrize(
    ("rows", "columns", "depth", "gated", "shape"),
    [
        (7, 72, 704, True, Shape(2, 4, 4, 4)),
        (4, 40, 2208, False, Shape(1, 4, 16, 2)),
        (4, 40, 2592, False, Shape(1, 6, 16, 2)),
        (8, 100, 96, False, Shape(2, 5, 8, 2)),
    ],
)
def test_emulated_kernel(rows, columns, depth, gated, shape, tmp_path):
    x, w = random(rows, depth) * 2, (random(columns * (1 + gated), depth).float() / depth**0.5).bfloat16()
    norm, residual = (None, random(rows, columns)) if not gated else ((random(depth).float() / 4 + 1).bfloat16(), None)
    defines = {
        "TILES": shape.tiles, "DEPTH": shape.steps, "WARPS": shape.warps, "BLOCKS": shape.blocks, "GATED": int(gated),
        "NORM": int(gated), "RESIDUAL": 1 - int(gated), "LET_GO": 0, "SPLITS": 1, "THREADS": 32 * shape.warps,
    }  # fmt: skip
    out = torch.full((rows, columns), float("nan")).bfloat16()
    arguments = {
        "x": x, "w": w, "out": out, "residual": residual, "norm": norm, "eps": EPS, "rows": rows, "columns": columns,
        "depth": depth,
    }  # fmt: skip
    blocks = -(-columns // (16 * shape.tiles))
    at_once, late = emulate(tmp_path, "small_product", defines, blocks, few_rows_bytes(shape, gated), arguments, out)
    expected = x.double() if norm is None else F.rms_norm(x.double(), (depth,), norm.double(), EPS)
    expected = expected @ w.double().T
    if gated:
        expected = F.silu(expected[:, :columns]) * expected[:, columns:]
    if residual is not None:
        expected += residual.double()
    torch.testing.assert_close(at_once.double(), expected, atol=4e-2, rtol=2e-2)
    assert torch.equal(at_once, late)
