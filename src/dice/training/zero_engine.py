"""DeepSpeed ZeRO-2 and ZeRO-3 behind the training engine's interface.

Start with `torchrun --nproc-per-node N -m dice.cli sft ...` (or DeepSpeed's own launcher). Losses are already normalised
for the whole step, so DeepSpeed's averaging over devices and micro-batches is undone here.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from dice.errors import DiceError
from dice.model.transformer import Transformer
from dice.training.losses import Objective, TrainingRows
from dice.training.optimizer import OptimizerConfig, parameter_groups
from dice.training.processes import rank_and_world
from dice.training.tracerl_loss import PolicyObjective, PolicyRows

TAG = "zero"
REDUCE_BUCKET = 200_000_000
"""Gradients that are shared at a time; the next ones fill a second buffer."""


def zero_config(
    config: OptimizerConfig,
    *,
    stage: int,
    micro_batches: int,
    dtype: torch.dtype,
    options: Mapping[str, bool | int | float] | None = None,
) -> dict[str, Any]:
    """DeepSpeed's settings: no offload, fp32 accumulation of gradients; `options` replace entries of
    `zero_optimization`."""
    settings: dict[str, Any] = {
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": micro_batches,
        "gradient_clipping": config.max_grad_norm,
        "bf16": {"enabled": dtype == torch.bfloat16},
        "data_types": {"grad_accum_dtype": "fp32"},
        "zero_optimization": {
            "stage": stage,
            "overlap_comm": True,
            "contiguous_gradients": True,
            "reduce_scatter": True,
            "reduce_bucket_size": REDUCE_BUCKET,
        },
        "zero_allow_untested_optimizer": True,
        "steps_per_print": 2**31,
    }
    if stage == 3:
        settings["zero_optimization"] |= {
            "stage3_gather_16bit_weights_on_model_save": True,
            "stage3_prefetch_bucket_size": 400_000_000,  # two layers of 8B; the default is one of its matrices
        }
    settings["zero_optimization"] |= options or {}
    return settings


class ZeroEngine:
    """Optimizer state and gradients (stage 2), or also weights (stage 3), are sharded over the GPUs."""

    def __init__(
        self,
        objective: Objective | PolicyObjective,
        config: OptimizerConfig,
        *,
        stage: int,
        micro_batches: int | None,
        options: Mapping[str, bool | int | float] | None = None,
    ) -> None:
        try:
            import deepspeed  # pyright: ignore[reportMissingImports]
        except ImportError as error:
            raise DiceError("the engines zero2 and zero3 need DeepSpeed: pip install 'dice-repro[train]'.") from error
        self._deepspeed = deepspeed
        self._stage = stage
        self._counted = micro_batches is not None
        self._micro_batches = micro_batches or 1
        parameters = [p for p in objective.parameters() if p.requires_grad]
        optimizer = torch.optim.AdamW(
            parameter_groups(parameters, config),
            lr=config.learning_rate,
            betas=config.betas,
            eps=config.epsilon,
            fused=parameters[0].is_cuda,
        )
        self._engine, *_ = deepspeed.initialize(
            model=objective,
            optimizer=optimizer,
            config=zero_config(
                config, stage=stage, micro_batches=self._micro_batches, dtype=objective.model.dtype, options=options
            ),
        )
        self.rank, self.world = rank_and_world()
        self.device = torch.device(self._engine.device)

    def backward(self, rows: TrainingRows | PolicyRows, normaliser: float, last: bool = False) -> Tensor:
        """See TrainingEngine. All processes must call it equally often."""
        if not self._counted:
            self._engine.set_gradient_accumulation_boundary(last)
        loss = self._engine(rows.to(self.device), normaliser)
        self._engine.backward(loss * (self.world * self._micro_batches))
        if not self._engine.is_gradient_accumulation_boundary():
            self._engine.step()  # only counts the micro-batch: weights are updated at the boundary
        return loss.detach()

    def step(self, learning_rate: float) -> float:
        """See TrainingEngine."""
        for group in self._engine.optimizer.param_groups:
            group["lr"] = learning_rate
        self._engine.step()
        return float(self._engine.get_global_grad_norm() or 0.0)

    def total(self, value: Tensor) -> float:
        """See TrainingEngine."""
        value = value.clone()
        dist.all_reduce(value)
        return float(value)

    def weights(self) -> dict[str, Tensor] | None:
        """See TrainingEngine. ZeRO-3 gathers one tensor at a time; the rest stays sharded."""
        found: dict[str, Tensor] = {}
        for name, parameter in self._engine.module.model.named_parameters():
            gather = self._deepspeed.zero.GatheredParameters([parameter], enabled=self._stage == 3)
            with gather:
                if self.rank == 0:
                    found[name] = parameter.detach().cpu().clone()
        return found if self.rank == 0 else None

    @torch.no_grad()
    def copy_to(self, model: Transformer) -> None:
        """See TrainingEngine."""
        target = dict(model.named_parameters())
        for name, parameter in self._engine.module.model.named_parameters():
            with self._deepspeed.zero.GatheredParameters([parameter], enabled=self._stage == 3):
                target[name].copy_(parameter)

    def save(self, folder: Path) -> None:
        """See TrainingEngine."""
        self._engine.save_checkpoint(str(folder), tag=TAG)

    def load(self, folder: Path) -> None:
        """See TrainingEngine."""
        path, _ = self._engine.load_checkpoint(str(folder), tag=TAG)
        if path is None:
            raise DiceError(f"{folder}: DeepSpeed finds no state there.")
