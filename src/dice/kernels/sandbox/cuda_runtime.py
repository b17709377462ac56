"""The few CUDA runtime calls that the verifier makes itself, by ctypes on the library that PyTorch has loaded.

Events and error checks go around PyTorch's Python layer, which candidate code may patch. Native code in the same
process can still forge them: what is measured here is always checked against the grader's own clock.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

_LEGACY_STREAM = ctypes.c_void_p(0)
"""The legacy default stream: waits for all blocking streams, and is where nearly every candidate launches."""
_NOT_READY = 600
"""cudaErrorNotReady."""


class CudaError(RuntimeError):
    """A runtime call failed; `name` is CUDA's own, e.g. `cudaErrorIllegalAddress`."""

    def __init__(self, name: str, call: str) -> None:
        super().__init__(f"{name} ({call})")
        self.name = name


class CudaRuntime:
    """Bound once, before any candidate code runs. Raises OSError when the runtime is not loaded."""

    def __init__(self) -> None:
        library = ctypes.CDLL(_loaded_runtime())
        self._synchronize = library.cudaDeviceSynchronize
        self._get_last_error = library.cudaGetLastError
        self._error_name = library.cudaGetErrorName
        self._error_name.restype = ctypes.c_char_p
        self._create_event, self._record_event = library.cudaEventCreate, library.cudaEventRecord
        self._wait_event, self._elapsed = library.cudaEventSynchronize, library.cudaEventElapsedTime
        self._query_event, self._peek_error = library.cudaEventQuery, library.cudaPeekAtLastError
        self._memset = library.cudaMemsetAsync
        self._memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t, ctypes.c_void_p]
        self._record_event.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        self._wait_event.argtypes = self._query_event.argtypes = [ctypes.c_void_p]
        self._elapsed.argtypes = [ctypes.POINTER(ctypes.c_float), ctypes.c_void_p, ctypes.c_void_p]

    def _check(self, code: int, call: str) -> None:
        if code:
            name = self._error_name(code)
            raise CudaError(name.decode() if name else f"error {code}", call)

    def synchronize(self) -> None:
        """Wait until the device is idle. Raises CudaError for what any earlier call broke."""
        self._check(self._synchronize(), "cudaDeviceSynchronize")

    def take_error(self) -> str | None:
        """Name of the error state that some earlier call left behind, and clear it where CUDA lets it be cleared."""
        code = self._get_last_error()
        return self._error_name(code).decode() if code else None

    def event(self) -> object:
        """A new timing event."""
        event = ctypes.c_void_p()
        self._check(self._create_event(ctypes.byref(event)), "cudaEventCreate")
        return event

    def record(self, event: object) -> None:
        """Record `event` on the legacy default stream."""
        self._check(self._record_event(event, _LEGACY_STREAM), "cudaEventRecord")

    def wait(self, event: object) -> None:
        """Wait until `event` has happened."""
        self._check(self._wait_event(event), "cudaEventSynchronize")

    def is_ahead(self, event: object) -> bool:
        """Whether `event` has been recorded and is still to come. False where an earlier call left an error behind."""
        if self._peek_error():  # not to be mixed up with, and cleared as, the query's own answer
            return False
        code = self._query_event(event)
        if code == _NOT_READY:
            self._get_last_error()  # CUDA keeps that answer as if it were an error
            return True
        self._check(code, "cudaEventQuery")
        return False

    def elapsed_ms(self, start: object, end: object) -> float:
        """Milliseconds between two events that have happened."""
        value = ctypes.c_float()
        self._check(self._elapsed(ctypes.byref(value), start, end), "cudaEventElapsedTime")
        return value.value

    def fill(self, address: int, value: int, n_bytes: int) -> None:
        """cudaMemsetAsync on the legacy stream: ordered, not waited for."""
        self._check(self._memset(address, value, n_bytes, _LEGACY_STREAM), "cudaMemsetAsync")


def _loaded_runtime() -> str:
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = line.partition("/")[2]
        if path.rpartition("/")[2].startswith("libcudart"):
            return "/" + path
    raise OSError("libcudart is not loaded: this PyTorch has no CUDA")
