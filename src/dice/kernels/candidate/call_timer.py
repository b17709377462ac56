"""One timed call, the same code in the candidate's process and for the reference: fair by construction.

Between two events lies what the GPU did, and what it waited for: where a call's kernels are shorter than their launches,
mostly the host, with its scheduling, its clocks and its neighbours. So a call can be ordered behind `fills`, memory
fills that keep the GPU busy while the host orders the call and both events (and that flush the L2 cache). If the start
event is still to come when the end event has been ordered, the GPU went through the call without waiting for the host:
`CallTimes.queued`. A call that waits for the GPU inside, or is ordered more slowly than the fills last, is never queued.
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
    """From there until the whole device was idle."""
    launch_ms: float
    """By this process's clock, from the record of the start event to the record of the end event."""
    queued: bool
    """The GPU came to the start event only after the end event had been ordered: `event_ms` has no wait for the host."""


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
