"""The device that a candidate runs on, seen from its process: a GPU, the CPU in its place, or none."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import torch

from dice.kernels.candidate.call_timer import CallTimer
from dice.kernels.candidate.noise import leave, leave_noise
from dice.kernels.candidate.poison import Poison
from dice.kernels.cpu.device import CudaOnCpu
from dice.kernels.cpu.runtime import CpuRuntime
from dice.kernels.sandbox import gpu_buffer
from dice.kernels.sandbox.cuda_runtime import CudaError, CudaRuntime


class Accelerator:
    """One device; what it lacks is None."""

    def __init__(self, device: str, backend: str) -> None:
        """device: `cuda` or `cpu`. backend: `cpu` makes `cuda` mean the CPU in this process. A `cuda` back end without its
        device is a build ahead, where PyTorch says that there is a GPU."""
        self.device = torch.device(device)
        self.cuda: CudaRuntime | None = None
        self.timer: CallTimer | None = None
        self._poison: Poison | None = None
        self._pretence: CudaOnCpu | None = None
        if self.device.type == "cuda":
            gpu_buffer.bind()
            self.cuda = CudaRuntime()
            self.timer = CallTimer(self.cuda, self.device)
            self._poison = Poison(self.cuda, self.device)
        elif backend == "cpu":
            self._pretence = CudaOnCpu()
        else:
            _claim_cuda()

    def spread_poison(self, inputs: Any, fill: int, everywhere: bool = False, piece_bytes: int = 0) -> None:
        """Fill the memory that a call on `inputs` gets next with a byte; `everywhere`: all that is free. `piece_bytes`: how
        much is copied behind each pointer of its launches. Only on a GPU."""
        if self._poison is not None:
            self._poison.spread(inputs, fill, piece_bytes)
            if everywhere:
                self._poison.overwrite_freed(fill)

    def leave_noise(self, sizes: Sequence[int]) -> None:
        """Finite numbers in the memory that a call gets next, if it asks for these sizes in bytes, or for usual ones."""
        with self.honest():
            leave_noise(sizes, self.device)
        if self.cuda is not None:
            self.cuda.synchronize()

    def leave(self, answers: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """These answers [n] in the memory that a call gets next, if it asks for their sizes. To be held meanwhile: see
        `dice.kernels.candidate.noise.leave`."""
        with self.honest():
            between = leave(answers, self.device)
        if self.cuda is not None:
            self.cuda.synchronize()
        return between

    def settle(self) -> None:
        """Wait for the device; an error state that is left behind is a failure, reported or not."""
        if self._pretence is not None:
            runtime = CpuRuntime.loaded()
            if runtime is not None and (left := runtime.take_error()) is not None:
                raise CudaError(left, runtime.fault() or "left behind by an earlier call")
            if runtime is not None and (beside := runtime.take_memory_fault()):
                raise CudaError("cudaErrorIllegalAddress", beside)
        if self.cuda is None or not torch.cuda.is_initialized():
            return
        self.cuda.synchronize()
        left = self.cuda.take_error()
        if left is not None:
            raise CudaError(left, "left behind by an earlier call")

    def honest(self) -> contextlib.AbstractContextManager[None]:
        """For the verifier's own handling of tensors, where `cuda` is only pretended."""
        return contextlib.nullcontext() if self._pretence is None else self._pretence.honest()


def _claim_cuda() -> None:
    """For a build ahead, where there is no GPU: candidates that ask before they build are to build.

    What then needs the GPU raises, and settles nothing (`dice.kernels.grader.sequence.prebuild_candidate`).
    """
    torch.cuda.is_available = lambda: True
    torch.cuda.device_count = lambda: 1
