"""Room in a GPU's memory: who will need much of it waits until others are done with theirs.

The card is divided into parts, each of them a lock file that one holder may have. Nobody counts real bytes: a candidate
that takes more than was thought finds the card full, and is run again with the whole card for itself
(`dice.kernels.grader`). The kernel releases a dead process's locks.
"""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
import time
from collections.abc import Iterator
from pathlib import Path

from dice.kernels.gpu_slot import open_locks

PARTS = 32
"""Of a card; as many executors at most can be on it. One is 4 GiB of an H200's 140: two contexts and small problems."""
BYTES_PER_INPUT_BYTE = 8
"""What an input's byte takes on the card: on the candidate's side the new and the old inputs and the poison, twice their
size, out of which come the outputs; on the grader's the inputs, two expected outputs and the candidate's."""
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
        share = BYTES_PER_INPUT_BYTE * input_bytes / self._total_bytes
        with self._parts_held(min(PARTS, max(1, math.ceil(PARTS * share)))):
            yield

    @contextlib.contextmanager
    def whole(self) -> Iterator[None]:
        """Hold all of it: nobody else has anything on this GPU."""
        with self._parts_held(PARTS):
            yield

    @contextlib.contextmanager
    def _parts_held(self, wanted: int) -> Iterator[None]:
        held: list[int] = []
        try:
            # Only one gathers at a time, in the order in which they came: large ones are not overtaken for ever, and no
            # two of them can hold each half of what both want.
            fcntl.flock(self._turnstile, fcntl.LOCK_EX)
            try:
                while True:
                    for part in self._parts:
                        if len(held) < wanted and part not in held and _taken(part):
                            held.append(part)
                    if len(held) == wanted:
                        break
                    time.sleep(_POLL_S)
            finally:
                fcntl.flock(self._turnstile, fcntl.LOCK_UN)
            yield
        finally:
            for part in held:
                fcntl.flock(part, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the files; what is held is released."""
        for descriptor in (self._turnstile, *self._parts):
            os.close(descriptor)


def _taken(part: int) -> bool:
    try:
        fcntl.flock(part, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
