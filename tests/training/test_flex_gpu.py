"""Training on a GPU: FlexAttention, compiled operations and 16-bit products against the dense mask on the CPU."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from tiny_models import make_config, make_model

from dice.model.transformer import compiled_pointwise
from dice.training.local_engine import LocalEngine
from dice.training.losses import Objective, diffusion_rows, draw_noise
from dice.training.optimizer import OptimizerConfig
from dice.training.packing import Pack, Sample

pytestmark = pytest.mark.gpu


def packs(count: int) -> list[Pack]:
    rng = np.random.default_rng(0)
    return [Pack(tuple(Sample(str(i), rng.integers(0, 96, 200), 60 + i) for i in range(4))) for _ in range(count)]


def rows_of(pack: Pack, multiple: int):
    return diffusion_rows(pack, draw_noise(pack, np.random.default_rng(1)), block_size=4, mask_id=96, multiple=multiple)


@pytest.mark.parametrize("checkpointing", [False, True])
def test_loss_and_gradients_equal_the_dense_cpu_ones(checkpointing):
    config = make_config(4, 2, 32, hidden_size=128, intermediate_size=256)
    slow = make_model(config)
    fast = copy.deepcopy(slow).cuda().use(compiled_pointwise())
    fast.checkpointing = checkpointing
    for pack in packs(2):
        expected = Objective(slow)(rows_of(pack, 1), 500)
        expected.backward()
        found = Objective(fast, 64)(rows_of(pack, 1024).to("cuda"), 500)
        found.backward()
        torch.testing.assert_close(found.cpu(), expected, atol=1e-3, rtol=1e-3)
    for one, other in zip(fast.parameters(), slow.parameters(), strict=True):
        assert one.grad is not None
        assert other.grad is not None
        difference = (one.grad.cpu() - other.grad).norm() / other.grad.norm()
        assert difference < 2e-2


def test_no_memory_of_the_size_of_the_dense_mask():
    """12,288 rows: a boolean mask alone would be 144 MiB, scores of one head in fp32 576 MiB."""
    model = make_model(make_config(4, 2, 32, hidden_size=128, intermediate_size=256)).cuda()
    rng = np.random.default_rng(0)
    pack = Pack(tuple(Sample(str(i), rng.integers(0, 96, 1536), 0) for i in range(4)))
    rows = rows_of(pack, 1024).to("cuda")
    assert len(rows.ids) == 12288
    Objective(model)(rows, 6144).backward()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    with torch.no_grad():
        Objective(model)(rows, 6144)
    assert torch.cuda.max_memory_allocated() - before < 144 * 2**20


def test_bf16_engine_follows_the_fp32_one():
    curves = []
    for dtype in (torch.float32, torch.bfloat16):
        model = make_model(make_config(4, 2, 32, hidden_size=128, intermediate_size=256)).to("cuda", dtype)
        engine = LocalEngine(Objective(model), OptimizerConfig(learning_rate=1e-3))
        curve = []
        for pack in packs(12):
            curve.append(float(engine.backward(rows_of(pack, 1024), int(pack.labelled.sum()))))
            engine.step(1e-3)
        curves.append(curve)
    assert curves[1] == pytest.approx(curves[0], rel=0.05)
