"""What `dice sft` and `dice rl` set up alike: the number type, the check of memory, the model that is trained, and what a run
is told apart by."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import torch
import torch.distributed as dist

from dice.config import spec_hash
from dice.data.tokenizer import CodeTokenizer
from dice.errors import DiceError
from dice.manifest import sha256_file, weights_sha256
from dice.model.checkpoint import Dtype, torch_dtype
from dice.model.transformer import Transformer, compiled_pointwise
from dice.training.memory import TrainingMemory, layers_to_recompute
from dice.training.processes import rank_and_world


def training_dtype(wanted: Dtype | None, device: torch.device) -> torch.dtype:
    """Type of the products' weights: the one that is set, else bfloat16 on a GPU and float32 on a CPU."""
    return torch_dtype(wanted or ("bfloat16" if device.type == "cuda" else "float32"))


def check_memory(stage: str, memory: TrainingMemory, memory_gib: float | None, device: torch.device) -> None:
    """Print what training takes of a GPU. Raises DiceError where that is more than is set, or than the device has."""
    if rank_and_world()[0] == 0:
        print(f"{stage}: up to {memory}", file=sys.stderr)
    if memory_gib is not None:
        memory.check(int(memory_gib * 2**30))
    elif device.type == "cuda":
        memory.check(torch.cuda.get_device_properties(device).total_memory)


def mask_token(tokenizer: CodeTokenizer, folder: str) -> int:
    """Id of the mask token. Raises DiceError where the tokenizer in `folder` has none."""
    if tokenizer.ids.mask is None:
        raise DiceError(f"{folder}: the tokenizer has no mask token, which block diffusion needs.")
    return tokenizer.ids.mask


def to_train(model: Transformer, recomputed: bool | int | None, *, compiled: bool) -> Transformer:
    """The model in training mode; `recomputed`, `compiled`: the settings activation_checkpointing and compile."""
    model.checkpointing = layers_to_recompute(recomputed, model.config)
    if compiled and model.lm_head.weight.is_cuda:
        model.use(compiled_pointwise())
    return model.train()


def run_identity(spec: dict[str, Any], model: str | None, data: Iterable[str]) -> str:
    """Hash of everything that the curve depends on: settings, the weights that it starts from (None: from scratch) and data.

    Computed once, and the same in all processes: weights are gigabytes.
    """
    found = [""]
    rank, world = rank_and_world()
    if rank == 0:
        weights = [] if model is None else [*weights_sha256(model).values()]
        found = [spec_hash(spec | {"weights": weights, "data": [sha256_file(path) for path in data]})]
    if world > 1:
        dist.broadcast_object_list(found)
    return found[0]
