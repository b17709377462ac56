"""Clients of a service: `AsyncClient`, and `Client`, which is the same for code without an event loop.

    with Client("http://verifier:8642") as client:
        verdicts = client.verify(Candidate(problem_id="level1/1_Square", text=answer))
        for number, verdicts in client.verify_all(candidates): ...

A candidate is submitted again whenever an answer is lost: the service joins what is the same. So a client outlives a
service that is killed and started anew. The token comes from `DICE_SERVICE_TOKEN` unless it is given.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import os
import queue
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any, Self, TypeVar

import httpx2
from anyio.from_thread import start_blocking_portal
from pydantic import BaseModel, ValidationError

from dice.errors import DiceError, HarnessError
from dice.jsonl import to_line
from dice.kernels.api import Verdict
from dice.service.schema import Candidate, Info, JobView, JobViews, Submission, Wait

VARIABLE = "DICE_SERVICE_TOKEN"
WAIT_S = 2.0
"""Seconds that one request waits for verdicts; a job that was submitted meanwhile is asked about in the next."""
MOST_WATCHED = 1000
"""Jobs that one request asks about."""
CONNECTIONS = 16
"""Most submissions at a time."""

Reply = TypeVar("Reply", bound=BaseModel)


class AsyncClient:
    """One service, from one event loop. Use as an asynchronous context manager."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        priority: int = 0,
        retries: int = 1,
        patience_s: float = 600.0,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        """`retries`: times that a candidate is submitted again after a host error. `patience_s`: seconds for which the
        service may not answer at all, so that it can be started again. `transport`: for tests."""
        token = os.environ.get(VARIABLE) if token is None else token
        self.url, self._priority, self._retries, self._patience_s = url, priority, retries, patience_s
        self._http = httpx2.AsyncClient(
            base_url=url,
            headers={"Authorization": f"Bearer {token}"} if token else {},
            timeout=httpx2.Timeout(30.0, read=WAIT_S + 60.0),
            transport=transport,
        )
        self._slots = asyncio.Semaphore(CONNECTIONS)
        self._watched: dict[str, list[asyncio.Future[JobView | None]]] = {}
        self._watcher: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._watcher is not None:
            self._watcher.cancel()
            await asyncio.wait([self._watcher])
        await self._http.aclose()

    async def info(self) -> Info:
        """How the service judges."""
        return await self._ask(Info, "GET", "/v1/info")

    async def submit(self, candidates: Iterable[Candidate]) -> list[JobView]:
        """Submit candidates in one request; one job for each, in their order."""
        body = Submission(candidates=list(candidates), priority=self._priority)
        return (await self._ask(JobViews, "POST", "/v1/jobs", body)).jobs

    async def wait(self, ids: Iterable[str], wait_s: float = 0.0) -> JobViews:
        """Those of the jobs that have ended; when none has, wait for the first."""
        return await self._ask(JobViews, "POST", "/v1/jobs/wait", Wait(ids=list(ids), wait_s=wait_s))

    async def cancel(self, id: str) -> JobView:
        """Cancel a job, unless it runs or somebody else wants it too."""
        return await self._ask(JobView, "DELETE", f"/v1/jobs/{id}")

    async def verdicts(self, candidate: Candidate) -> list[Verdict]:
        """The verdicts on one candidate, one per protocol; those of a host error when it came again and again.

        Raises DiceError for what the service does not take, and for a job that was cancelled; HarnessError when it does
        not answer.
        """
        found: list[Verdict] = []
        for _ in range(1 + self._retries):
            view: JobView | None = None
            while view is None:
                async with self._slots:
                    [view] = await self.submit([candidate])
                if view.state in ("waiting", "running"):
                    view = await self._ended(view.id)
            if view.verdicts is None:
                raise DiceError(f"{self.url}: job {view.id} of {candidate.problem_id} was cancelled.")
            found = view.verdicts
            if found[0].status != "host_error":
                break
        return [verdict.model_copy(update={"problem_id": candidate.problem_id}) for verdict in found]

    async def verify(self, candidate: Candidate) -> list[Verdict]:
        """As `verdicts`; raises HarnessError for a host error, which says nothing of the candidate."""
        found = await self.verdicts(candidate)
        if found[0].status == "host_error":
            raise HarnessError(f"{self.url}: host error on {candidate.problem_id}: {found[0].message}")
        return found

    async def verify_all(self, candidates: Iterable[Candidate]) -> AsyncIterator[tuple[int, list[Verdict]]]:
        """Yield (number of the candidate, verdicts) as they come. Host errors are among them."""

        async def one(number: int, candidate: Candidate) -> tuple[int, list[Verdict]]:
            return number, await self.verdicts(candidate)

        tasks = [asyncio.create_task(one(number, candidate)) for number, candidate in enumerate(candidates)]
        try:
            for done in asyncio.as_completed(tasks):
                yield await done
        finally:
            for task in tasks:
                task.cancel()

    # ---- waiting: one request for all jobs that are waited for ----

    async def _ended(self, id: str) -> JobView | None:
        """The job once it has ended; None when the service has forgotten it."""
        future: asyncio.Future[JobView | None] = asyncio.get_running_loop().create_future()
        self._watched.setdefault(id, []).append(future)
        if self._watcher is None or self._watcher.done():
            self._watcher = asyncio.create_task(self._watch())
        return await future

    async def _watch(self) -> None:
        try:
            while self._watched:
                found = await self.wait(list(self._watched)[:MOST_WATCHED], WAIT_S)
                ended: list[tuple[str, JobView | None]] = [(view.id, view) for view in found.jobs]
                for id, view in [*ended, *((id, None) for id in found.unknown)]:
                    for future in self._watched.pop(id, []):
                        if not future.done():
                            future.set_result(view)
                for id in [id for id, futures in self._watched.items() if all(f.done() for f in futures)]:
                    del self._watched[id]  # nobody waits any more
        except Exception as error:  # noqa: BLE001  raised where the verdicts are waited for
            for future in itertools.chain(*self._watched.values()):
                if not future.done():
                    future.set_exception(error)
            self._watched.clear()

    async def _ask(self, reply: type[Reply], method: str, path: str, body: BaseModel | None = None) -> Reply:
        """One request, repeated while the service is full, breaks off, or does not answer."""
        content = to_line(body) if body else None
        headers = {"Content-Type": "application/json"} if body else {}
        silent_since = time.monotonic()
        for attempt in itertools.count():
            pause_s = min(0.1 * 2 ** min(attempt, 7), 10.0)
            try:
                response = await self._http.request(method, path, content=content, headers=headers)
            except httpx2.TransportError as error:
                problem = f"{type(error).__name__} {error}".strip()
            else:
                if response.is_success:
                    return self._understood(reply, path, response)
                problem = _detail(response)
                if response.status_code == 429:
                    silent_since = time.monotonic()  # it answers: it has no room, for as long as that takes
                    with contextlib.suppress(ValueError):  # a proxy may give a date
                        pause_s = float(response.headers.get("retry-after", pause_s))
                elif response.status_code < 500:
                    raise DiceError(f"{self.url}{path}: {problem}")
            if time.monotonic() - silent_since > self._patience_s:
                raise HarnessError(f"{self.url}: no answer for {self._patience_s:g} s ({problem}); is the service up?")
            await asyncio.sleep(pause_s)
        raise AssertionError("unreachable")

    def _understood(self, reply: type[Reply], path: str, response: httpx2.Response) -> Reply:
        try:
            return reply.model_validate_json(response.content)
        except ValidationError as error:
            raise DiceError(
                f"{self.url}{path}: what it answers is no {reply.__name__} of this version ({error.errors()[0]['msg']}); "
                "is it a verifier of the same version?"
            ) from error


