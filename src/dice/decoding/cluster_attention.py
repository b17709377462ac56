"""Attention of few rows to a long cache, whose keys are shared by blocks of a cluster (csrc/cluster_attention.cu).

`dice.decoding.kernels.block_attention` in one kernel instead of two, and most of the keys are on their way before the
kernel in front has ended: those that are older than the step.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dice.decoding.cuda_kernel import has_clusters, kernel

MOST_TILES = 2
"""Tiles up to which it is used. Whole decoding at 4B on an H200: 347 tokens/s for 336 with one tile, 1,700 for 1,890 with 8
(64 clusters of four blocks, of which 62 lie on the GPU at once)."""
BLOCKS = 264
"""Blocks that sharing the keys may not exceed: two for each processor of an H200 lie there at once."""
WARPS = 4
DEPTH = 3
"""Steps of the ring; a step is 16 keys a warp."""
EARLY = 1
"""Whether the next kernel may start at once."""
_ROWS = 32
"""Most rows of a tile, tokens times heads of a group: their sums are held in registers."""


@dataclass(frozen=True)
class AttentionShape:
    """How the kernel is compiled and launched."""

    defines: dict[str, int]
    blocks: int
    shared_bytes: int


def fits(query: Tensor, key_cache: Tensor, tiles: Tensor, tile_tokens: int) -> bool:
    """Whether the kernel can and should do this."""
    heads, kv_heads, dim = query.shape[1], key_cache.shape[1], query.shape[2]
    return (
        len(tiles) <= MOST_TILES
        and query.is_cuda
        and query.dtype == torch.bfloat16
        and dim in (64, 128)
        and tile_tokens * heads // kv_heads <= _ROWS
        and has_clusters(query.device.index or 0)
    )


def attention_shape(
    tiles: int, heads: int, kv_heads: int, dim: int, *, tile_tokens: int, span: int, block_size: int, fields: int
) -> AttentionShape:
    """As many blocks share the keys of a tile as can lie on the GPU at once, at most 8."""
    splits = next(n for n in (8, 4, 2, 1) if n == 1 or n * tiles * kv_heads <= BLOCKS)
    row_tiles = -(-tile_tokens * heads // kv_heads // 16)
    ring_bytes = DEPTH * (dim // 32 * 2 + dim // 64 * 4) * 32 * WARPS * 16
    sums_bytes = 4 * WARPS * 16 * row_tiles * (dim + 8)  # take the place of the ring
    defines = {
        "WARPS": WARPS, "DEPTH": DEPTH, "SPLITS": splits, "TILES": row_tiles, "DIM": dim, "GROUP": heads // kv_heads,
        "HEADS": heads, "BLOCK_SIZE": block_size, "SPAN": span, "FIELDS": fields, "EARLY": EARLY,
    }  # fmt: skip
    behind_bytes = 4 * 16 * row_tiles * (2 * WARPS + 2)  # maxima and masses
    return AttentionShape(defines, splits * tiles * kv_heads, max(ring_bytes, sums_bytes) + behind_bytes)


def cluster_attention(
    query: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    tiles: Tensor,
    *,
    tile_tokens: int,
    block_size: int,
    span: int | None = None,
) -> Tensor:
    """`block_attention` where it `fits`; this forward may have written the tile and the block before it, and no older key."""
    rows, heads, dim = query.shape
    out = torch.empty((rows, heads * dim), dtype=query.dtype, device=query.device)
    shape = attention_shape(
        len(tiles), heads, key_cache.shape[1], dim,
        tile_tokens=tile_tokens, span=span or tile_tokens, block_size=block_size, fields=tiles.shape[1],
    )  # fmt: skip
    run = kernel("cluster_attention", query.device.index or 0, **shape.defines)
    strides = key_cache.stride(0), key_cache.stride(1)
    arguments = (query, key_cache, value_cache, out, tiles, *strides, float(dim**-0.5))
    run.launch(shape.blocks, 32 * WARPS, arguments, shape.shared_bytes)
    return out
