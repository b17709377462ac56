"""Settings of PyTorch and of the process that hold for all of its code, as text by name. `dice.kernels.checks.settings` says
which changes of them count against a candidate."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import torch

_REDUCED = (
    "allow_fp16_reduced_precision_reduction",
    "allow_bf16_reduced_precision_reduction",
    "allow_fp16_accumulation",
)

_TWO = 2.0
_cores = os.sched_getaffinity  # before a candidate puts another function in its place


def settings() -> dict[str, str]:
    """All settings that are watched, as they are now."""
    return {name: str(value) for name, value in (_of_precision() | _of_speed()).items()}


def _of_precision() -> dict[str, Any]:
    matmul = torch.backends.cuda.matmul
    found: dict[str, Any] = {
        "torch.backends.cuda.matmul.allow_tf32": matmul.allow_tf32,
        "torch.backends.cudnn.allow_tf32": torch.backends.cudnn.allow_tf32,
        "torch.float32_matmul_precision": torch.get_float32_matmul_precision(),
        "torch.default_dtype": torch.get_default_dtype(),
        "torch.autocast(cuda)": torch.is_autocast_enabled("cuda"),
        "torch.autocast(cpu)": torch.is_autocast_enabled("cpu"),
        "torch.flush_denormal": sys.float_info.min / _TWO == 0,
    }
    for name in _REDUCED:
        if hasattr(matmul, name):
            found[f"torch.backends.cuda.matmul.{name}"] = getattr(matmul, name)
    return found


def _of_speed() -> dict[str, Any]:
    """Which libraries PyTorch uses, which of their algorithms it may take, and with how many threads on how many cores."""
    cudnn: Any = torch.backends.cudnn
    asked: dict[str, Callable[[], Any]] = {
        "torch.backends.mkldnn.enabled": torch._C._get_mkldnn_enabled,
        "torch.backends.cudnn.enabled": lambda: cudnn.enabled,
        "torch.backends.cudnn.benchmark": lambda: cudnn.benchmark,
        "torch.backends.cudnn.deterministic": lambda: cudnn.deterministic,
        "torch.deterministic_algorithms": torch.are_deterministic_algorithms_enabled,
        "torch.backends.nnpack.enabled": torch._C._get_nnpack_enabled,
        "torch.backends.cuda.flash_sdp": torch.backends.cuda.flash_sdp_enabled,
        "torch.backends.cuda.mem_efficient_sdp": torch.backends.cuda.mem_efficient_sdp_enabled,
        "torch.backends.cuda.cudnn_sdp": torch.backends.cuda.cudnn_sdp_enabled,
        "torch.num_threads": torch.get_num_threads,
        "cores": lambda: _cores(0).__len__(),
    }
    return {name: ask() for name, ask in asked.items()}
