"""csrc/cluster_attention.cu without a GPU, against attention in fp64."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from emulation import emulate, random
from torch import Tensor

from dice.decoding.cluster_attention import BLOCKS, attention_shape

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
FIELDS, LENGTH = 5, 300


def exact(query: Tensor, keys: Tensor, values: Tensor, tiles: Tensor, *, block: int, span: int) -> Tensor:
    rows, heads, dim = query.shape
    found = torch.full((rows, heads, dim), float("nan"), dtype=torch.float64)
    for slot, start, first, count, second in tiles.tolist():
        for token in range(count):
            row = first + token if token < span else second + token - span
            end = ((start + token) // block + 1) * block
            for head in range(heads):
                k, v = (part[slot, head * keys.shape[1] // heads, :end].double() for part in (keys, values))
                weight = (k @ query[row, head].double() / dim**0.5).softmax(0)
                found[row, head] = weight @ v
    return found.view(rows, -1)


def attended(
    folder: Path, heads: int, kv_heads: int, dim: int, block: int, tiles: list[tuple[int, ...]], edit=("", "")
) -> tuple[tuple[Tensor, Tensor], Tensor]:
    """(found with early and late copies, expected); tiles of a finished and an open block."""
    query = random(len(tiles) * 2 * block, heads, dim) * 2
    keys, values = random(3, kv_heads, LENGTH, dim), random(3, kv_heads, LENGTH + 1, dim)[:, :, :LENGTH].contiguous()
    table = torch.tensor(tiles, dtype=torch.int32)
    for slot, start, _, count, _ in tiles:  # what no row may see
        keys[slot, :, start + count :] = values[slot, :, start + count :] = float("nan")
    shape = attention_shape(
        len(tiles), heads, kv_heads, dim, tile_tokens=2 * block, span=block, block_size=block, fields=FIELDS
    )
    out = torch.full((len(query), heads * dim), float("nan")).bfloat16()
    arguments = {
        "query": query, "key_cache": keys, "value_cache": values, "out": out, "tiles": table,
        "slot_stride": keys.stride(0), "head_stride": keys.stride(1), "scale": dim**-0.5,
    }  # fmt: skip
    found = emulate(folder, "cluster_attention", shape.defines, shape.blocks, shape.shared_bytes, arguments, out, edit)
    return found, exact(query, keys, values, table, block=block, span=block)


CASES = [
    (8, 2, 128, 4, [(0, 256, 8, 8, 0), (2, 20, 4, 4, 0), (1, 0, 0, 0, 0)]),
    (4, 2, 64, 4, [(1, 292, 0, 8, 4)]),
    (6, 2, 128, 1, [(0, 299, 2, 1, 0), (1, 15, 1, 1, 0)]),
    (2, 1, 128, 3, [(0, 3, 0, 6, 3), (2, 66, 9, 3, 0)]),
]


@pytest.mark.parametrize(("heads", "kv_heads", "dim", "block", "tiles"), CASES)
def test_emulated_kernel(heads, kv_heads, dim, block, tiles, tmp_path):
    """Groups that fill no tile of rows, slots that fill no step, blocks that lie apart, a tile without tokens."""
    (at_once, late), expected = attended(tmp_path, heads, kv_heads, dim, block, tiles)
    torch.testing.assert_close(at_once.double(), expected, atol=2e-2, rtol=2e-2, equal_nan=True)
    assert torch.equal(at_once.nan_to_num(9), late.nan_to_num(9))


@pytest.mark.parametrize(
    "edit",
    [
        ("WAIT_FOR_COPIES(DEPTH - 2)", "WAIT_FOR_COPIES(DEPTH - 1)"),
        ("d < turns && !is_old(d)", "d < turns && d > 0 && !is_old(d)"),
        ("2 * t + k % 2 + k / 2 * 8", "2 * t + k % 2 * 8 + k / 2"),
        ("    __syncthreads();\n    for (int place = thread; place", "    for (int place = thread; place"),
    ],
)
def test_the_emulation_shows_mistakes(edit, tmp_path):
    found, expected = attended(tmp_path, *CASES[0], edit=edit)
    wrong = [not torch.allclose(part.double(), expected, atol=2e-2, rtol=2e-2, equal_nan=True) for part in found]
    assert any(wrong)


@pytest.mark.parametrize("tiles", [1, 4, 8, 12, 32])
def test_all_blocks_lie_on_the_gpu_at_once(tiles):
    shape = attention_shape(tiles, 32, 8, 128, tile_tokens=8, span=4, block_size=4, fields=FIELDS)
    assert shape.blocks <= BLOCKS
    assert shape.blocks == tiles * 8 * shape.defines["SPLITS"]
    assert 2 * (shape.shared_bytes + 1024) <= 227 * 1024
