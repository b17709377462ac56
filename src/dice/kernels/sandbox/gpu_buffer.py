"""Flat buffers in a GPU's memory that two processes share: made by the trusted side, passed by file descriptor.

As `shared_memory` on the host. They are made by the CUDA driver's virtual memory management (`cuMemCreate` and what follows),
whose descriptors cross a sandbox, unlike the handles of `cudaIpc`. Each buffer carries one value and is closed then: the
other process may write to it for as long as it holds it, so the trusted side copies before it reads.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
from collections.abc import Iterator
from typing import Any

import torch

from dice.kernels.sandbox.cuda_runtime import CudaError

SHARED_ON_CARD_BYTES = 32 << 20
"""From this size on values cross on the card. Smaller ones take less time by way of the host than a buffer takes."""

_PINNED, _BY_DESCRIPTOR, _ON_DEVICE, _READ_AND_WRITE = 1, 1, 1, 3
_OUT_OF_MEMORY = 2

# Bound at import, as in `values`: a candidate may replace it in its process.
_as_tensor = torch.as_tensor


class _Location(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int), ("device", ctypes.c_int))


class _Properties(ctypes.Structure):
    """CUmemAllocationProp."""

    _fields_ = (
        ("kind", ctypes.c_int),
        ("handle_kinds", ctypes.c_int),
        ("location", _Location),
        ("win32_handle", ctypes.c_void_p),
        ("flags", ctypes.c_ubyte * 8),
    )


class _Access(ctypes.Structure):
    """CUmemAccessDesc."""

    _fields_ = (("location", _Location), ("flags", ctypes.c_int))


class _Driver:
    """The driver's functions; each raises CudaError, or PyTorch's error for a full card."""

    def __init__(self) -> None:
        library = ctypes.CDLL("libcuda.so.1")
        address, handle, size = ctypes.c_uint64, ctypes.c_uint64, ctypes.c_size_t
        signatures: dict[str, list[Any]] = {
            "cuMemGetAllocationGranularity": [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int],
            "cuMemCreate": [ctypes.c_void_p, size, ctypes.c_void_p, ctypes.c_uint64],
            "cuMemExportToShareableHandle": [ctypes.c_void_p, handle, ctypes.c_int, ctypes.c_uint64],
            "cuMemImportFromShareableHandle": [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int],
            "cuMemAddressReserve": [ctypes.c_void_p, size, size, address, ctypes.c_uint64],
            "cuMemMap": [address, size, size, handle, ctypes.c_uint64],
            "cuMemSetAccess": [address, size, ctypes.c_void_p, size],
            "cuMemUnmap": [address, size],
            "cuMemAddressFree": [address, size],
            "cuMemRelease": [handle],
            "cuCtxSynchronize": [],
        }
        self._functions: dict[str, Any] = {}
        for name, arguments in signatures.items():
            function = getattr(library, name)
            function.argtypes = arguments
            self._functions[name] = function
        self._error_name = library.cuGetErrorName
        self._error_name.argtypes = [ctypes.c_int, ctypes.c_void_p]

    def call(self, name: str, *arguments: Any) -> None:
        code = self._functions[name](*arguments)
        if code == _OUT_OF_MEMORY:
            raise torch.OutOfMemoryError(f"CUDA out of memory ({name})")
        if code:
            text = ctypes.c_char_p()
            self._error_name(code, ctypes.byref(text))
            raise CudaError(text.value.decode() if text.value else f"error {code}", name)


@functools.cache
def _driver() -> _Driver:
    return _Driver()


def bind() -> None:
    """Find the driver's functions, before any candidate code runs. Raises OSError where there is no driver."""
    _driver()


@functools.cache
def possible() -> bool:
    """Whether processes can share memory of this GPU; asked by the trusted side."""
    try:
        with lent(1) as (buffer, fd):
            buffer.tensor[0] = 7
            buffer.settle()
            again = GpuBuffer.attach(fd, 1)
            arrived = int(again.tensor[0]) == 7
            again.close()
            return arrived
    except (CudaError, OSError):
        return False


