"""Run by torchrun: ZeRO-2 and ZeRO-3 that are told the last micro-batch give the losses, gradient norms and weights of
one replica. Devices have different numbers of targets, and steps different numbers of micro-batches.

Without GPUs it runs on CPUs (DS_ACCELERATOR=cpu).
"""

from __future__ import annotations

import copy
import os

import numpy as np
import torch
import torch.distributed as dist
from tiny_models import make_config, make_model
from torch import Tensor

from dice.model.transformer import Transformer
from dice.training.engine import TrainingEngine, make_engine
from dice.training.local_engine import LocalEngine
from dice.training.losses import Objective, TrainingRows, diffusion_rows, draw_noise
from dice.training.optimizer import OptimizerConfig
from dice.training.packing import Pack, Sample

STEPS = (1, 3, 2)
"""Micro-batches of a device in each step."""


def micro_batch(step: int, place: int, rank: int) -> TrainingRows:
    """Some 10 to 250 targets."""
    rng = np.random.default_rng([step, place, rank])
    pack = Pack(tuple(Sample(str(i), rng.integers(0, 96, 120), 30) for i in range(3)))
    return diffusion_rows(pack, draw_noise(pack, rng), block_size=4, mask_id=96)


def curve(engine: TrainingEngine, ranks: list[int]) -> list[tuple[float, float]]:
    """(loss, gradient norm) of each step, the micro-batches of `ranks` on this device."""
    found = []
    for step, count in enumerate(STEPS):
        batch = [micro_batch(step, place, rank) for place in range(count) for rank in ranks]
        loss = torch.zeros((), device=engine.device)
        for place, rows in enumerate(batch):
            loss += engine.backward(rows, 1000, place == len(batch) - 1)
        norm = engine.step(1e-3)
        found.append((engine.total(loss), norm))
    return found


def moved(engine: TrainingEngine, start: Transformer) -> Tensor:
    """What training added to the weights, as they are copied to another model; every process calls it."""
    found = copy.deepcopy(start)
    engine.copy_to(found)
    pairs = zip(found.parameters(), start.parameters(), strict=True)
    return torch.cat([(one - other).detach().float().flatten() for one, other in pairs])


def main() -> None:
    """Compare; any difference ends the process with an error."""
    rank, gpu = int(os.environ["RANK"]), torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if gpu else torch.device("cpu")
    if gpu:
        torch.cuda.set_device(device)
    model = make_model(make_config(4, 2, 32, hidden_size=128, intermediate_size=256)).to(device, torch.bfloat16)
    model.checkpointing, model.recompute_gates = 1, True
    optimizer = OptimizerConfig(learning_rate=1e-3)

    def objective() -> Objective:
        return Objective(copy.deepcopy(model), 16, "batched")

    alone = LocalEngine(objective(), optimizer)
    expected = curve(alone, [0, 1])
    far = moved(alone, model)
    dist.init_process_group("nccl" if gpu else "gloo", device_id=device if gpu else None)
    for name in ("zero2", "zero3"):
        engine = make_engine(name, objective(), optimizer, micro_batches=None)
        found = curve(engine, [rank])
        apart = float((moved(engine, model) - far).norm() / far.norm())
        if rank == 0:
            print(f"{name} {found}, one device {expected}, weights apart {apart:.2e} of the way", flush=True)
        np.testing.assert_allclose(found, expected, rtol=0.02)
        assert apart < 0.1
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
