"""The training engine `local`: one device, or one whole copy of the model for each process."""

from __future__ import annotations

from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn

from dice.errors import DiceError
from dice.model.transformer import Transformer
from dice.training.losses import Objective, TrainingRows
from dice.training.optimizer import OptimizerConfig, parameter_groups
from dice.training.processes import rank_and_world
from dice.training.tracerl_loss import PolicyObjective, PolicyRows


class LocalEngine:
    """One device, or one replica per process where torch.distributed is initialised (plain data parallelism)."""

    def __init__(self, objective: Objective | PolicyObjective, config: OptimizerConfig) -> None:
        self.objective = objective
        self.config = config
        self.rank, self.world = rank_and_world()
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
        del last  # gradients are shared in `step` only
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
        self._update_weights()
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
            torch.save({"masters": self.weights(), "optimizer": self._optimizer.state_dict()}, folder / "state.pt")

    def forget(self) -> None:
        """Reset the optimizer's moments and step counts; weights stay."""
        self._optimizer.state.clear()

    @torch.no_grad()
    def round_masters(self, dtype: torch.dtype) -> None:
        """Round the weights as saving them in this type and loading them again would."""
        for master in self._masters:
            master.copy_(master.to(dtype))
        self._update_weights()

    def load(self, folder: Path) -> None:
        """See TrainingEngine."""
        state = torch.load(folder / "state.pt", map_location=self.device, weights_only=True)
        if list(state["masters"]) != self._names:
            raise DiceError(f"{folder}: the checkpoint is of a model with other tensors.")
        with torch.no_grad():
            for master, saved in zip(self._masters, state["masters"].values(), strict=True):
                master.copy_(saved)
        self._optimizer.load_state_dict(state["optimizer"])
        self._update_weights()

    @torch.no_grad()
    def _update_weights(self) -> None:
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
