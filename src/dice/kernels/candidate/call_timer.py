"""One timed call. The same code times the candidate in its process and the reference in the grader.

The time between two events contains the GPU's work and its waiting. Where kernels are shorter than their launches, the GPU
mostly waits for the host. So a call can be launched behind `fills`: memory fills that keep the GPU busy while the host
launches the call and records both events, and that flush the L2 cache. If the GPU reaches the start event only after the
end event was recorded, it ran the call without waiting for the host (`CallTimes.queued`). A call that waits for the GPU
itself, or whose launches take longer than the fills, is never queued.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import torch

from dice.kernels.sandbox.cuda_runtime import CudaRuntime

Result = TypeVar("Result")


@dataclass(frozen=True)
class CallTimes:
    """Milliseconds of one call."""

    event_ms: float
    """Between two events on the legacy default stream."""
    in_process_ms: float
    """By this process's clock, from before the fills to the end event."""
    drain_ms: float
    """From the end event until the whole device was idle."""
    launch_ms: float
    """By this process's clock, from the record of the start event to the record of the end event."""
    queued: bool
    """The GPU reached the start event after the end event was recorded: `event_ms` contains no wait for the host."""


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

    def time(self, call: Callable[[], Result], fills: int = 0) -> tuple[Result, CallTimes]:
        """Run `call` once on an idle device, or right behind `fills` of the memory that `prepare` overwrote last.

        Raises CudaError, and whatever `call` raises.
        """
        runtime, clock, flush = self._runtime, self._clock, self._flush
        if self._events is None:
            self._events = (runtime.event(), runtime.event())
        start, end = self._events
        address, size = (flush.data_ptr(), flush.numel()) if flush is not None else (0, 0)
        collecting = gc.isenabled()
        gc.disable()
        try:
            runtime.synchronize()
            begun = clock()
            for _ in range(fills):
                runtime.fill(address, 0, size)
            ordering = clock()
            runtime.record(start)
            result = call()
            runtime.record(end)
            ordered = clock()
            queued = fills > 0 and runtime.is_ahead(start)
            runtime.wait(end)
            ended = clock()
            runtime.synchronize()
            drained = clock()
        finally:
            if collecting:
                gc.enable()
        event_ms = runtime.elapsed_ms(start, end)
        times = CallTimes(
            event_ms=event_ms,
            in_process_ms=(ended - begun) * 1e3,
            drain_ms=(drained - ended) * 1e3,
            launch_ms=(ordered - ordering) * 1e3,
            queued=queued,
        )
        return result, times
