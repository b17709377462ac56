"""How gradients become new weights: on one device, replicated, or sharded by DeepSpeed.

All engines do the same arithmetic: 16-bit or fp32 weights for the products, fp32 master weights, gradients summed in
fp32 over micro-batches and devices, global-norm clipping, AdamW.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import torch
import torch.distributed as dist
from pydantic import Field
from torch import Tensor, nn

from dice.config import stage_config
from dice.errors import DiceError
from dice.model.transformer import Transformer
from dice.training.losses import Objective, TrainingRows
from dice.training.trajectory import PolicyObjective, PolicyRows

EngineName = Literal["local", "zero2", "zero3"]


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


class TrainingEngine(Protocol):
    """One optimizer step = `backward` for each micro-batch of this process, then `step`."""

    rank: int
    world: int
    device: torch.device

    def backward(self, rows: TrainingRows | PolicyRows, normaliser: float, last: bool = False) -> Tensor:
        """Add one micro-batch's gradient; returns its share of the loss, detached.

        `last`: the optimizer step follows; needed where `make_engine` was not told the number of micro-batches.
        """
        ...

    def step(self, learning_rate: float) -> float:
        """Update and clear; returns the gradients' global norm before clipping."""
        ...

    def total(self, value: Tensor) -> float:
        """Sum of a scalar over processes."""
        ...

    def weights(self) -> dict[str, Tensor] | None:
        """The trained weights by name, in fp32 where masters are; None on ranks other than 0."""
        ...

    def copy_to(self, model: Transformer) -> None:
        """Put the present weights into another model of the same geometry; every process calls it."""
        ...

    def save(self, folder: Path) -> None:
        """This process's part of the state, into an existing folder."""
        ...

    def load(self, folder: Path) -> None:
        """The reverse of `save`."""
        ...


def training_device(wanted: Literal["auto", "cpu", "cuda"]) -> torch.device:
    """This process's device. Raises DiceError for a GPU that is not there."""
    if wanted == "cuda" and not torch.cuda.is_available():
        raise DiceError("device is cuda, and PyTorch finds no GPU here.")
    if wanted == "cpu" or not torch.cuda.is_available():
        return torch.device("cpu")
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))


def make_engine(
    name: EngineName,
    objective: Objective | PolicyObjective,
    config: OptimizerConfig,
    *,
    micro_batches: int | None,
    zero_options: Mapping[str, bool | int | float] | None = None,
) -> TrainingEngine:
    """The engine `name`. DeepSpeed is imported only here, for zero2 and zero3.

    `micro_batches` of one process in an optimizer step; None: it varies, and `backward` is told the last.
    `zero_options` replace entries of DeepSpeed's `zero_optimization`.
    """
    if name == "local":
        return LocalEngine(objective, config)
    from dice.training.zero import ZeroEngine

    stage = 2 if name == "zero2" else 3
    return ZeroEngine(objective, config, stage=stage, micro_batches=micro_batches, options=zero_options)


def parameter_groups(parameters: Sequence[Tensor], config: OptimizerConfig) -> list[dict[str, Any]]:
    """Matrices decay, vectors (norms) do not."""
    return [
        {"params": [p for p in parameters if p.dim() >= 2], "weight_decay": config.weight_decay},
        {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
    ]


class LocalEngine:
    """One device, or one replica per process where torch.distributed is initialised (plain data parallelism)."""

    def __init__(self, objective: Objective | PolicyObjective, config: OptimizerConfig) -> None:
        self.objective = objective
        self.config = config
        self.rank, self.world = (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)
        named = dict(objective.model.named_parameters())  # tied weights occur once
        self._names = list(named)
        self._parameters = list(named.values())
        self.device = self._parameters[0].device
        self._masters = [
            p if p.dtype == torch.float32 else nn.Parameter(p.detach().float().clone()) for p in self._parameters
        ]
        for parameter, master in zip(self._parameters, self._masters, strict=True):
            if parameter is not master:
                parameter.register_post_accumulate_grad_hook(_moves_gradient_to(master))
        self._optimizer = torch.optim.AdamW(
            parameter_groups(self._masters, config),
            lr=config.learning_rate,
            betas=config.betas,
            eps=config.epsilon,
            fused=self.device.type == "cuda",
        )

    def backward(self, rows: TrainingRows | PolicyRows, normaliser: float, last: bool = False) -> Tensor:
        """See TrainingEngine."""
        del last  # nothing is shared before the step
        loss = self.objective(rows.to(self.device), normaliser)
        loss.backward()
        return loss.detach()

    def step(self, learning_rate: float) -> float:
        """See TrainingEngine."""
        if self.world > 1:
            for master in self._masters:
                if master.grad is None:
                    master.grad = torch.zeros_like(master)
                dist.all_reduce(master.grad)
        norm = nn.utils.clip_grad_norm_(self._masters, self.config.max_grad_norm)
        for group in self._optimizer.param_groups:
            group["lr"] = learning_rate
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        self._publish()
        return float(norm)

    def total(self, value: Tensor) -> float:
        """See TrainingEngine."""
        if self.world > 1:
            value = value.clone()
            dist.all_reduce(value)
        return float(value)

    def weights(self) -> dict[str, Tensor] | None:
        """See TrainingEngine."""
        return {name: m.detach() for name, m in zip(self._names, self._masters, strict=True)} if not self.rank else None

    @torch.no_grad()
    def copy_to(self, model: Transformer) -> None:
        """See TrainingEngine."""
        target = dict(model.named_parameters())
        for name, parameter in zip(self._names, self._parameters, strict=True):
            target[name].copy_(parameter)

    def save(self, folder: Path) -> None:
        """See TrainingEngine. Replicas are equal, so only rank 0 writes."""
        if self.rank == 0:
            masters = dict(zip(self._names, (m.detach() for m in self._masters), strict=True))
            torch.save({"masters": masters, "optimizer": self._optimizer.state_dict()}, folder / "state.pt")

    def forget(self) -> None:
        """Start the optimizer anew: moments and step counts are gone, weights stay."""
        self._optimizer.state.clear()

    @torch.no_grad()
    def round_masters(self, dtype: torch.dtype) -> None:
        """What passing the weights through a file of this type does to them."""
        for master in self._masters:
            master.copy_(master.to(dtype))
        self._publish()

    def load(self, folder: Path) -> None:
        """See TrainingEngine."""
        try:
            state = torch.load(folder / "state.pt", map_location=self.device, weights_only=True)
        except (OSError, RuntimeError, EOFError, pickle.UnpicklingError) as error:
            text = " ".join(str(error).split())[:200]
            raise DiceError(
                f"{folder}: the checkpoint cannot be read ({text}); delete it to resume before it."
            ) from error
        if list(state["masters"]) != self._names:
            raise DiceError(f"{folder}: the checkpoint is of a model with other tensors.")
        with torch.no_grad():
            for master, saved in zip(self._masters, state["masters"].values(), strict=True):
                master.copy_(saved)
        self._optimizer.load_state_dict(state["optimizer"])
        self._publish()

    @torch.no_grad()
    def _publish(self) -> None:
        pairs = [(p, m) for p, m in zip(self._parameters, self._masters, strict=True) if p is not m]
        if pairs:
            torch._foreach_copy_([p for p, _ in pairs], [m for _, m in pairs])  # pyright: ignore[reportPrivateImportUsage]


def _moves_gradient_to(master: Tensor):
    def move(parameter: Tensor) -> None:
        assert parameter.grad is not None
        if master.grad is None:
            master.grad = parameter.grad.float()
        else:
            master.grad += parameter.grad
        parameter.grad = None

    return move
