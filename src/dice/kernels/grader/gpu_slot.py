"""The lock of a GPU: many holders for correctness, one for timing. It holds across processes and runs of this machine.

A readers-writer lock made of two file locks (flock), which the filelock package cannot express: `room` and a `gate`
before it. Readers must pass the gate; a writer holds it from its request until its release. So all waiting timings are
done one after another, then all waiting readers go on together. In the order of arrival, a reader between two timings
would have the GPU for itself. No process starves: a candidate that was timed reads again before its next timing. The
operating system releases the locks of a dead process.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path


def lock_folder() -> Path:
    """Folder of this machine's GPU locks, the same for all users and runs."""
    return Path(tempfile.gettempdir()) / "dice-gpu-locks"


class GpuSlot:
    """The lock of one GPU; one holder per instance. `key` names the GPU, the same in all processes."""

    def __init__(self, key: str, folder: Path | None = None) -> None:
        self._gate, self._room = open_locks(folder, [f"{key}.gate", f"{key}.room"])
        self._held: int | None = None

    @contextlib.contextmanager
    def shared(self) -> Iterator[None]:
        """Use the GPU together with other shared holders, never during a timing."""
        with self._hold(fcntl.LOCK_SH):
            yield

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        """Use the GPU alone."""
        with self._hold(fcntl.LOCK_EX):
            yield

    @contextlib.contextmanager
    def lent(self) -> Iterator[None]:
        """Release the lock while this holder leaves the GPU idle, then take it again in the same mode. Within another
        `lent` nothing happens: it is released already, and taken too early it would be waited for twice."""
        kind = self._held
        if kind is None:
            yield
            return
        self._held = None
        self._release()
        try:
            yield
        finally:
            self._take(kind)
            self._held = kind

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
        """Close the files, which releases the lock."""
        os.close(self._gate)
        os.close(self._room)


def open_locks(folder: Path | None, names: Sequence[str]) -> list[int]:
    """Open the lock files with these names; missing files are made, writable for all users."""
    folder = folder or lock_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(PermissionError):  # another user made it
        folder.chmod(0o1777)
    return [_open(folder / name) for name in names]


def _open(path: Path) -> int:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    with contextlib.suppress(PermissionError):
        os.fchmod(fd, 0o666)
    return fd
