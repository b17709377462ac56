"""One timed call, the same code in the candidate's process and for the reference: fair by construction."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import torch

from dice.kernels.candidate.cuda_runtime import CudaRuntime

Result = TypeVar("Result")


@dataclass(frozen=True)
class CallTimes:
    """Milliseconds of one call: between two events on the legacy default stream; by this process's clock from the
    start to the end event; and from there until the whole device was idle."""

    event_ms: float
    in_process_ms: float
    drain_ms: float


class CallTimer:
    """Times calls on the current device. The functions it uses are bound here, before any candidate code runs."""

    def __init__(self, runtime: CudaRuntime, device: torch.device) -> None:
        self._runtime, self._device = runtime, device
        self._clock = time.perf_counter
        self._events: tuple[object, object] | None = None
        self._flush: torch.Tensor | None = None

    def prepare(self, flush_bytes: int) -> None:
        """Overwrite `flush_bytes` of device memory, so that nothing useful is left in the L2 cache, and wait."""
        if flush_bytes:
            if self._flush is None or self._flush.numel() != flush_bytes:
                self._flush = torch.empty(flush_bytes, dtype=torch.uint8, device=self._device)
            self._runtime.fill(self._flush.data_ptr(), 0, flush_bytes)
        self._runtime.synchronize()

    def time(self, call: Callable[[], Result]) -> tuple[Result, CallTimes]:
        """Run `call` once on an idle device. Raises CudaError, and whatever `call` raises."""
        runtime, clock = self._runtime, self._clock
        if self._events is None:
            self._events = (runtime.event(), runtime.event())
        start, end = self._events
        collecting = gc.isenabled()
        gc.disable()
        try:
            runtime.synchronize()
            begun = clock()
            runtime.record(start)
            result = call()
            runtime.record(end)
            runtime.wait(end)
            ended = clock()
            runtime.synchronize()
            drained = clock()
        finally:
            if collecting:
                gc.enable()
        times = CallTimes(runtime.elapsed_ms(start, end), (ended - begun) * 1e3, (drained - ended) * 1e3)
        return result, times
