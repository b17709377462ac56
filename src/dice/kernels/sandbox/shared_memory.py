"""Flat buffers in memory shared by two processes: sealed memfds, passed by file descriptor.

The trusted side creates every buffer and seals its size, so no other process can shrink it under a reader (which
would be a fatal SIGBUS there). A buffer has no name: only a process that gets its descriptor can use it.
"""

from __future__ import annotations

import fcntl
import hashlib
import mmap
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

from dice.errors import HarnessError

_LARGE_BYTES = 256 << 20
_TOUCHING_THREADS = 8
_COPIED_BYTES = 1 << 30

_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL


def sealed_copy(path: str | Path, sha256: str | None) -> int:
    """Descriptor of a copy of the file in memory, which nobody can write, whoever opens it again by `/proc/self/fd`.

    Raises HarnessError when the content is not the one of that sha256 (hex).
    """
    fd = os.memfd_create("dice-object", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        with open(path, "rb") as source:
            while os.sendfile(fd, source.fileno(), None, _COPIED_BYTES):
                pass
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _SEALS | fcntl.F_SEAL_WRITE)
        with open(os.dup(fd), "rb") as copy:
            copy.seek(0)
            if hashlib.file_digest(copy, "sha256").hexdigest() != sha256:
                raise HarnessError(f"{path}: is not the object that was put there; it is built anew.")
        return fd
    except BaseException:
        os.close(fd)
        raise


class SharedBuffer:
    """Shared bytes as a flat uint8 tensor (`tensor`). Close it when no view of it is in use."""

    def __init__(self, fd: int, n_bytes: int) -> None:
        self.fd = fd
        self.n_bytes = n_bytes
        shared = mmap.mmap(fd, max(n_bytes, 1), mmap.MAP_SHARED)
        self.tensor = torch.frombuffer(shared, dtype=torch.uint8, count=max(n_bytes, 1))[:n_bytes]

    @classmethod
    def create(cls, n_bytes: int) -> SharedBuffer:
        """A new zero-filled buffer of fixed size. Memory is taken as it is touched; of a large one at once, by several
        threads, since there are no huge pages for shared memory. Raises OSError."""
        fd = os.memfd_create("dice-values", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(fd, max(n_bytes, 1))
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _SEALS)
            buffer = cls(fd, n_bytes)
            if n_bytes >= _LARGE_BYTES:
                parts = buffer.tensor.tensor_split(_TOUCHING_THREADS)
                with ThreadPoolExecutor(_TOUCHING_THREADS) as pool:
                    list(pool.map(torch.Tensor.zero_, parts))
            return buffer
        except OSError:
            os.close(fd)
            raise

    def close(self) -> None:
        """Give the descriptor and, with the last tensor that views it, the memory back."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
            del self.tensor  # which holds the map: closed by hand, it would be gone under a view (SIGSEGV)