def _detail(response: httpx2.Response) -> str:
    with contextlib.suppress(ValueError, TypeError, KeyError):
        return f"{response.status_code}: {response.json()['detail']}"
    return str(response.status_code)


_SHARED: dict[tuple[asyncio.AbstractEventLoop, str], AsyncClient] = {}


def shared_client(url: str) -> AsyncClient:
    """This event loop's client of `url`, which lives as long as the loop: for functions that a trainer calls by name."""
    key = asyncio.get_running_loop(), url
    if key not in _SHARED:
        for old in [old for old in _SHARED if old[0].is_closed()]:  # a trainer may run a loop for each batch
            _SHARED.pop(old, None)
        _SHARED[key] = AsyncClient(url)
    return _SHARED[key]


class Client:
    """`AsyncClient` for code without an event loop; any thread may use it. Use as a context manager."""

    def __init__(self, url: str, token: str | None = None, **settings: Any) -> None:
        """As `AsyncClient`."""
        self._make = functools.partial(AsyncClient, url, token, **settings)

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            self.portal = stack.enter_context(start_blocking_portal())
            self.asynchronous = stack.enter_context(self.portal.wrap_async_context_manager(self._make()))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def info(self) -> Info:
        """How the service judges."""
        return self.portal.call(self.asynchronous.info)

    def submit(self, candidates: Iterable[Candidate]) -> list[JobView]:
        """Submit candidates in one request; one job for each, in their order."""
        return self.portal.call(self.asynchronous.submit, candidates)

    def wait(self, ids: Iterable[str], wait_s: float = 0.0) -> JobViews:
        """Those of the jobs that have ended; when none has, wait for the first."""
        return self.portal.call(self.asynchronous.wait, ids, wait_s)

    def cancel(self, id: str) -> JobView:
        """Cancel a job, unless it runs or somebody else wants it too."""
        return self.portal.call(self.asynchronous.cancel, id)

    def verdicts(self, candidate: Candidate) -> list[Verdict]:
        """The verdicts on one candidate; see `AsyncClient.verdicts`."""
        return self.portal.call(self.asynchronous.verdicts, candidate)

    def verify(self, candidate: Candidate) -> list[Verdict]:
        """The verdicts on one candidate; raises HarnessError for a host error."""
        return self.portal.call(self.asynchronous.verify, candidate)

    def verify_all(self, candidates: Iterable[Candidate]) -> Iterator[tuple[int, list[Verdict]]]:
        """Yield (number of the candidate, verdicts) as they come. Host errors are among them."""
        found: queue.SimpleQueue[tuple[int, list[Verdict]] | None] = queue.SimpleQueue()

        async def collect() -> None:
            try:
                async for one in self.asynchronous.verify_all(candidates):
                    found.put(one)
            finally:
                found.put(None)

        future = self.portal.start_task_soon(collect)
        try:
            while (one := found.get()) is not None:
                yield one
            future.result()
        finally:
            future.cancel()
