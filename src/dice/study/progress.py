"""How far a run of the workflow is, and about how long it still takes."""

from __future__ import annotations

import math
from collections.abc import Mapping

OTHER_S = 5.0
"""Expected seconds of a job whose cost is not known: about what starting Python takes."""
_TRUST_S = 30.0
"""Seconds of running as fast as expected that are added to what was seen, so that the first jobs do not decide alone."""


class Progress:
    """The jobs of one run. Times are seconds on any clock that only goes forward."""

    def __init__(self, jobs: Mapping[str, int], job_seconds: Mapping[str, float], now_s: float) -> None:
        """`jobs`: rule -> how many of its jobs are to run; `job_seconds`: rule -> what one is expected to take."""
        self.total = sum(jobs.values())
        self._seconds = job_seconds
        self._work_s = sum(n * self._expected(rule) for rule, n in jobs.items())
        self._began_s = now_s
        self._running: dict[int, tuple[str, float]] = {}
        self._seen: set[int] = set()
        self._done_s = 0.0

    def _expected(self, rule: str) -> float:
        return self._seconds.get(rule) or OTHER_S

    @property
    def begun(self) -> int:
        """Jobs that have begun; one that is tried again counts once."""
        return len(self._seen)

    def begin(self, job: int, rule: str, now_s: float) -> None:
        """A job begins, for the first time or again."""
        self._seen.add(job)
        self._running[job] = (rule, now_s)

    def finish(self, job: int) -> None:
        """A job has succeeded."""
        if job in self._running:
            self._done_s += self._expected(self._running.pop(job)[0])

    def left_s(self, now_s: float) -> float:
        """Seconds until the last job ends, if the rest is as fast, compared with what was expected, as the run so far."""
        running = sum(min(self._expected(rule), now_s - began) for rule, began in self._running.values())
        done = min(self._work_s, self._done_s + running)
        speed = (done + _TRUST_S) / (now_s - self._began_s + _TRUST_S)
        return (self._work_s - done) / speed


def in_words(seconds: float) -> str:
    """`40 s`, `7 min`, `2 h 10 min`: as exact as an estimate deserves."""
    if seconds < 90:
        return f"{max(1, math.ceil(seconds / 10)) * 10} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60 // 10 * 10} min"
