# pyright: reportMissingImports=false
"""CUDA C++ kernels compiled when they are first used (NVRTC, about 50 ms each) and launched beside PyTorch's.

They do what Triton cannot: load weights from memory straight into registers, and start before the kernel in front has
ended (programmatic dependent launch, from Hopper on), which closes the gap between two short kernels.

Every kernel of the chain waits for the end of its predecessor before it touches what that one wrote. A short kernel lets
the next one start at once. A kernel that fills the GPU lets it start only when its own loads are in flight or done:
measured on an H200, programs of later kernels beside it halved its speed (probably because they take registers, and
their shared memory is taken from the L1 cache that the loads go through).

`cuda-bindings` comes with PyTorch's CUDA wheels.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dice.errors import HarnessError

SOURCES = Path(__file__).parent / "csrc"


def _checked(result: tuple[Any, ...], doing: str) -> Any:
    """The results behind the error code. Raises HarnessError when the code is not 0."""
    code, *values = result
    if int(code) != 0:
        raise HarnessError(f"CUDA: {doing} failed with {code.name}.")
    return values[0] if values else None


@cache
def has_dependent_launch(device: int) -> bool:
    """Whether a kernel can be set up while the one before it still runs (from Hopper on)."""
    return torch.cuda.get_device_capability(device)[0] >= 9


def overlap(x: Tensor) -> dict[str, bool]:
    """Launch options of a Triton kernel that works on `x`; with OVERLAP set, the kernel must wait by itself."""
    overlaps = x.is_cuda and has_dependent_launch(x.device.index or 0)
    return {"OVERLAP": True, "launch_pdl": True} if overlaps else {"OVERLAP": False}


@cache
def has_clusters(device: int) -> bool:
    """Whether blocks of a cluster can read each other's shared memory (from Hopper on)."""
    return torch.cuda.get_device_capability(device)[0] >= 9


@cache
def kernel(name: str, device: int, **defines: int) -> CudaKernel:
    """The kernel `name` of csrc/`name`.cu with these macros, for a GPU. Compiled once per process."""
    return CudaKernel(name, device, defines)


class CudaKernel:
    """One compiled kernel. Raises HarnessError when it cannot be compiled or launched."""

    def __init__(self, name: str, device: int, defines: Mapping[str, int]) -> None:
        from cuda.bindings import driver

        major, minor = torch.cuda.get_device_capability(device)
        self._overlaps = has_dependent_launch(device)
        source = "".join((SOURCES / part).read_text() for part in ("primitives.cuh", f"{name}.cu"))
        image = compile_image(source, f"sm_{major}{minor}", defines)
        torch.cuda.current_stream(device)  # makes PyTorch's context current
        self._module = _checked(driver.cuModuleLoadData(image), f"loading {name}")
        self._function = _checked(driver.cuModuleGetFunction(self._module, name.encode()), f"finding {name}")
        self._shared_bytes = 0

    def launch(
        self, blocks: int, threads: int, arguments: Sequence[Tensor | int | float | None], shared_bytes: int = 0
    ) -> None:
        """Launch on PyTorch's current stream. Tensors are passed by address; floats and ints have 32 bits."""
        from cuda.bindings import driver

        values = tuple(
            (part.data_ptr() if isinstance(part, Tensor) else part if part is not None else 0) for part in arguments
        )
        kinds = tuple(
            ctypes.c_float if isinstance(part, float) else ctypes.c_int if isinstance(part, int) else ctypes.c_void_p
            for part in arguments
        )
        config = driver.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = blocks, 1, 1
        config.blockDimX, config.blockDimY, config.blockDimZ = threads, 1, 1
        if shared_bytes > self._shared_bytes:
            most = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            _checked(driver.cuFuncSetAttribute(self._function, most, shared_bytes), "asking for shared memory")
            split = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
            _checked(driver.cuFuncSetAttribute(self._function, split, 100), "asking for shared memory")
            self._shared_bytes = shared_bytes
        config.sharedMemBytes = shared_bytes
        config.hStream = driver.CUstream(torch.cuda.current_stream().cuda_stream)
        if self._overlaps:
            overlap = driver.CUlaunchAttribute()
            overlap.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
            overlap.value.programmaticStreamSerializationAllowed = 1
            config.attrs, config.numAttrs = [overlap], 1
        _checked(driver.cuLaunchKernelEx(config, self._function, (values, kinds), 0), "a launch")


def compile_image(source: str, architecture: str, defines: Mapping[str, int]) -> bytes:
    """Machine code for one architecture (`sm_90`). Raises HarnessError with the compiler's message."""
    from cuda.bindings import nvrtc

    program = _checked(nvrtc.nvrtcCreateProgram(source.encode(), b"kernel.cu", 0, [], []), "NVRTC")
    options = [f"--gpu-architecture={architecture}", "--std=c++17", *(f"-D{k}={v}" for k, v in defines.items())]
    (code,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
    if int(code) != 0:
        log = b" " * _checked(nvrtc.nvrtcGetProgramLogSize(program), "NVRTC")
        _checked(nvrtc.nvrtcGetProgramLog(program, log), "NVRTC")
        raise HarnessError(f"a kernel does not compile for {architecture}: {' '.join(log.decode().split())[:2000]}")
    image = b" " * _checked(nvrtc.nvrtcGetCUBINSize(program), "NVRTC")
    _checked(nvrtc.nvrtcGetCUBIN(program, image), "NVRTC")
    nvrtc.nvrtcDestroyProgram(program)
    return image
