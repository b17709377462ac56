"""A verifier that knows the answers of rl_start, at the speed that a test gives it."""

from __future__ import annotations

import contextlib
import multiprocessing
from collections.abc import Iterator
from multiprocessing.connection import wait

from rl_handlers import verdict
from rl_start import PROGRAMS

from dice.kernels.api import Feed, Verdict
from dice.training import rollout

BODIES = {f"return {expression}\n": f"= {body};" for expression, body in PROGRAMS.values()}


class Judge:
    """`late`: no verdict comes before a step waits for some, and then the last comes first. Else each comes at once."""

    def __init__(self, *, late: bool = False) -> None:
        self.late = late
        self._waits, self._wake = multiprocessing.Pipe(duplex=False)

    def release(self) -> None:
        """A step waits."""
        self._wake.send_bytes(b"x")

    def stream(self, feed: Feed) -> Iterator[list[Verdict]]:
        """See dice.kernels.pool.pool.Pool.stream."""
        held, fed, released = [], True, not self.late
        while held or fed:
            ready = wait([feed.signal, self._waits])
            if self._waits in ready:
                self._waits.recv_bytes()
                released = True
            jobs, fed = feed.take()
            if feed.stopped:
                return
            held += jobs
            while released and held:
                job = held.pop()
                right = any(text in job.problem_code and body in (job.code or "") for text, body in BODIES.items())
                yield [verdict(job, "correct" if right else "wrong_value")]
            released = not self.late

    def install(self, monkeypatch) -> Judge:
        """Take the place of the pool that a run opens."""

        def finish(pending: rollout.PendingVerdicts, own=rollout.PendingVerdicts.finish) -> None:
            self.release()
            own(pending)

        monkeypatch.setattr(rollout, "open_pool", lambda *settings: contextlib.nullcontext(self))
        monkeypatch.setattr(rollout.PendingVerdicts, "finish", finish)
        return self
