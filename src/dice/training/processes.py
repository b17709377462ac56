"""The processes of one training run: those that torchrun started, or this one alone."""

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

EngineName = Literal["local", "zero2", "zero3"]
"""How gradients become weights: `dice.training.engine`."""
PATIENCE = timedelta(hours=2)
"""How long a process waits for the others, which in reinforcement learning may still wait for verdicts."""
_ALONE = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0", "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1"}
"""What torchrun tells its processes, for a process without it; port 0: a free one, for several runs on one machine."""
_PR_SET_PDEATHSIG = 1


def end_with_torchrun() -> None:
    """Have Linux kill this process when torchrun ends, however it does.

    torchrun starts its processes in sessions of their own and without its open files: neither `kill -9` of the run's process
    group reaches them nor does the jobs' lock (`dice.study.resume`) know of them, and one that lives on would train in the
    same folder as the run that resumes.
    """
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")


def rank_and_world() -> tuple[int, int]:
    """This process's number, and how many there are."""
    return (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)


@contextlib.contextmanager
def process_group(engine: EngineName, device: Literal["auto", "cpu", "cuda"]) -> Iterator[None]:
    """A torch.distributed group where there are several processes or DeepSpeed needs one; else nothing."""
    several = int(os.environ.get("WORLD_SIZE", "1")) > 1
    if several:
        end_with_torchrun()
    elif engine == "local":
        yield
        return
    if not dist.is_initialized():
        gpu = device != "cpu" and torch.cuda.is_available()
        if gpu:
            torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
        for name, value in () if several else _ALONE.items():  # several must meet at one port, which torchrun knows
            os.environ.setdefault(name, value)
        dist.init_process_group("nccl" if gpu else "gloo", timeout=PATIENCE)
    try:
        yield
    finally:
        dist.destroy_process_group()