@contextlib.contextmanager
def lent(n_bytes: int) -> Iterator[tuple[GpuBuffer, int]]:
    """A new zero-filled buffer of the trusted side and its descriptor, for the block.

    Raises CudaError where the driver cannot share memory, torch.OutOfMemoryError where the card is full.
    """
    torch.cuda.synchronize()  # which makes a context where there is none yet
    driver, handle, fd = _driver(), ctypes.c_uint64(), ctypes.c_int(-1)
    driver.call("cuMemCreate", ctypes.byref(handle), _rounded(n_bytes), ctypes.byref(_properties()), 0)
    try:
        driver.call("cuMemExportToShareableHandle", ctypes.byref(fd), handle, _BY_DESCRIPTOR, 0)
    except BaseException:
        driver.call("cuMemRelease", handle)
        raise
    try:
        with contextlib.closing(GpuBuffer(handle.value, n_bytes)) as buffer:
            buffer.tensor.zero_()  # an earlier candidate's outputs may have been in this memory
            buffer.settle()  # or the zeros might come after what the other process writes
            yield buffer, fd.value
    finally:
        os.close(fd.value)


class GpuBuffer:
    """Shared bytes as a flat uint8 tensor on the current GPU (`tensor`). Close it when no view of it is in use."""

    def __init__(self, handle: int, n_bytes: int) -> None:
        """Map the memory behind a handle of the driver's, which is released. Raises CudaError."""
        driver, address = _driver(), ctypes.c_uint64()
        self._size = _rounded(n_bytes)
        access = _Access(_Location(_ON_DEVICE, torch.cuda.current_device()), _READ_AND_WRITE)
        with contextlib.ExitStack() as undo:
            try:
                driver.call("cuMemAddressReserve", ctypes.byref(address), self._size, 0, 0, 0)
                undo.callback(driver.call, "cuMemAddressFree", address, self._size)
                driver.call("cuMemMap", address, self._size, 0, handle, 0)
                undo.callback(driver.call, "cuMemUnmap", address, self._size)
            finally:
                driver.call("cuMemRelease", handle)  # the memory stays for as long as it is mapped
            driver.call("cuMemSetAccess", address, self._size, ctypes.byref(access), 1)
            self.tensor: torch.Tensor = gpu_memory(address.value, n_bytes)
            self._unmap = undo.pop_all()

    @classmethod
    def attach(cls, fd: int, n_bytes: int) -> GpuBuffer:
        """The buffer that another process has `lent`, in this one, which has a CUDA context. Raises CudaError."""
        handle = ctypes.c_uint64()
        _driver().call("cuMemImportFromShareableHandle", ctypes.byref(handle), fd, _BY_DESCRIPTOR)
        return cls(handle.value, n_bytes)

    def settle(self) -> None:
        """Wait until what this process has begun on the GPU is done. Raises CudaError."""
        _driver().call("cuCtxSynchronize")

    def close(self) -> None:
        """Give this process's part of the memory back, when its work is done. Raises CudaError."""
        with self._unmap:
            del self.tensor
            self.settle()


def gpu_memory(address: int, n_bytes: int) -> torch.Tensor:
    """Memory of the current GPU as a flat uint8 tensor, which does not own it."""
    return _as_tensor(_Bytes(address, n_bytes), device="cuda")


class _Bytes:
    """GPU memory in the form that PyTorch takes (`__cuda_array_interface__`, version 3)."""

    def __init__(self, address: int, n_bytes: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (n_bytes,),
            "typestr": "|u1",
            "data": (address, False),
            "version": 3,
        }


def _properties() -> _Properties:
    location = _Location(_ON_DEVICE, torch.cuda.current_device())
    return _Properties(_PINNED, _BY_DESCRIPTOR, location, None)


def _rounded(n_bytes: int) -> int:
    """The size of the memory behind a buffer: whole pages of the driver's."""
    page = ctypes.c_size_t()
    _driver().call("cuMemGetAllocationGranularity", ctypes.byref(page), ctypes.byref(_properties()), 0)
    return -(-n_bytes // page.value) * page.value
