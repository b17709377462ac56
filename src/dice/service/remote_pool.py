"""A service in the place of a pool of one's own: `dice rl` gives it the jobs that it would give to `Pool.stream`."""

from __future__ import annotations

import contextlib
import queue
from collections.abc import Callable, Iterator
from typing import Self

import anyio

from dice.errors import DiceError
from dice.kernels.api import Backend, Feed, Job, Judging, Limits, Verdict
from dice.service.client import Client
from dice.service.schema import Candidate


class RemotePool:
    """The pool of a service. Use as a context manager.

    Raises DiceError where the service judges otherwise than `backend`, `judging` and `limits` say, HarnessError where it
    does not answer.
    """

    def __init__(self, url: str, backend: Backend, judging: Judging, limits: Limits) -> None:
        self._client = Client(url, retries=0)
        self._url, self._wanted = url, {"backend": backend, "judging": judging, "limits": limits}

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._client)
            info = self._client.info()
            for name, wanted in self._wanted.items():
                if getattr(info, name) != wanted:
                    raise DiceError(
                        f"{self._url}: its '{name}' is {getattr(info, name)}, and here it is {wanted}; make them equal."
                    )
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def stream(self, feed: Feed) -> Iterator[list[Verdict]]:
        """As `Pool.stream`: yields the verdicts of each job, until the feed is closed and all are done, or it is stopped."""
        found: queue.SimpleQueue[list[Verdict] | DiceError | None] = queue.SimpleQueue()
        future = self._client.portal.start_task_soon(self._run, feed, found.put)
        while (message := found.get()) is not None:
            if isinstance(message, DiceError):
                feed.stop()
                raise message
            yield message
        future.result()

    async def _run(self, feed: Feed, tell: Callable[[list[Verdict] | DiceError | None], None]) -> None:
        async def one(job: Job) -> None:
            candidate = Candidate(problem_id=job.problem_id, problem_code=job.problem_code, code=job.code)
            try:
                verdicts = await self._client.asynchronous.verdicts(candidate)
            except DiceError as error:
                tell(error)
            else:
                tell([verdict.model_copy(update={"sample": job.sample}) for verdict in verdicts])

        async def until_stopped() -> None:
            while not feed.stopped:
                await anyio.wait_readable(feed.signal)
                feed.take()
            everything.cancel_scope.cancel()

        try:
            async with anyio.create_task_group() as everything:
                async with anyio.create_task_group() as jobs:
                    fed = True
                    while fed:
                        await anyio.wait_readable(feed.signal)
                        arrived, fed = feed.take()
                        for job in arrived:
                            jobs.start_soon(one, job)
                    everything.start_soon(until_stopped)
                everything.cancel_scope.cancel()
        finally:
            tell(None)
