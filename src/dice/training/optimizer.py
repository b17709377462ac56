"""AdamW's settings, and which parameters decay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import Field
from torch import Tensor

from dice.config import stage_config


@stage_config
class OptimizerConfig:
    """AdamW, with the defaults of the authors' recipe (LLaMA-Factory, examples/train_full_sdar)."""

    learning_rate: float = Field(default=1e-5, gt=0)
    """Peak rate."""
    betas: tuple[float, float] = (0.9, 0.999)
    """Decay of the two moments."""
    epsilon: float = Field(default=1e-8, gt=0)
    """Added to the root of the second moment."""
    weight_decay: float = Field(default=0.0, ge=0)
    """Decoupled decay of matrices; vectors have none."""
    max_grad_norm: float = Field(default=1.0, gt=0)
    """Gradients are scaled down to this global norm."""


def parameter_groups(parameters: Sequence[Tensor], config: OptimizerConfig) -> list[dict[str, Any]]:
    """Matrices decay, vectors (norms) do not."""
    return [
        {"params": [p for p in parameters if p.dim() >= 2], "weight_decay": config.weight_decay},
        {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
    ]
