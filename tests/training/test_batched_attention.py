"""A pack as one padded batch gives what its samples give one after the other, gradients included."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from test_losses import MASK, gradients, make_pack
from tiny_models import make_config, make_model

from dice.model.attention_masks import DenseAttention
from dice.training.batched_attention import BatchedAttention
from dice.training.losses import Objective, causal_rows, diffusion_rows, draw_noise


@pytest.mark.parametrize("count", [3, 20])
@pytest.mark.parametrize("causal", [False, True])
def test_equals_the_dense_mask(count, causal):
    model = make_model(make_config(model_type="qwen3" if causal else "sdar"))
    pack = make_pack(tuple((5 + 7 * (n % 3), 7 + 4 * (n % 5)) for n in range(count)))
    noise = draw_noise(pack, np.random.default_rng(0))
    if causal:
        rows = causal_rows(pack, multiple=128)
    else:
        rows = diffusion_rows(pack, noise, block_size=4, mask_id=MASK, multiple=128)
    real = rows.layout.sample >= 0
    with torch.no_grad():
        dense = model(rows.ids[None], rows.positions[None], DenseAttention(rows.layout.dense()))[0, real]
        batched = model(rows.ids[None], rows.positions[None], BatchedAttention(rows.layout, model.dtype))[0, real]
    torch.testing.assert_close(batched, dense, atol=1e-4, rtol=1e-4)
    losses, found = [], []
    for attention in ("auto", "batched"):
        loss = Objective(model, attention=attention)(rows, 100)
        loss.backward()
        losses.append(loss.detach())
        found.append(gradients(model))
    torch.testing.assert_close(losses[0], losses[1])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)
