"""Kernels of csrc without a GPU: their own source, threads as fibers (emulated_gpu.h)."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from dice.decoding.cuda_kernel import SOURCES

LAUNCH = """
extern "C" void run(int count, int shared_bytes, int at_once, {parameters}) {{
    copies_at_once = at_once;
    launch(count, THREADS, SPLITS, shared_bytes, [=] {{ {name}({arguments}); }});
}}
"""


def emulate(
    folder: Path,
    name: str,
    defines: Mapping[str, int],
    blocks: int,
    shared_bytes: int,
    arguments: Mapping[str, Tensor | int | float | None],
    out: Tensor,
    edit: tuple[str, str] = ("", ""),
) -> tuple[Tensor, Tensor]:
    """What a launch leaves in `out`, one of the arguments: copies arriving at once, and as late as may be.

    `edit` replaces a piece of the kernel's source.
    """
    kernel = (SOURCES / f"{name}.cu").read_text()
    assert edit[0] in kernel
    header = kernel[kernel.index(f"{name}(") + len(name) + 1 :]
    parameters = header[: header.index(")")]
    assert [part.split()[-1] for part in parameters.split(",")] == list(arguments)
    launch = LAUNCH.format(name=name, parameters=parameters, arguments=", ".join(arguments))
    stand_in = Path(__file__).with_name("emulated_gpu.h").read_text()
    source = stand_in + kernel.replace(*edit) + launch
    library = folder / "kernel.so"
    options = ["-O1", "-std=c++17", "-shared", "-fPIC", "-w", *(f"-D{key}={value}" for key, value in defines.items())]
    subprocess.run(["g++", *options, "-x", "c++", "-", "-o", library], input=source, text=True, check=True)

    def value(part: Tensor | int | float | None) -> ctypes.c_void_p | ctypes.c_int | ctypes.c_float:
        if isinstance(part, float):
            return ctypes.c_float(part)
        return (
            ctypes.c_int(part) if isinstance(part, int) else ctypes.c_void_p(None if part is None else part.data_ptr())
        )

    before, found, loaded = out.clone(), [], ctypes.CDLL(str(library))
    for at_once in (1, 0):
        out.copy_(before)
        loaded.run(blocks, shared_bytes, at_once, *map(value, arguments.values()))
        found.append(out.clone())
    return found[0], found[1]


def random(*shape: int) -> Tensor:
    """N(0, 1) in bf16, the same for a shape."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape))).bfloat16()
