"""The processes of one training run, each with its device: those that torchrun started, or this one alone."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from collections.abc import Iterator
from datetime import timedelta
from typing import Literal

import torch
import torch.distributed as dist

from dice.errors import DiceError

DeviceName = Literal["auto", "cpu", "cuda"]
EngineName = Literal["local", "zero2", "zero3"]
"""How gradients become weights: `dice.training.engine`."""
PATIENCE = timedelta(hours=2)
"""How long a process waits for the others, which in reinforcement learning may still wait for verdicts."""
_ALONE = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0", "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1"}
"""Environment that torchrun gives its processes, for a process without it; port 0: a free one, so that runs do not clash."""
_PR_SET_PDEATHSIG = 1


def end_with_torchrun() -> None:
    """Have Linux kill this process when torchrun ends, however it does.

    torchrun starts its processes in sessions of their own and without its open files. So `kill -9` of the run's process group
    does not reach them, and they hold no share of the jobs' lock (`dice.study.resume`). A process that lived on would train
    in the same folder as the run that resumes.
    """
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")


def training_device(wanted: DeviceName) -> torch.device:
    """This process's device, made PyTorch's current one. Raises DiceError where a GPU is wanted and there is none."""
    if wanted == "cuda" and not torch.cuda.is_available():
        raise DiceError("device is cuda, and PyTorch finds no GPU here.")
    if wanted == "cpu" or not torch.cuda.is_available():
        return torch.device("cpu")
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    torch.cuda.set_device(device)
    return device


def rank_and_world() -> tuple[int, int]:
    """This process's number, and how many there are."""
    return (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)


@contextlib.contextmanager
def process_group(engine: EngineName, device: DeviceName) -> Iterator[None]:
    """A torch.distributed group where there are several processes or DeepSpeed needs one; else nothing."""
    several = int(os.environ.get("WORLD_SIZE", "1")) > 1
    if several:
        end_with_torchrun()
    elif engine == "local":
        yield
        return
    if not dist.is_initialized():
        backend = "nccl" if training_device(device).type == "cuda" else "gloo"
        for name, value in () if several else _ALONE.items():  # several must meet at one port, which torchrun knows
            os.environ.setdefault(name, value)
        dist.init_process_group(backend, timeout=PATIENCE)
    try:
        yield
    finally:
        dist.destroy_process_group()
