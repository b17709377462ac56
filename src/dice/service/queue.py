"""The order in which waiting jobs run: higher priority first, then the order in which they came."""

from __future__ import annotations

import heapq
import itertools


class JobQueue:
    """Ids of waiting jobs."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, str]] = []
        self._places: dict[str, tuple[int, int, str]] = {}
        self._numbers = itertools.count()

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, id: str) -> bool:
        return id in self._places

    def put(self, id: str, priority: int) -> None:
        """Add a job, or raise the priority of one that waits: it keeps its turn among equals. No priority is lowered."""
        old = self._places.get(id)
        number = next(self._numbers) if old is None else old[1]
        place = (-priority, number, id)
        if old is None or place < old:
            self._places[id] = place
            heapq.heappush(self._heap, place)

    def take(self) -> str | None:
        """Remove the first job and return it; None: there is none."""
        while self._heap:
            place = heapq.heappop(self._heap)
            if self._places.get(place[2]) == place:  # else it was removed, or has another place
                self.remove(place[2])
                return place[2]
        return None

    def remove(self, id: str) -> None:
        """Remove a job that waits."""
        del self._places[id]
