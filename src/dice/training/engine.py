"""How gradients become new weights: on one device, replicated, or sharded by DeepSpeed.

All engines do the same arithmetic: 16-bit or fp32 weights for the products, fp32 master weights, gradients summed in
fp32 over micro-batches and devices, global-norm clipping, AdamW.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from dice.model.transformer import Transformer
from dice.training.local_engine import LocalEngine
from dice.training.losses import Objective, TrainingRows
from dice.training.optimizer import OptimizerConfig
from dice.training.processes import EngineName
from dice.training.tracerl_loss import PolicyObjective, PolicyRows
from dice.training.zero_engine import ZeroEngine


class TrainingEngine(Protocol):
    """One optimizer step = `backward` for each micro-batch of this process, then `step`."""

    rank: int
    world: int
    device: torch.device

    def backward(self, rows: TrainingRows | PolicyRows, normaliser: float, last: bool = False) -> Tensor:
        """Add one micro-batch's gradient; returns its share of the loss, detached.

        `last`: the optimizer step follows; needed where `make_engine` got no number of micro-batches.
        """
        ...

    def step(self, learning_rate: float) -> float:
        """Update and clear; returns the gradients' global norm before clipping."""
        ...

    def total(self, value: Tensor) -> float:
        """Sum of a scalar over processes."""
        ...

    def weights(self) -> dict[str, Tensor] | None:
        """The trained weights by name, in fp32 where there are master weights; None on ranks other than 0."""
        ...

    def copy_to(self, model: Transformer) -> None:
        """Copy the present weights into another model of the same geometry; every process calls it."""
        ...

    def save(self, folder: Path) -> None:
        """Write this process's part of the state into an existing folder."""
        ...

    def load(self, folder: Path) -> None:
        """The reverse of `save`."""
        ...


def make_engine(
    name: EngineName,
    objective: Objective | PolicyObjective,
    config: OptimizerConfig,
    *,
    micro_batches: int | None,
    zero_options: Mapping[str, bool | int | float] | None = None,
) -> TrainingEngine:
    """The engine `name`. DeepSpeed is imported only by zero2 and zero3.

    `micro_batches`: of one process in an optimizer step; None: it varies, and `backward` is told which is the last.
    `zero_options` replace entries of DeepSpeed's `zero_optimization`.
    """
    if name == "local":
        return LocalEngine(objective, config)
    stage = 2 if name == "zero2" else 3
    return ZeroEngine(objective, config, stage=stage, micro_batches=micro_batches, options=zero_options)
