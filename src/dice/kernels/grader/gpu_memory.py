"""Shares of a GPU's memory: a candidate with large inputs waits until enough of the card is free.

The card is divided into equal parts; each part is a lock file with at most one holder. Some parts are only for small
problems, which then need not wait behind large ones. Real bytes are not counted: a candidate that needs more than
estimated finds the card full and runs again with the whole card (`dice.kernels.grader.executor`). The operating system
releases the locks of a dead process. They are flock itself, whose waiters are served in the order of arrival; the filelock
package polls, so that a large problem could wait for ever.
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
"""Parts of a card, and so the most executors on it. One part of an H200 is 4 GiB: two contexts and a small problem."""
SMALL_PARTS = 8
"""Parts that are kept for problems that need only one."""
BYTES_PER_INPUT_BYTE = 12
"""Estimated bytes on the card per byte of input, outputs taken as large as inputs. Candidate, 7: new inputs, old inputs, old
outputs, and twice poisoned memory of twice the inputs' size, from which outputs are allocated. Grader, 5: two sets of
inputs, two expected outputs, the candidate's output."""
_POLL_S = 0.02


class GpuMemory:
    """The memory of one GPU; one holder per instance. `key` names the GPU, the same in all processes."""

    def __init__(self, key: str, total_bytes: int, folder: Path | None = None) -> None:
        self._total_bytes = total_bytes
        self._turnstile, *self._parts = open_locks(
            folder, [f"{key}.memory-turnstile", *(f"{key}.memory-{index}" for index in range(PARTS))]
        )

    @contextlib.contextmanager
    def room_for(self, input_bytes: int) -> Iterator[None]:
        """Hold the parts that a problem with inputs of that size needs."""
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
        """Hold all parts, so that no other candidate is on this GPU."""
        with _released_after(self._gathered(PARTS, self._parts)):
            yield

    def _gathered(self, wanted: int, parts: list[int]) -> list[int]:
        """Take `wanted` of `parts`. One process gathers at a time, in the order of arrival: so a large problem is not
        overtaken for ever, and two large problems cannot each hold half of what they need."""
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
        """Close the files, which releases the locks."""
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
