"""Attention masks: dense ones for the CPU, FlexAttention's, which are never materialised, for GPUs.

One rule serves every layout. A token has a sample, a block and a copy (0 is clean, others are noised):
- clean tokens attend to clean tokens of their own sample in blocks up to their own;
- noised tokens attend to their own copy of their own block, and to clean tokens of earlier blocks of their sample.
For clean tokens in blocks of one token this is causal attention. The rule is the mask of block diffusion
(arXiv 2503.09573, section 3; SDAR's modeling_sdar.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

TILE = 128
"""Queries (and keys) in one tile of FlexAttention."""
PAIRS_AT_A_TIME = 1024
"""Tiles that are checked pair by pair at one time; a tile has 16,384 pairs of tokens."""
QUERIES = 128
"""Most queries of a part of SampleAttention."""
PAD_SAMPLE = -1
"""Sample number of padding tokens; they attend only to padding of their own block."""


def may_attend(sample: Tensor, block: Tensor, noised: Tensor, query: Tensor, key: Tensor) -> Tensor:
    """Boolean: may the token at index `query` attend to the one at `key`? Broadcasts over index tensors."""
    same_sample = sample[query] == sample[key]
    query_block, key_block = block[query], block[key]
    key_noised = noised[key]
    own = (noised[query] == key_noised) & (query_block == key_block)
    earlier = (key_noised == 0) & (key_block < query_block)
    return same_sample & (own | earlier)


@dataclass(frozen=True)
class Layout:
    """Where the tokens of one packed row belong; each tensor [tokens], integer, on one device."""

    sample: Tensor
    block: Tensor
    noised: Tensor
    """0 for a clean token, else the number of its noised copy: one copy in fine-tuning, one a round in RL."""

    def dense(self) -> Tensor:
        """The whole mask [tokens, tokens]: for CPUs and tests."""
        index = torch.arange(self.sample.numel(), device=self.sample.device)
        return may_attend(self.sample, self.block, self.noised, index[:, None], index[None, :])

    def to(self, device: torch.device | str) -> Layout:
        """The layout on another device."""
        return Layout(*(part.to(device, non_blocking=True) for part in (self.sample, self.block, self.noised)))


def block_causal_layout(length: int, block_size: int, device: torch.device | str = "cpu") -> Layout:
    """One clean sample from position 0. `block_size=1` is causal."""
    index = torch.arange(length, device=device)
    zero = torch.zeros_like(index)
    return Layout(zero, index // block_size, zero)


class DenseAttention:
    """Scaled dot products under a boolean mask [tokens, keys] or [n, 1, tokens, keys]; None: every key is seen."""

    def __init__(self, mask: Tensor | None) -> None:
        self.mask = mask

    def __call__(self, layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        del layer
        heads = key.shape[1]
        if query.shape[1] == heads:
            return F.scaled_dot_product_attention(query, key, value, attn_mask=self.mask)
        # The fused CPU kernel needs equal heads (enable_gqa falls back to the slow one). So the queries that share a key's
        # head lie one behind the other: keys and values are read once, not copied for each of them.
        group = query.shape[1] // heads
        mask = None if self.mask is None else torch.cat([self.mask] * group, -2)
        seen = F.scaled_dot_product_attention(
            query.unflatten(1, (heads, group)).flatten(2, 3), key, value, attn_mask=mask
        )
        return seen.unflatten(2, (group, -1)).flatten(1, 2)


class PackedAttention:
    """Every token sees all tokens of its own sequence. Sequences lie one behind the other: no padding, no mask."""

    def __init__(self, lengths: Sequence[int]) -> None:
        self.lengths = list(lengths)

    def __call__(self, layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        see = DenseAttention(None)
        parts = zip(*(part.split(self.lengths, 2) for part in (query, key, value)), strict=True)
        return torch.cat([see(layer, *part) for part in parts], 2)


class SampleAttention:
    """Attention under the mask of a layout in the order of `sample_order`, part by part of each sample.

    On a CPU every masked pair costs time. A part has up to QUERIES queries, and of the keys only those between the first
    and the last that its queries see, among the clean and among the noised ones.
    """

    def __init__(self, layout: Layout) -> None:
        self.lengths = torch.unique_consecutive(layout.sample, return_counts=True)[1].tolist()
        columns = (part.split(self.lengths) for part in (layout.sample, layout.block, layout.noised))
        self.samples = [_parts(Layout(*sample)) for sample in zip(*columns, strict=True)]

    def __call__(self, layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        samples = zip(*(part.split(self.lengths, 2) for part in (query, key, value)), strict=True)
        return torch.cat(
            [
                part(layer, queries, keys, values)
                for parts, (of_sample, keys, values) in zip(self.samples, samples, strict=True)
                for part, queries in zip(parts, of_sample.split([part.queries for part in parts], 2), strict=True)
            ],
            2,
        )


class _Part:
    """Some queries of a sample, under their rows `seen` [queries, tokens] of its mask; its first `clean` tokens are clean."""

    def __init__(self, seen: Tensor, clean: int) -> None:
        self.queries = len(seen)
        keys = torch.nonzero(seen.any(0))[:, 0]
        kinds = (keys[keys < clean], keys[keys >= clean])
        self.spans = [slice(int(kind[0]), int(kind[-1]) + 1) for kind in kinds if len(kind)]
        self.attend = DenseAttention(torch.cat([seen[:, span] for span in self.spans], 1))

    def __call__(self, layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        near = (torch.cat([part[:, :, span] for span in self.spans], 2) for part in (key, value))
        return self.attend(layer, query, *near)


def _parts(sample: Layout) -> list[_Part]:
    """The parts of one sample: clean queries, then noised ones."""
    clean = int((sample.noised == 0).sum())
    return [
        _Part(seen, clean) for half in sample.dense().tensor_split([clean]) for seen in half.split(QUERIES) if len(seen)
    ]


def sample_order(layout: Layout) -> Tensor:
    """[tokens]: the order in which each sample's tokens stand together, clean ones first, both by block."""
    of_sample = 2 * layout.sample + (layout.noised > 0)
    return torch.argsort(of_sample * (layout.block.max() + 1) + layout.block, stable=True)


