"""Weights that are fetched ahead: their pieces on any machine, the kernels that ask for them on a GPU."""

from __future__ import annotations

import pytest
import torch

from dice.decoding import ahead
from dice.decoding.ahead import Ahead, Amounts, Piece, piece


def test_a_piece_is_of_every_row_and_inside_it():
    weights = torch.zeros(64, 512, dtype=torch.bfloat16)
    found = piece(weights, 64 * 300)
    assert (found.rows, found.stride, found.size) == (64, 1024, 256)  # whole lines of the cache
    assert piece(weights, 10**9).size == 1024
    assert piece(weights, 10**9, skipped=384).size == 640
    assert piece(weights, 10**9, skipped=2048).size == 0
    assert piece(weights, 64 * 100).size == 0
    assert piece(weights[:, 1:], 10**9).size == 0  # does not begin at 16 bytes
    assert piece(weights[:, 8:], 10**9).size == 0  # rows that lie apart


@pytest.mark.gpu
def test_asking_changes_no_bit(monkeypatch):
    """Every kernel that asks, beside the same one that does not; more rows than one program's lanes, odd sizes."""
    from dice.decoding.kernels import add_rms_norm, block_attention, gate
    from dice.decoding.products import few_rows_product

    def random(*shape: int) -> torch.Tensor:
        generator = torch.Generator().manual_seed(sum(shape))
        return (torch.randn(*shape, generator=generator) / 8).bfloat16().cuda()

    weights, x, norm = random(40_000, 320), random(32, 2560), random(2560)
    for wanted in (Piece(weights, 640), Piece(weights, 128), Piece(random(3, 64), 128)):
        asked, plain = (add_rms_norm(x, None, norm, 1e-6, each)[1] for each in (wanted, None))
        assert torch.equal(asked, plain)
        assert torch.equal(gate(x, wanted), gate(x))
        query, keys, values = random(32, 32, 128), random(8, 8, 512, 128), random(8, 8, 512, 128)
        tiles = torch.tensor([(i, 4 * (17 * i % 120), 4 * i, 4 * (i != 3), 0) for i in range(8)]).int().cuda()
        how = {"tile_tokens": 4, "block_size": 4, "splits": 4}
        plain = block_attention(query, keys, values, tiles, **how)
        with monkeypatch.context() as patch:
            patch.setattr(ahead, "KEYS", 128)
            asked = block_attention(query, keys, values, tiles, wanted=wanted, **how)
        seen = [row for row in range(32) if row // 4 != 3]
        assert torch.equal(asked[seen], plain[seen])
    own = random(1280, 2560)
    for amounts in (Amounts(own=2**22), Amounts(2**20, 2**22, 2**23), Amounts(late=2**30)):
        plain = few_rows_product(x[:4], own, norm=norm, eps=1e-6, gated=True)
        asked = few_rows_product(x[:4], own, norm=norm, eps=1e-6, gated=True, ahead=Ahead(amounts, weights))
        assert torch.equal(asked, plain)
    torch.cuda.synchronize()
