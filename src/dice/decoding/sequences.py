"""The sequences in flight, as arrays over cache slots: a step updates all of them without a loop in Python."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class Sequences:
    """State of every slot; rows of empty slots have no meaning."""

    def __init__(self, slots: int, max_length: int, stop_ids: tuple[int, ...]) -> None:
        self.stop_ids = np.array(sorted(stop_ids), np.int64)
        self.tokens = np.zeros((slots, max_length), np.int64)
        self.step_map = np.zeros((slots, max_length), np.int64)
        """Forward (from 1, prefill not counted) in which a token was fixed; 0 for the prompt."""
        self.log_confidence = np.zeros((slots, max_length), np.float32)
        self.seed = np.zeros(slots, np.uint64)
        self.prompt_length = np.zeros(slots, np.int64)
        self.length = np.zeros(slots, np.int64)
        """Positions that may be filled."""
        self.start = np.zeros(slots, np.int64)
        """First position of the open row."""
        self.step = np.zeros(slots, np.int64)
        self.step_of_block = np.zeros(slots, np.int64)
        self.unwritten = np.zeros(slots, np.bool_)
        """Whether the block before the open one is finished and not in the cache yet."""
        self.active = np.zeros(slots, np.bool_)
        self._finished: list[int] = []

    def enter(self, slot: int, prompt: NDArray[np.int64], length: int, seed: int) -> None:
        """Start a sequence in a free slot."""
        self.tokens[slot, : len(prompt)] = prompt
        self.step_map[slot] = 0
        self.log_confidence[slot] = 0
        self.seed[slot] = np.uint64(seed % 2**64)
        self.prompt_length[slot] = len(prompt)
        self.length[slot] = length
        self.step[slot] = 0
        self.step_of_block[slot] = 0
        self.unwritten[slot] = False
        self.active[slot] = True

    def active_slots(self) -> NDArray[np.int64]:
        """Slots that take part in the next step."""
        return np.flatnonzero(self.active)

    def finish(self, slots: NDArray[np.int64]) -> None:
        """Mark these sequences as complete."""
        self.active[slots] = False
        self._finished += slots.tolist()

    def take_finished(self) -> list[int]:
        """Slots that finished since the last call."""
        finished, self._finished = self._finished, []
        return finished
