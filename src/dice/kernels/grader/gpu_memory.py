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
from dataclasses import dataclass
from pathlib import Path

from dice.kernels.grader.gpu_slot import open_locks

PARTS = 64
"""Parts of a card, and so the most executors on it. One part of an H200 is 2.2 GiB: two contexts and a small problem."""
SMALL_PARTS = 4
"""Parts that are kept for problems that need only one."""
_CONTEXTS_BYTES = 1 << 30
"""Two contexts with the code that is loaded into them: the grader's and the candidate's."""
_POLL_S = 0.02


@dataclass(frozen=True)
class Sizes:
    """Bytes of a problem's tensors on one side."""

    inputs: int
    weights: int = 0
    outputs: int = 0

    def on_card(self, *, longer: bool) -> int:
        """Bytes that both sides need together, estimated.

        Candidate: weights, inputs, and poisoned memory of twice the inputs' size, from which outputs are allocated. Grader:
        weights, inputs, the right outputs, the buffer in which the candidate's cross, and memory that the reference's own
        inputs have first (it may change them) and the candidate's outputs later. `longer`: timed calls or the experiments
        of `strict` follow, with another set of inputs, another output and another block of poisoned memory.
        """
        needed = (
            _CONTEXTS_BYTES + 2 * self.weights + 4 * self.inputs + max(self.inputs, self.outputs) + 2 * self.outputs
        )
        return needed + (4 * self.inputs + self.outputs if longer else 0)


class GpuMemory:
    """The memory of one GPU; one holder per instance. `key` names the GPU, the same in all processes."""

    def __init__(self, key: str, total_bytes: int, folder: Path | None = None) -> None:
        self._total_bytes = total_bytes
        self._turnstile, *self._parts = open_locks(
            folder, [f"{key}.memory-turnstile", *(f"{key}.memory-{index}" for index in range(PARTS))]
        )

    @contextlib.contextmanager
    def room_for(self, needed_bytes: int) -> Iterator[None]:
        """Hold the parts that make so many bytes."""
        wanted = max(1, math.ceil(PARTS * needed_bytes / self._total_bytes))
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
