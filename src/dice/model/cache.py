"""A static key-value cache: one slot a sequence, fixed length, written in place.

A step writes the keys and values of its tokens first and attends afterwards, so tokens of one step see each other
through the cache. Tokens that are not final are simply overwritten by the next step at the same positions; nothing is
ever rolled back. That is also why the commit of a finished block can share a step with the next block's first
denoising: both are rows of one call, and the later block reads what the earlier one has just written.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dice.errors import DiceError
from dice.model.attention_masks import DenseAttention
from dice.model.transformer import ModelConfig


class KVCache:
    """Keys and values [layers, slots + 1, kv_heads, max_length, head_dim]; the last slot takes padding rows."""

    def __init__(
        self, config: ModelConfig, slots: int, max_length: int, *, dtype: torch.dtype, device: torch.device | str
    ) -> None:
        if slots < 1 or max_length < 1:
            raise DiceError(
                f"a cache needs a slot and a position; {slots} slots of {max_length} tokens were asked for."
            )
        if max_length > config.max_position_embeddings:
            raise DiceError(
                f"{max_length} tokens are more than the {config.max_position_embeddings} positions of the model; "
                "shorten the prompt or the answer."
            )
        shape = (config.num_hidden_layers, slots + 1, config.num_key_value_heads, max_length, config.head_dim)
        # zeros, not empty: a masked key has weight 0, and 0 times a NaN that lay in memory would be NaN
        self.key = torch.zeros(shape, dtype=dtype, device=device)
        self.value = torch.zeros(shape, dtype=dtype, device=device)
        self.slots = slots
        self.max_length = max_length

    @property
    def scrap(self) -> int:
        """Slot for padding rows."""
        return self.slots


SLOTS_TOGETHER = 8
"""On a CPU: slots whose rows attend in one call, to the keys up to the longest row's end. Keys are read from memory, so that
more of them than a row sees cost more than a call does (docs/measurements/decoding.md)."""


class CachedAttention:
    """Attention of n rows of new tokens, each into one slot, block-causal by absolute position.

    slots, starts [n]: row i holds the tokens at positions starts[i] ... of slot slots[i]. `longest` is the largest
    end of a row. A token sees the written positions of its slot up to the end of its own block, but none from its row's
    `limits` [n] on.

    Where the rows' slots lie close together, the cache is read in place, with the rows of a slot side by side; on a CPU, a
    few slots at a time. Otherwise each row gets a copy of its slot; or, on a CPU, where copying takes longer than the
    attention itself, rows are done one after the other.
    """

    def __init__(
        self,
        cache: KVCache,
        slots: Tensor,
        starts: Tensor,
        *,
        tokens: int,
        block_size: int,
        longest: int,
        limits: Tensor | None = None,
    ) -> None:
        if longest > cache.max_length:
            raise DiceError(f"a sequence of {longest} tokens does not fit a cache of {cache.max_length}.")
        self.cache = cache
        self.slots = slots
        self.positions = starts[:, None] + torch.arange(tokens, device=starts.device)
        keys = torch.arange(longest, device=starts.device)
        ends = torch.minimum((self.positions // block_size + 1) * block_size, (starts + tokens)[:, None])
        if limits is not None:
            ends = torch.minimum(ends, limits[:, None])
        first, last = int(slots.min()), int(slots.max())
        width = int(torch.bincount(slots - first).max())
        self.span = slice(first, last + 1)
        self.width = width
        self.places: Tensor | None = None
        """[n]: place of each row among `width` places for each slot of `span`; None: every row reads a copy."""
        if (last + 1 - first) * width <= 2 * len(slots):
            order = torch.argsort(slots, stable=True)
            rank = torch.empty_like(slots)
            rank[order] = torch.arange(len(slots), device=slots.device) - torch.searchsorted(slots[order], slots[order])
            self.places = (slots - first) * width + rank
            ends = self._side_by_side(ends[:, None, :, None], 1)[:, 0, :, 0]  # an empty place sees one position
        mask = (keys < ends[..., None])[:, None]
        everything = slice(None), slots if self.places is None else self.span, longest
        self.parts = [
            (rows, read, end, DenseAttention(mask[rows, ..., :end]))
            for rows, read, end in (self._parts(ends) if starts.is_cpu else [everything])
        ]
        """Rows (of `span`: slots) that attend in one call, the slots that they read (as a tensor: copied), the end of the
        longest of them, and their attention."""

    def _parts(self, ends: Tensor) -> list[tuple[slice, slice, int]]:
        longest = ends.amax(1).tolist()
        if self.places is None:
            slots = self.slots.tolist()
            return [(slice(n, n + 1), slice(slots[n], slots[n] + 1), end) for n, end in enumerate(longest)]
        first, count = self.span.start, SLOTS_TOGETHER
        return [
            (slice(n, n + count), slice(first + n, min(first + n + count, self.span.stop)), max(longest[n : n + count]))
            for n in range(0, len(longest), count)
        ]

    def __call__(self, layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        keys, values = self.cache.key[layer], self.cache.value[layer]
        # [n, tokens, kv_heads, head_dim]: indexing by two tensors around a slice puts their axes first
        keys[self.slots[:, None], :, self.positions] = key.transpose(1, 2).to(keys.dtype)
        values[self.slots[:, None], :, self.positions] = value.transpose(1, 2).to(values.dtype)
        if self.places is not None:
            query = self._side_by_side(query, 0)
        out = torch.cat(
            [see(layer, query[rows], keys[read, :, :end], values[read, :, :end]) for rows, read, end, see in self.parts]
        )
        if self.places is None:
            return out
        return out.unflatten(2, (self.width, -1)).transpose(1, 2).flatten(0, 1)[self.places]

    def _side_by_side(self, rows: Tensor, empty: int) -> Tensor:
        """[n, heads, tokens, d] as [slots of the span, heads, width tokens, d]; empty places are filled with `empty`."""
        assert self.places is not None
        n_slots = self.span.stop - self.span.start
        placed = rows.new_full((n_slots * self.width, *rows.shape[1:]), empty)
        placed[self.places] = rows
        return placed.unflatten(0, (n_slots, self.width)).transpose(1, 2).flatten(2, 3)
