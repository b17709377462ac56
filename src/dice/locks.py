"""A lock between processes: `filelock`'s flock on a file. Linux drops it when its holder dies (kill -9 too).

Works on local file systems and on those network file systems that support flock (NFS, Lustre with -o flock, GPFS).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from dice.errors import DiceError, HarnessError


class LockTaken(HarnessError):
    """Another process holds the lock, and did not let go of it in time."""


@contextlib.contextmanager
def file_lock(path: Path, timeout_s: float, gives_up: Callable[[], bool] | None = None) -> Iterator[None]:
    """Hold the lock named by `path` during the block.

    Raises LockTaken when it is not free in `timeout_s`, and HarnessError where no lock can be had, or once `gives_up` says
    that nobody wants it any more.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # No fallback: a lock that is a file's existence would outlive its holder.
    lock = FileLock(path, thread_local=False, fallback_to_soft=False)
    try:
        lock.acquire(timeout=timeout_s, cancel_check=gives_up)
    except Timeout as error:
        if gives_up is not None and gives_up():
            raise HarnessError(f"{path}: the wait for this lock was ended.") from error
        raise LockTaken(f"{path}: another process has held this lock for too long; is a builder stuck?") from error
    except OSError as error:
        raise HarnessError(f"{path}: no lock can be had there ({error.strerror}).") from error
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def only_holder(path: Path, taken: str) -> Iterator[None]:
    """Hold the lock named by `path` during the block. Raises DiceError, with the text `taken`, where another process does."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(file_lock(path, timeout_s=0))
        except LockTaken as error:
            raise DiceError(taken) from error
        yield
