"""Room in a GPU's memory: who will need much of it waits until others are done with theirs.

The card is divided into parts, each of them a lock file that one holder may have. Some are for small problems alone, so
that these need not wait until large ones in front of them have gathered theirs. Nobody counts real bytes: a candidate
that takes more than was thought finds the card full, and is run again with the whole card for itself
(`dice.kernels.grader.executor`). The kernel releases a dead process's locks.
"""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
import time
from collections.abc import Iterator
from pathlib import Path

from dice.kernels.grader.gpu_slot import open_locks

PARTS = 32
"""Of a card; as many executors at most can be on it. One is 4 GiB of an H200's 140: two contexts and small problems."""
SMALL_PARTS = 8
"""Of them, for those who need only one."""
BYTES_PER_INPUT_BYTE = 12
"""What an input's byte takes on the card: on the candidate's side the new and the old inputs, the old outputs and twice the
poison, which is twice their size and out of which come the outputs; on the grader's two sets of inputs, two expected
outputs and the candidate's."""
_POLL_S = 0.02


class GpuMemory:
    """The memory of one GPU; one holder per instance. `key`: the same for all processes that mean the same GPU."""

    def __init__(self, key: str, total_bytes: int, folder: Path | None = None) -> None:
        self._total_bytes = total_bytes
        self._turnstile, *self._parts = open_locks(
            folder, [f"{key}.memory-turnstile", *(f"{key}.memory-{index}" for index in range(PARTS))]
        )

    @contextlib.contextmanager
    def room_for(self, input_bytes: int) -> Iterator[None]:
        """Hold the room for a problem with inputs of that size."""
        wanted = max(1, math.ceil(PARTS * BYTES_PER_INPUT_BYTE * input_bytes / self._total_bytes))
        small, others = self._parts[:SMALL_PARTS], self._parts[SMALL_PARTS:]
        if wanted > len(others):
            parts = self._gathered(PARTS, self._parts)
        elif wanted > 1:
            parts = self._gathered(wanted, others)
        elif (part := next(filter(_taken, small), None)) is not None:
            parts = [part]
        else:
            parts = self._gathered(1, self._parts)
        with _released_after(parts):
            yield

    @contextlib.contextmanager
    def whole(self) -> Iterator[None]:
        """Hold all of it: nobody else has anything on this GPU."""
        with _released_after(self._gathered(PARTS, self._parts)):
            yield

    def _gathered(self, wanted: int, parts: list[int]) -> list[int]:
        """So many of `parts`, held. Only one gathers at a time, in the order in which they came: large ones are not
        overtaken for ever, and no two of them can hold each half of what both want."""
        held: list[int] = []
        fcntl.flock(self._turnstile, fcntl.LOCK_EX)
        try:
            while True:
                for part in parts:
                    if len(held) < wanted and part not in held and _taken(part):
                        held.append(part)
                if len(held) == wanted:
                    return held
                time.sleep(_POLL_S)
        except BaseException:
            _release(held)
            raise
        finally:
            fcntl.flock(self._turnstile, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the files; what is held is released."""
        for descriptor in (self._turnstile, *self._parts):
            os.close(descriptor)


@contextlib.contextmanager
def _released_after(parts: list[int]) -> Iterator[None]:
    try:
        yield
    finally:
        _release(parts)


def _release(parts: list[int]) -> None:
    for part in parts:
        fcntl.flock(part, fcntl.LOCK_UN)


def _taken(part: int) -> bool:
    try:
        fcntl.flock(part, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
