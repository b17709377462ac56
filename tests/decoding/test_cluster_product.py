"""csrc/cluster_product.cu without a GPU, against fp64 products."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from emulation import emulate, random
from torch import Tensor
from torch.nn import functional as F

from dice.decoding import cluster_product
from dice.decoding.cluster_product import cluster_shape

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
EPS = 1e-6


def emulated(
    folder: Path,
    x: Tensor,
    w: Tensor,
    *,
    norm: Tensor | None,
    gated: bool,
    residual: Tensor | None,
    edit: tuple[str, str] = ("", ""),
) -> tuple[Tensor, Tensor]:
    """The kernel as `cluster_product` would launch it, copies arriving at once and as late as may be.

    `edit` replaces a piece of its source.
    """
    rows, depth = x.shape
    columns = w.shape[0] // 2 if gated else w.shape[0]
    shape = cluster_shape(rows, columns, depth, gated=gated, normed=norm is not None)
    defines = shape.defines | {"RESIDUAL": int(residual is not None), "LET_GO": 1}
    out = residual.clone() if residual is not None else torch.full((rows, columns), float("nan")).bfloat16()
    arguments = {
        "x": x, "w": w, "out": out, "residual": None if residual is None else out, "norm": norm, "eps": EPS,
        "rows": rows, "columns": columns, "depth": depth,
    }  # fmt: skip
    return emulate(folder, "cluster_product", defines, shape.blocks, shape.shared_bytes, arguments, out, edit)


def exact(x: Tensor, w: Tensor, *, norm: Tensor | None, gated: bool, residual: Tensor | None) -> Tensor:
    wide = x.double()
    if norm is not None:
        wide = F.rms_norm(wide, (x.shape[1],), norm.double(), EPS)
    found = wide @ w.double().T
    if gated:
        gate, up = found.chunk(2, 1)
        found = F.silu(gate) * up
    return found if residual is None else found + residual.double()


CASES = [
    ("plain", 12, 200, 512, 2),
    ("norm", 32, 130, 1088, 4),
    ("gated", 32, 100, 320, 1),
    ("gated", 64, 40, 704, 2),
    ("residual", 33, 72, 2112, 8),
]


def inputs(kind: str, rows: int, columns: int, depth: int) -> tuple[Tensor, Tensor, dict]:
    gated, residual = kind == "gated", random(rows, columns) if kind == "residual" else None
    norm = (random(depth).float() / 4 + 1).bfloat16() if kind in ("norm", "gated") else None
    w = (random(columns * (1 + gated), depth).float() / depth**0.5).bfloat16()
    return random(rows, depth) * 2, w, {"norm": norm, "gated": gated, "residual": residual}


ATOL, RTOL = 4e-2, 2e-2


@pytest.mark.parametrize(("kind", "rows", "columns", "depth", "splits"), CASES)
def test_emulated_kernel(kind, rows, columns, depth, splits, tmp_path):
    """Rows and columns that fill no tile, depths that fill no share; copies that arrive early or late."""
    x, w, how = inputs(kind, rows, columns, depth)
    assert cluster_shape(rows, columns, depth, gated=how["gated"], normed=False).defines["SPLITS"] == splits
    at_once, late = emulated(tmp_path, x, w, **how)
    torch.testing.assert_close(at_once.double(), exact(x, w, **how), atol=ATOL, rtol=RTOL)
    assert torch.equal(at_once, late)


@pytest.mark.parametrize(
    ("kind", "edit"),
    [
        ("plain", ("WAIT_FOR_COPIES(DEPTH - 2)", "WAIT_FOR_COPIES(DEPTH - 1)")),
        ("plain", ("__syncthreads();  // x of this step", "//")),
        ("plain", ("unsigned slot = target + step % DEPTH", "unsigned slot = target + (step + 1) % DEPTH")),
        ("norm", ("s < HALVES; ++s) total", "s < 1; ++s) total")),
    ],
)
def test_the_emulation_shows_mistakes(kind, edit, tmp_path):
    x, w, how = inputs(kind, 12, 72, 1088)
    found = emulated(tmp_path, x, w, edit=edit, **how)
    assert not all(torch.allclose(part.double(), exact(x, w, **how), atol=ATOL, rtol=RTOL) for part in found)


@pytest.mark.parametrize("rows", [9, 32, 64])
@pytest.mark.parametrize(("columns", "depth", "gated"), [(6144, 2560, False), (9728, 2560, True), (2560, 9728, False)])
def test_all_blocks_lie_on_the_gpu_at_once(rows, columns, depth, gated):
    shape = cluster_shape(rows, columns, depth, gated=gated, normed=True)
    assert 132 <= shape.blocks <= cluster_product.BLOCKS
    assert 2 * (shape.shared_bytes + 1024) <= 227 * 1024
    assert shape.blocks % shape.defines["SPLITS"] == 0
