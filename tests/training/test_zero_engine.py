"""What DeepSpeed is told; its curves are compared in test_several_gpus.py."""

from __future__ import annotations

import pytest
import torch

from dice.training.optimizer import OptimizerConfig
from dice.training.zero_engine import zero_config


@pytest.mark.parametrize("stage", [2, 3])
def test_settings(stage):
    optimizer = OptimizerConfig(max_grad_norm=0.5)
    plain = zero_config(optimizer, stage=stage, micro_batches=3, dtype=torch.bfloat16)
    assert plain["zero_optimization"]["stage"] == stage
    assert plain["gradient_accumulation_steps"] == 3
    assert plain["gradient_clipping"] == 0.5
    assert plain["bf16"]["enabled"]
    assert plain["data_types"]["grad_accum_dtype"] == "fp32"
    assert not zero_config(optimizer, stage=stage, micro_batches=1, dtype=torch.float32)["bf16"]["enabled"]
    options = {"reduce_bucket_size": 1000, "overlap_comm": False}
    changed = zero_config(optimizer, stage=stage, micro_batches=3, dtype=torch.bfloat16, options=options)
    assert changed["zero_optimization"] == plain["zero_optimization"] | options
    assert changed != plain
