"""A lock between processes: flock on a file, which the kernel drops when its holder dies (kill -9 included).

Works on local file systems and on those network file systems that support flock (NFS, Lustre with -o flock, GPFS).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from dice.errors import HarnessError

_POLL_S = 0.05


@contextlib.contextmanager
def file_lock(path: Path, timeout_s: float) -> Iterator[None]:
    """Hold the lock named by `path` during the block. Raises HarnessError when it cannot be had in `timeout_s`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + timeout_s
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            _acquire(descriptor, path, deadline)
            # The file may have been removed while we waited; then others lock a new one.
            if _same_file(descriptor, path):
                break
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
    try:
        yield
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, path: Path, deadline: float) -> None:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES, errno.EINTR):
                raise HarnessError(f"{path}: this file system has no locks ({error.strerror}).") from error
        if time.monotonic() > deadline:
            raise HarnessError(f"{path}: another process has held this lock for too long; is a builder stuck?")
        time.sleep(_POLL_S)


def _same_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
