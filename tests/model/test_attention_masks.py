"""Tiles of FlexAttention, and parts of SampleAttention, against the whole mask."""

import pytest
import torch

from dice.model.attention_masks import (
    PAD_SAMPLE,
    QUERIES,
    TILE,
    DenseAttention,
    Layout,
    SampleAttention,
    sample_order,
    tiles_seen,
)


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


def random_layout(lengths, copies, block_size, generator):
    """Noised copies of random blocks beside clean samples and some padding, as training lays them out."""
    columns = []
    for copy in range(copies + 1):
        for number, length in enumerate(lengths):
            block = torch.arange(length) // block_size
            kept = (torch.rand(int(block.max()) + 1, generator=generator) < 0.6)[block] | (copy == copies)
            noised = 0 if copy == copies else copy + 1
            columns.append([torch.full_like(block, number)[kept], block[kept], torch.full_like(block, noised)[kept]])
    columns.append([torch.full((9,), PAD_SAMPLE), torch.zeros(9, dtype=torch.long), torch.ones(9, dtype=torch.long)])
    return Layout(*(torch.cat(part) for part in zip(*columns, strict=True)))


@pytest.mark.parametrize("heads", [(2, 2), (4, 2)])
@pytest.mark.parametrize("block_size", [1, 4, 32])
@pytest.mark.parametrize("copies", [0, 1, 3])
@pytest.mark.parametrize("lengths", [(1,), (QUERIES, QUERIES + 1, 3), (5, 3 * QUERIES + 7)])
def test_attention_in_parts_is_that_of_the_whole_mask(lengths, copies, block_size, heads):
    generator = torch.Generator().manual_seed(sum(lengths) + 100 * copies + block_size)
    layout = random_layout(lengths, copies, block_size, generator)
    order = sample_order(layout)
    sizes = [(1, n, layout.sample.numel(), 8) for n in (heads[0], heads[1], heads[1])]
    inputs = [torch.randn(size, generator=generator, dtype=torch.float64, requires_grad=True) for size in sizes]
    weights = torch.randn(sizes[0], generator=generator, dtype=torch.float64)

    whole = DenseAttention(layout.dense())(0, *inputs)
    expected = torch.autograd.grad((whole * weights).sum(), inputs)
    ordered = Layout(*(part[order] for part in (layout.sample, layout.block, layout.noised)))
    parts = SampleAttention(ordered)(0, *(part[:, :, order] for part in inputs))
    torch.testing.assert_close(parts, whole[:, :, order], atol=1e-10, rtol=0)
    found = torch.autograd.grad((parts * weights[:, :, order]).sum(), inputs)
    for one, wanted in zip(found, expected, strict=True):
        torch.testing.assert_close(one, wanted, atol=1e-10, rtol=0)
