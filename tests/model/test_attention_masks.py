"""Tiles of FlexAttention against the whole mask."""

import pytest
import torch

from dice.model.attention_masks import PAD_SAMPLE, TILE, Layout, tiles_seen


@pytest.mark.parametrize("tokens", [TILE, 3 * TILE + 5, 9 * TILE])
@pytest.mark.parametrize("samples", [1, 7])
def test_tiles_are_those_of_the_whole_mask(tokens, samples):
    generator = torch.Generator().manual_seed(tokens + samples)
    clean = tokens // 2
    sample = torch.cat(
        [torch.sort(torch.randint(0, samples, (n,), generator=generator))[0] for n in (tokens - clean, clean)]
    )
    sample[-20:] = PAD_SAMPLE
    block = torch.arange(tokens) // 4
    layout = Layout(sample, block, (torch.arange(tokens) < tokens - clean).long())
    count = -(-tokens // TILE)
    whole = torch.zeros(count * TILE, count * TILE, dtype=torch.bool)
    whole[:tokens, :tokens] = layout.dense()
    tiles = whole.view(count, TILE, count, TILE)
    some, all_ = tiles_seen(layout)
    assert torch.equal(some, tiles.any(3).any(1))
    assert torch.equal(all_, tiles.all(3).all(1))
    assert some.any()
    assert count == 1 or not some.all()
