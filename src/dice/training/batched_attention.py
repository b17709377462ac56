"""Attention of a packed row as one padded batch of its samples, for small models on GPUs.

FlexAttention skips tiles of 128 x 128 tokens and is compiled for every row length. For a pack of some hundred samples of
some hundred tokens, one batch under an explicit mask, padded to its longest sample, is as fast: it needs a few large
kernels and nothing is compiled. The mask has samples x longest^2 elements, so long samples need FlexAttention.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from dice.model.attention_masks import Layout, may_attend

MULTIPLE = 64
"""Samples are padded to a multiple of this."""
AT_A_TIME = 16
"""Samples whose mask is built at one time."""


class BatchedAttention:
    """Attention under a layout's mask, all samples in one batch. Padding tokens attend to nothing and give zeros."""

    def __init__(self, layout: Layout, dtype: torch.dtype) -> None:
        device = layout.sample.device
        rows = torch.nonzero(layout.sample >= 0)[:, 0]
        sample, order = torch.sort(layout.sample[rows], stable=True)
        rows = rows[order]
        lengths = torch.bincount(sample)
        self.count, longest = len(lengths), int(lengths.max())
        self.width = -(-longest // MULTIPLE) * MULTIPLE
        start = lengths.cumsum(0) - lengths
        places = sample * self.width + torch.arange(len(rows), device=device) - start[sample]
        self.tokens = layout.sample.numel()
        # place -> row and row -> place; the number behind the last one stands for padding
        self.source = torch.full((self.count * self.width,), self.tokens, device=device)
        self.source[places] = rows
        self.back = torch.full((self.tokens,), self.count * self.width, device=device)
        self.back[rows] = places
        nothing = torch.full((1,), -2, device=device)
        padded = [torch.cat((part, nothing)) for part in (layout.sample, layout.block, layout.noised)]
        batch = [part[self.source] for part in padded]
        index = torch.arange(self.width, device=device)
        # a place without a token attends to itself, so that no row is empty
        diagonal = index[:, None] == index[None, :]
        self.mask = torch.zeros((self.count, 1, self.width, self.width), device=device, dtype=dtype)
        for first in range(0, self.count, AT_A_TIME):
            numbers = torch.arange(first, min(first + AT_A_TIME, self.count), device=device)
            places = (numbers[:, None] * self.width + index)[:, None]  # [samples, 1, width]
            seen = may_attend(batch[0], batch[1], batch[2], places[..., None], places[:, :, None, :])
            self.mask[numbers] = self.mask[numbers].masked_fill(~(seen | diagonal), float("-inf"))

    def __call__(self, layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """See dice.model.transformer.Attention; a pack is one row, so n is 1."""
        del layer
        group = query.shape[1] // key.shape[1]
        if group > 1:
            key, value = (part.repeat_interleave(group, dim=1) for part in (key, value))
        beside = [self._batch(part) for part in (query, key, value)]
        with sdpa_kernel([SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]):
            seen = F.scaled_dot_product_attention(*beside, attn_mask=self.mask)
        flat = seen.transpose(1, 2).reshape(self.count * self.width, *seen.shape[1::2])
        return F.pad(flat, (0, 0, 0, 0, 0, 1)).index_select(0, self.back).transpose(0, 1)[None]

    def _batch(self, part: Tensor) -> Tensor:
        """[1, heads, tokens, head_dim] -> [samples, heads, width, head_dim]."""
        flat = F.pad(part[0].transpose(0, 1), (0, 0, 0, 0, 0, 1)).index_select(0, self.source)
        return flat.view(self.count, self.width, *flat.shape[1:]).transpose(1, 2)
