"""Attention of few rows to a long cache; the thread blocks of a cluster share the keys (csrc/cluster_attention.cu).

One kernel instead of three does what `store_heads` and `block_attention` of `dice.decoding.kernels` do. It starts to load
the keys before the kernel in front of it has ended, since that kernel does not write them.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dice.decoding.cuda_kernel import has_clusters, kernel

MOST_TILES = 2
"""Most tiles for which the kernel is used. Tokens/s of decoding at 4B on an H200, with and without it (each with its best
sharing): one tile 358 and 348; without prefill, 8 tiles 2,187 and 2,173, 64 tiles 7,932 and 8,351."""


@dataclass(frozen=True)
class Sharing:
    """How blocks and warps share the keys of a tile."""

    warps: int
    depth: int
    """Steps of the ring buffer; a step is 16 keys per warp."""
    blocks: int
    """Most thread blocks among which keys are shared: those that an H200 with its 132 processors runs at once."""


SHARING = Sharing(4, 2, 264)
_ROWS = 32
"""Most rows of a tile (tokens times heads of a group): their sums are held in registers."""


@dataclass(frozen=True)
class AttentionShape:
    """How the kernel is compiled and launched."""

    defines: dict[str, int]
    blocks: int
    threads: int
    shared_bytes: int


def fits(qkv: Tensor, key_cache: Tensor, tiles: Tensor, tile_tokens: int) -> bool:
    """Whether the kernel can do this and is the faster way."""
    _, kv_heads, _, dim = key_cache.shape
    heads = qkv.shape[1] // dim - 2 * kv_heads
    return (
        len(tiles) <= MOST_TILES
        and qkv.is_cuda
        and qkv.dtype == torch.bfloat16
        and dim in (64, 128)
        and tile_tokens * heads // kv_heads <= _ROWS
        and has_clusters(qkv.device.index or 0)
    )


def attention_shape(
    tiles: int, heads: int, kv_heads: int, dim: int, *, tile_tokens: int, span: int, block_size: int, fields: int
) -> AttentionShape:
    """As many thread blocks share the keys of a tile as the GPU runs at once, at most 8."""
    threads = 32 * SHARING.warps
    splits = next(n for n in (8, 4, 3, 2, 1) if n == 1 or n * tiles * kv_heads <= SHARING.blocks)
    rows = 16 * -(-tile_tokens * heads // kv_heads // 16)
    ring_bytes = SHARING.depth * (dim // 32 * 2 + dim // 64 * 4) * threads * 16
    sums_bytes = 4 * SHARING.warps * rows * (dim + 8)  # these two take the place of the ring
    places = threads * -(-rows * dim // 4 // (splits * threads))
    found_bytes = splits * (places * 16 + places // (dim // 4) * 8)
    behind_bytes = 4 * rows * (2 * SHARING.warps + 1)  # maxima and masses
    table_bytes = 4 * tile_tokens * dim + 4 * dim + 16  # of rotation and norms; what counts bytes
    defines = {
        "WARPS": SHARING.warps, "DEPTH": SHARING.depth, "SPLITS": splits, "TILES": rows // 16, "DIM": dim,
        "TOKENS": tile_tokens, "GROUP": heads // kv_heads, "HEADS": heads, "BLOCK_SIZE": block_size, "SPAN": span,
        "FIELDS": fields,
    }  # fmt: skip
    shared_bytes = max(ring_bytes, sums_bytes + found_bytes) + behind_bytes + table_bytes
    return AttentionShape(defines, splits * tiles * kv_heads, threads, shared_bytes)


def cluster_attention(
    qkv: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    q_norm: Tensor,
    k_norm: Tensor,
    cos: Tensor,
    sin: Tensor,
    tiles: Tensor,
    eps: float,
    *,
    tile_tokens: int,
    block_size: int,
    span: int | None = None,
) -> Tensor:
    """`store_heads` and then `block_attention`, where it `fits`: qkv [rows, (heads + 2 kv_heads) dim] -> [rows, heads dim].

    Only the keys and values of the tiles' rows go to the cache. A tile consists of whole blocks, and no other tile has its
    slot.
    """
    _, kv_heads, _, dim = key_cache.shape
    heads = qkv.shape[1] // dim - 2 * kv_heads
    out = torch.empty((len(qkv), heads * dim), dtype=qkv.dtype, device=qkv.device)
    shape = attention_shape(
        len(tiles), heads, kv_heads, dim,
        tile_tokens=tile_tokens, span=span or tile_tokens, block_size=block_size, fields=tiles.shape[1],
    )  # fmt: skip
    run = kernel("cluster_attention", qkv.device.index or 0, **shape.defines)
    strides = key_cache.stride(0), key_cache.stride(1)
    arguments = (
        qkv, key_cache, value_cache, out, q_norm, k_norm, cos, sin, tiles, *strides, float(eps), float(dim**-0.5)
    )  # fmt: skip
    run.launch(shape.blocks, shape.threads, arguments, shape.shared_bytes)
    return out
