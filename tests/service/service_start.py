"""Parts of a service for its tests: real ones, with workers that do what a candidate's text says."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import httpx2
from verdicts import verdict_on

from dice.kernels.api import Pool
from dice.kernels.pool.pool import WorkerPlan
from dice.kernels.records.job import Job
from dice.kernels.records.verdict import Verdict
from dice.service.app import make_app
from dice.service.dispatcher import Dispatcher
from dice.service.journal import job_journal
from dice.service.schema import Candidate, Submission
from dice.service.settings import ServeConfig
from dice.service.tokens import Tokens

PROBLEMS = {"square": "class Model: square", "level1/1": "class Model: square", "cube": "class Model: cube"}


def candidate(code: str, problem: str = "square", **more) -> Candidate:
    return Candidate(problem_id=problem, code=code, **more)


def submission(*codes: str, priority: int = 0) -> Submission:
    return Submission(candidates=[candidate(code) for code in codes], priority=priority)


def run(test: Callable[[], Awaitable[None]]) -> None:
    """The asynchronous body of a test."""

    async def whole() -> None:
        await test()

    asyncio.run(whole())


class Ordered:
    """Does what the candidate's text says, and writes down in `folder` that it was asked."""

    def __init__(self, folder: str):
        self.folder = Path(folder)

    def handle(self, job: Job):
        order = (job.code or "").strip()
        name = re.sub(r"\W", "-", order)
        tried = len(list(self.folder.glob(f"{name}.*")))
        (self.folder / f"{name}.{tried}").touch()
        if order == "die once" and tried == 0:
            os._exit(9)
        if order.startswith("host_error") and (order != "host_error once" or tried == 0):
            return [verdict_on(job, "host_error", message="the card fell off the bus")]
        message = "\ud800" if order == "odd" else ""
        return [verdict_on(job, "wrong_value" if order == "wrong" else "correct", message=message)]

    def close(self):
        pass


def host_error(job: Job, message: str) -> list[Verdict]:
    return [verdict_on(job, "host_error", message=message)]


@contextlib.contextmanager
def scripted_pool(folder, *_) -> Iterator[Pool]:
    """In the place of `open_pool`: a real pool with two workers of this module."""
    with Pool([WorkerPlan("execute", 2, functools.partial(Ordered, str(folder)))], host_error, {"missing": []}) as pool:
        yield pool


@contextlib.asynccontextmanager
async def service(folder: Path, monkeypatch=None, **settings) -> AsyncIterator[Dispatcher]:
    """A dispatcher on `folder`. With `monkeypatch` its pool runs; without, jobs wait for ever."""
    config = ServeConfig(state=str(folder / "state"), backend="cpu", **settings)
    with job_journal(config.state, "identity", config.keep_verdicts) as journal:
        dispatcher = Dispatcher(config, journal, PROBLEMS, lambda: None)
        if monkeypatch is not None:
            monkeypatch.setattr("dice.service.dispatcher.open_pool", functools.partial(scripted_pool, folder))
            dispatcher.start()
        try:
            yield dispatcher
        finally:
            if monkeypatch is not None:
                await dispatcher.stop()


def http(dispatcher: Dispatcher, tokens: str = "", **headers: str) -> httpx2.AsyncClient:
    """A client of the dispatcher's routes, in this process."""
    return httpx2.AsyncClient(transport=transport(dispatcher, tokens), base_url="http://service", headers=headers)


def transport(dispatcher: Dispatcher, tokens: str = "") -> httpx2.ASGITransport:
    """HTTP without a network."""
    return httpx2.ASGITransport(app=make_app(dispatcher, Tokens(tokens), lambda app: contextlib.nullcontext()))


async def ended(dispatcher: Dispatcher, ids) -> dict[str, list[Verdict] | None]:
    """Wait for all of these jobs; their verdicts."""
    found = {}
    while left := set(ids) - set(found):
        found |= {view.id: view.verdicts for view in (await dispatcher.wait(list(left), 60)).jobs}
    return found


@contextlib.contextmanager
def server(*options: str, env: dict[str, str] | None = None) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`dice serve` in a process of its own, on a free port; (process, URL) once it listens."""
    command = [sys.executable, "-m", "dice.cli", "serve", "--port", "0", "--backend", "cpu", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **(env or {})})
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        found = re.search(r"http://[^\s:]+:\d+", line)
        assert found, f"{line}{process.stdout.read()}"
        yield process, found.group()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
