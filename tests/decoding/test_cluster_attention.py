"""csrc/cluster_attention.cu without a GPU, against heads and attention in fp64."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from emulation import emulate, random
from torch import Tensor
from torch.nn import functional as F

from dice.decoding import cluster_attention
from dice.decoding.cluster_attention import Sharing, attention_shape

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
FIELDS, LENGTH, EPS = 5, 300, 1e-6
CLOSE = {"atol": 2e-2, "rtol": 2e-2, "equal_nan": True}


def turned(heads: Tensor, norm: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Norm and rotation of heads [heads, dim] at one position, in fp64, rounded as the cache rounds."""
    low, high = F.rms_norm(heads.double(), heads.shape[-1:], norm.double(), EPS).chunk(2, -1)
    return torch.cat((low * cos - high * sin, high * cos + low * sin), -1).bfloat16()


def exact(
    qkv: Tensor, keys: Tensor, values: Tensor, norms: tuple[Tensor, Tensor], angles: tuple[Tensor, Tensor],
    tiles: Tensor, *, block: int, span: int,
) -> Tensor:  # fmt: skip
    """Writes keys and values of the tiles, and attends to them."""
    dim, kv_heads = keys.shape[3], keys.shape[1]
    rows = qkv.view(len(qkv), -1, dim)
    heads = rows.shape[1] - 2 * kv_heads
    found = torch.full((len(qkv), heads, dim), float("nan"), dtype=torch.float64)
    for slot, start, first, count, second in tiles.tolist():
        queries = {}
        for token in range(count):
            row, place = first + token if token < span else second + token - span, start + token
            cos, sin = (part[place].double() for part in angles)
            queries[token] = row, turned(rows[row, :heads], norms[0], cos, sin)
            keys[slot, :, place] = turned(rows[row, heads:-kv_heads], norms[1], cos, sin)
            values[slot, :, place] = rows[row, -kv_heads:]
        for token, (row, query) in queries.items():
            end = ((start + token) // block + 1) * block
            for head in range(heads):
                k, v = (part[slot, head * kv_heads // heads, :end].double() for part in (keys, values))
                weight = (k @ query[head].double() / dim**0.5).softmax(0)
                found[row, head] = weight @ v
    return found.view(len(qkv), -1)


def attended(
    folder: Path, heads: int, kv_heads: int, dim: int, block: int, tiles: list[tuple[int, ...]], edit=("", "")
) -> tuple[list[Tensor], list[Tensor]]:
    """(found, expected): outputs with early copies, keys and values; tiles of a finished and an open block."""
    qkv = random(len(tiles) * 2 * block, (heads + 2 * kv_heads) * dim) * 2
    keys, values = random(3, kv_heads, LENGTH, dim), random(3, kv_heads, LENGTH + 1, dim)[:, :, :LENGTH].contiguous()
    norms = random(dim) / 4 + 1, random(dim + 1)[:dim].contiguous() / 4 + 1
    cos, sin = (angle(0.37 * torch.arange(LENGTH * dim // 2).view(LENGTH, -1)) for angle in (torch.cos, torch.sin))
    table = torch.tensor(tiles, dtype=torch.int32)
    for slot, start, _, _, _ in tiles:  # what this step writes, and what no row may see
        keys[slot, :, start:] = values[slot, :, start:] = float("nan")
    shape = attention_shape(
        len(tiles), heads, kv_heads, dim, tile_tokens=2 * block, span=block, block_size=block, fields=FIELDS
    )
    out = torch.full((len(qkv), heads * dim), float("nan")).bfloat16()
    expected_keys, expected_values = keys.clone(), values.clone()
    expected = exact(qkv, expected_keys, expected_values, norms, (cos, sin), table, block=block, span=block)
    arguments = {
        "qkv": qkv, "key_cache": keys, "value_cache": values, "out": out, "q_norm": norms[0], "k_norm": norms[1],
        "cos": cos, "sin": sin, "tiles": table, "slot_stride": keys.stride(0), "head_stride": keys.stride(1),
        "eps": EPS, "scale": dim**-0.5,
    }  # fmt: skip
    at_once, late = emulate(
        folder, "cluster_attention", shape.defines, shape.blocks, shape.shared_bytes, arguments, out, edit
    )
    assert edit[0] or torch.equal(at_once.nan_to_num(9), late.nan_to_num(9))
    return [at_once, late, keys, values], [expected, expected, expected_keys, expected_values]


CASES = [
    (8, 2, 128, 4, [(0, 256, 8, 8, 0), (2, 20, 4, 4, 0), (1, 0, 0, 0, 0)], Sharing(2, 3, 12)),
    (4, 2, 64, 4, [(1, 292, 0, 8, 4)], Sharing(4, 2, 6)),
    (6, 2, 128, 1, [(0, 299, 2, 1, 0), (1, 15, 1, 1, 0)], Sharing(4, 3, 64)),
    (2, 1, 128, 3, [(0, 3, 0, 6, 3), (2, 66, 9, 3, 0)], Sharing(4, 3, 2)),
    (2, 2, 64, 16, [(0, 32, 0, 32, 16)], Sharing(2, 3, 8)),
]
NAMES = ("heads", "kv_heads", "dim", "block", "tiles", "sharing")


@pytest.mark.parametrize(NAMES, CASES)
def test_emulated_kernel(heads, kv_heads, dim, block, tiles, sharing, tmp_path, monkeypatch):
    """Groups that fill no tile of rows, slots that fill no step, blocks that lie apart, a tile without tokens; more steps
    than warps and fewer; keys of a tile that take two steps."""
    monkeypatch.setattr(cluster_attention, "SHARING", sharing)
    for found, expected in zip(*attended(tmp_path, heads, kv_heads, dim, block, tiles), strict=True):
        torch.testing.assert_close(found.double(), expected.double(), **CLOSE)


@pytest.mark.parametrize(
    "edit",
    [
        ("WAIT_FOR_COPIES(DEPTH - 2)", "WAIT_FOR_COPIES(DEPTH - 1)"),
        ("(turn * SHARERS + first - fresh) * KEYS", "(turn * SHARERS + first) * KEYS"),
        ("? start : start + count;", "? start + KEYS : start + count;"),
        ("2 * t + k % 2 + k / 2 * 8, count", "2 * t + k % 2 * 8 + k / 2, count"),
        ("b0 * cos0 + a0 * sin0", "b0 * cos0 - a0 * sin0"),
        ("    WAIT_FOR_ALL();  // no thread needs the ring any more\n", "    WAIT_FOR_ALL();\n    return;\n"),
        ("make_float2(top_of[row], whole)", "make_float2(0, whole)"),
        ("    __syncthreads();\n    WAIT_FOR_ALL();", "    WAIT_FOR_ALL();"),
    ],
)
def test_the_emulation_shows_mistakes(edit, tmp_path, monkeypatch):
    monkeypatch.setattr(cluster_attention, "SHARING", CASES[0][-1])
    found, expected = attended(tmp_path, *CASES[0][:-1], edit=edit)
    assert not all(torch.allclose(a.double(), b.double(), **CLOSE) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize(("tiles", "splits"), [(1, 8), (2, 8), (4, 8), (5, 4), (8, 4), (11, 3), (16, 2)])
def test_all_blocks_lie_on_the_gpu_at_once(tiles, splits):
    """Of 132 processors with 227 KB of shared memory and 65,536 registers, of which a thread takes up to 256."""
    shape = attention_shape(tiles, 32, 8, 128, tile_tokens=8, span=4, block_size=4, fields=FIELDS)
    assert shape.defines["SPLITS"] == splits
    together = min(227 * 1024 // (shape.shared_bytes + 1024), 65536 // (256 * shape.threads))
    assert shape.blocks == tiles * 8 * splits <= 132 * together
