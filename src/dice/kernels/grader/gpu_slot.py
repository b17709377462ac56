"""Who may use a GPU: many for correctness, one for timing. Locks are files, so they hold across processes and runs.

A readers-writer lock of two flocks: the room, and a gate before it that only readers must pass and that writers hold from
their asking to their going. So all timings that wait are done together, and then all that waited for them go on together;
taken in the order of their coming, a reader between two timings would have the GPU for itself. Nobody starves: who has
been timed reads before it is timed again. The kernel releases a dead process's locks.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path


def lock_folder() -> Path:
    """Where the locks of this machine are: one place for all users and runs."""
    return Path(tempfile.gettempdir()) / "dice-gpu-locks"


class GpuSlot:
    """The lock of one GPU; one holder per instance. `key`: the same for all processes that mean the same GPU."""

    def __init__(self, key: str, folder: Path | None = None) -> None:
        self._gate, self._room = open_locks(folder, [f"{key}.gate", f"{key}.room"])
        self._held: int | None = None

    @contextlib.contextmanager
    def shared(self) -> Iterator[None]:
        """Use the GPU beside others that do the same, never beside a timing."""
        with self._hold(fcntl.LOCK_SH):
            yield

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        """Use the GPU alone."""
        with self._hold(fcntl.LOCK_EX):
            yield

    @contextlib.contextmanager
    def lent(self) -> Iterator[None]:
        """Let others in while this holder leaves the GPU idle, then take it back in the same way."""
        kind = self._held
        if kind is None:
            yield
            return
        self._release()
        try:
            yield
        finally:
            self._take(kind)

    @contextlib.contextmanager
    def _hold(self, kind: int) -> Iterator[None]:
        assert self._held is None, "one holder per instance"
        self._take(kind)
        self._held = kind
        try:
            yield
        finally:
            self._held = None
            self._release()

    def _take(self, kind: int) -> None:
        try:
            fcntl.flock(self._gate, fcntl.LOCK_SH if kind == fcntl.LOCK_EX else fcntl.LOCK_EX)
            fcntl.flock(self._room, kind)
        except BaseException:
            self._release()
            raise
        if kind == fcntl.LOCK_SH:
            fcntl.flock(self._gate, fcntl.LOCK_UN)

    def _release(self) -> None:
        fcntl.flock(self._room, fcntl.LOCK_UN)
        fcntl.flock(self._gate, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the files; what is held is released."""
        os.close(self._gate)
        os.close(self._room)


def open_locks(folder: Path | None, names: Sequence[str]) -> list[int]:
    """Descriptors of the lock files with these names, made for all users where they are missing."""
    folder = folder or lock_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(PermissionError):  # another user made it, for all
        folder.chmod(0o1777)
    return [_open(folder / name) for name in names]


def _open(path: Path) -> int:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    with contextlib.suppress(PermissionError):
        os.fchmod(fd, 0o666)
    return fd