class FlexMaskAttention:
    """FlexAttention under a block-sparse mask; nothing of size tokens x tokens exists."""

    def __init__(self, block_mask: Any) -> None:
        self.block_mask = block_mask

    def __call__(self, layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        del layer
        grouped = query.shape[1] != key.shape[1]
        seen = _flex(query.is_cuda)(query, key, value, block_mask=self.block_mask, enable_gqa=grouped)
        assert isinstance(seen, Tensor)
        return seen


@cache
def _flex(compiled: bool) -> Callable[..., Any]:
    from torch.nn.attention.flex_attention import flex_attention

    # one compilation per length of row (dice.training.losses.padded_length); past the limit it would fall back to eager
    torch._dynamo.config.recompile_limit = max(64, torch._dynamo.config.recompile_limit)
    return torch.compile(flex_attention, dynamic=False) if compiled else flex_attention


def flex_attention_for(layout: Layout) -> FlexMaskAttention:
    """FlexAttention for one packed row; its length must be a multiple of 128 on a GPU."""
    from torch.nn.attention.flex_attention import BlockMask

    sample, block, noised = (part.int() for part in (layout.sample, layout.block, layout.noised))
    tokens = sample.numel()

    def mask_mod(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        del batch, head
        return may_attend(sample, block, noised, query, key)

    some, all_ = tiles_seen(layout)
    partial, full = (_listed(tiles) for tiles in (some & ~all_, all_))
    return FlexMaskAttention(BlockMask.from_kv_blocks(*partial, *full, TILE, mask_mod, (tokens, tokens)))


def tiles_seen(layout: Layout) -> tuple[Tensor, Tensor]:
    """Two Boolean matrices [tiles, tiles]: is any pair of the tile allowed, and are all? Never builds the whole mask.

    Only tiles whose ranges of samples overlap are checked. PyTorch's `create_block_mask` builds the dense mask, or has
    to be compiled for every length, which takes minutes.
    """
    tokens, device = layout.sample.numel(), layout.sample.device
    count = -(-tokens // TILE)
    padded = Layout(*(F.pad(part, (0, count * TILE - tokens)) for part in (layout.sample, layout.block, layout.noised)))
    by_tile = F.pad(layout.sample[None], (0, count * TILE - tokens), mode="replicate").view(count, TILE)
    low, high = by_tile.amin(1), by_tile.amax(1)
    near = torch.nonzero((low[:, None] <= high[None, :]) & (low[None, :] <= high[:, None]))
    some = torch.zeros(count, count, dtype=torch.bool, device=device)
    all_ = some.clone()
    inner = torch.arange(TILE, device=device)
    for pairs in near.split(PAIRS_AT_A_TIME):
        query, key = pairs[:, 0, None, None], pairs[:, 1, None, None]
        of_query, of_key = query * TILE + inner[:, None], key * TILE + inner[None, :]
        seen = may_attend(padded.sample, padded.block, padded.noised, of_query, of_key)
        seen &= (of_query < tokens) & (of_key < tokens)
        some[pairs[:, 0], pairs[:, 1]] = seen.flatten(1).any(1)
        all_[pairs[:, 0], pairs[:, 1]] = seen.flatten(1).all(1)
    return some, all_


def _listed(tiles: Tensor) -> tuple[Tensor, Tensor]:
    """Number and indices of each row's allowed tiles, in the form that BlockMask wants: [1, 1, rows(, columns)] int32."""
    order = tiles.to(torch.int8).argsort(dim=1, descending=True, stable=True)
    return tiles.sum(1, dtype=torch.int32)[None, None], order.to(torch.int32)[None, None]


def visible_pairs(layout: Layout) -> int:
    """Number of (query, key) pairs that the mask allows, counted by block without building the mask."""
    sample, block, noised = (part.cpu() for part in (layout.sample, layout.block, layout.noised))
    sample = sample - sample.min()  # padding is a sample like any other
    blocks = int(block.max()) + 1
    shape = (int(sample.max()) + 1, blocks)
    place = sample * blocks + block
    clean, dirty = (torch.bincount(place[noised == kind], minlength=shape[0] * blocks).view(shape) for kind in (0, 1))
    before = clean.cumsum(1) - clean
    return int((clean * (clean + before)).sum() + (dirty * (dirty + before)).sum())
