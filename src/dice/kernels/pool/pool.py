"""The pool of worker processes: jobs go to builders and executors, verdicts come back as they are ready.

Each worker is one process that works on one job at a time and talks over a pipe. `build` workers fill the build cache on
CPU cores and settle candidates that cannot be built. `execute` workers share a GPU (or the CPU) and settle the rest. A
worker that dies is replaced and its job is tried once more, then becomes a `host_error`: no job is lost or counted twice.

Workers are forked from multiprocessing's fork server, which has torch imported, so a start costs milliseconds. A lifeline
pipe tells them when the pool dies, even by kill -9; then they end as well.
"""

from __future__ import annotations

import contextlib
import heapq
import math
import multiprocessing
import os
import signal
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing import forkserver
from multiprocessing.connection import Connection, wait
from typing import Any, Literal, Protocol

from dice.errors import DiceError, HarnessError
from dice.kernels.records.job import Job
from dice.kernels.records.verdict import Verdict
from dice.kernels.sandbox.linux import HUGE_PAGES

Role = Literal["build", "execute"]
PRELOAD = ["dice.kernels.pool.preload"]
MAX_ATTEMPTS = 2
"""Workers that die on one job before it becomes a host error."""
MAX_STILLBORN = 3
"""Workers of one plan in a row that die before their first reply until the machine counts as unable to do the work."""


def start_importing() -> None:
    """Start multiprocessing's fork server, which imports torch in the background. Returns at once."""
    check_temporary_folder(tempfile.gettempdir())
    os.environ.setdefault(HUGE_PAGES, "1")
    multiprocessing.set_forkserver_preload(PRELOAD)
    forkserver.ensure_running()


def check_temporary_folder(folder: str) -> None:
    """Raise DiceError where Python's own fork server could not make its socket: a socket's path has at most 107 bytes."""
    most = 107 - len("/pymp-12345678/listener-12345678")
    if (size := len(os.fsencode(folder))) > most:
        raise DiceError(
            f"The folder for temporary files has a path of {size} bytes, too long for a socket in it ({folder}). Set TMPDIR "
            f"to one of at most {most} bytes."
        )


@dataclass(frozen=True)
class Onward:
    """A builder's answer: the job goes on to the execute stage. `work`: what its problem has to compute."""

    work: int = 0


class Handler(Protocol):
    """What a worker does with a job. It is made inside the worker, so it may own processes and GPU contexts."""

    def handle(self, job: Job) -> list[Verdict] | Onward:
        """Final verdicts, or (build role only) `Onward`."""
        ...

    def close(self) -> None:
        """Release everything."""
        ...


@dataclass(frozen=True)
class WorkerPlan:
    """`count` workers of one role. `make_handler` must be picklable (a module-level function or a partial of one)."""

    role: Role
    count: int
    make_handler: Callable[[], Handler]
    """Called in the worker."""
    job_timeout_s: float = math.inf
    """A worker that works on one job for longer is stuck and is replaced. The handler has its own, shorter limits."""


class Feed:
    """A queue of jobs for `Pool.stream`; any thread may put jobs into it."""

    def __init__(self) -> None:
        self.signal, self._wake = multiprocessing.Pipe(duplex=False)
        self._lock = threading.Lock()
        self._jobs: list[Job] = []
        self._open = True
        self.stopped = False

    def put(self, job: Job) -> None:
        """Add a job."""
        with self._lock:
            if not self._jobs:
                self._wake.send_bytes(b"x")
            self._jobs.append(job)

    def close(self) -> None:
        """Say that no more jobs will come."""
        with self._lock:
            self._open = False
            self._wake.send_bytes(b"x")

    def stop(self) -> None:
        """End `Pool.stream` at once; unfinished jobs are dropped."""
        self.stopped = True
        self.close()

    def take(self) -> tuple[list[Job], bool]:
        """The jobs added since the last call, and whether more may come."""
        with self._lock:
            while self.signal.poll():
                self.signal.recv_bytes()
            jobs, self._jobs = self._jobs, []
            return jobs, self._open


@dataclass
class _Worker:
    plan: WorkerPlan
    process: Any
    connection: Connection
    lifeline: Connection
    """Write end; it closes when the pool's process ends in any way."""
    job: Job | None = None
    deadline: float = math.inf
    ready: bool = False


class _Queue:
    """Jobs of one stage: those of higher rank first, else in the order of arrival."""

    def __init__(self) -> None:
        self._jobs: list[tuple[float, int, Job]] = []
        self._arrived = 0

    def put(self, job: Job, rank: float = 0) -> None:
        self._arrived += 1
        heapq.heappush(self._jobs, (-rank, self._arrived, job))

    def take(self) -> Job:
        return heapq.heappop(self._jobs)[2]

    def __len__(self) -> int:
        return len(self._jobs)


@dataclass
class Pool:
    """Runs jobs through the plans' workers. Use as a context manager; `run` may be called several times."""

    plans: Sequence[WorkerPlan]
    host_error: Callable[[Job, str], list[Verdict]]
    """Makes the verdicts of a job that ended in a host error."""
    isolation: dict[str, list[str]] = field(default_factory=dict)
    """Layers that confine candidates and compilers here, and those that are missing: for the manifest."""
    _workers: list[_Worker] = field(default_factory=list, init=False)
    _stillborn: dict[int, int] = field(default_factory=dict, init=False)

    def __enter__(self) -> Pool:
        start_importing()
        self._context = multiprocessing.get_context("forkserver")
        for plan in self.plans:
            self._workers += [self._start(plan) for _ in range(plan.count)]
        return self

    def __exit__(self, exception_type: type[BaseException] | None, *_: object) -> None:
        for worker in self._workers:
            if exception_type is not None:
                worker.process.kill()  # all of them before the first is waited for: there may be hundreds
            with contextlib.suppress(OSError):
                worker.connection.send(None)
        for worker in self._workers:
            is_idle = exception_type is None and worker.job is None
            worker.process.join(timeout=10 if is_idle else 0.1)  # a worker at work does not read its pipe
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
            worker.connection.close()
            worker.lifeline.close()
        self._workers.clear()

    def _start(self, plan: WorkerPlan) -> _Worker:
        ours, theirs = self._context.Pipe()
        lifeline_read, lifeline_write = self._context.Pipe(duplex=False)
        process = self._context.Process(target=_serve, args=(theirs, lifeline_read, plan.make_handler), name=plan.role)
        process.start()
        theirs.close()
        lifeline_read.close()
        return _Worker(plan, process, ours, lifeline_write)

    def run(self, jobs: Sequence[Job]) -> Iterator[list[Verdict]]:
        """Yield the verdicts of each job as they are ready.

        Raises DiceError or HarnessError when the workers cannot start at all (no compiler, no GPU).
        """
        feed = Feed()
        for job in jobs:
            feed.put(job)
        feed.close()
        return self.stream(feed)

    def stream(self, feed: Feed) -> Iterator[list[Verdict]]:
        """As `run`, for jobs that arrive over time. Ends when the feed is closed and all jobs are done."""
        for worker in [*self._workers]:
            if worker.job is not None:  # of a stream that was left early: nobody waits for its verdicts
                self._replace(worker)
        has_builders = any(plan.role == "build" and plan.count for plan in self.plans)
        queues: dict[Role, _Queue] = {"build": _Queue(), "execute": _Queue()}
        attempts: dict[int, int] = {}
        left, fed = 0, True
        while left or fed:
            arrived, fed = feed.take()
            if feed.stopped:
                return
            left += len(arrived)
            for job in arrived:
                queues["build" if has_builders else "execute"].put(job)
            if not left and not fed:
                return
            for worker in self._workers:
                queue = queues[worker.plan.role]
                if worker.ready and worker.job is None and queue:
                    worker.job = queue.take()
                    worker.deadline = time.monotonic() + worker.plan.job_timeout_s
                    with contextlib.suppress(OSError):  # the sentinel reports a worker that died meanwhile
                        worker.connection.send(worker.job)
            by_handle: dict[Any, _Worker] = {}
            for worker in self._workers:
                by_handle[worker.connection] = worker
                by_handle[worker.process.sentinel] = worker
            ready = wait([*by_handle, feed.signal], timeout=1.0)
            touched = {id(worker): worker for handle in ready if (worker := by_handle.get(handle))}
            for worker in self._workers:
                if worker.job is not None and time.monotonic() > worker.deadline:
                    worker.process.kill()
                    touched[id(worker)] = worker
            for worker in touched.values():
                message = self._receive(worker)
                if message is None:
                    job, kind = self._replace(worker), "died"
                    payload: Any = f"the {worker.plan.role} worker died {MAX_ATTEMPTS} times on this job"
                    if job is None:
                        continue
                else:
                    kind, payload = message
                    if kind == "ready":
                        worker.ready = True
                        # The machine can do the work. In a run of days a few workers may die early, for other reasons each.
                        self._stillborn.pop(id(worker.plan), None)
                        continue
                    job, worker.job = worker.job, None
                    if kind == "failed_to_start":
                        raise payload
                    assert job is not None
                if kind in ("died", "harness"):
                    attempts[id(job)] = attempts.get(id(job), 0) + 1
                    if attempts[id(job)] < MAX_ATTEMPTS:
                        queues[worker.plan.role].put(job, math.inf if kind == "died" else 0)
                        continue
                    payload = self.host_error(job, payload)
                elif isinstance(payload, Onward):
                    # Of a batch that is whole the longest work begins first, so that it does not end alone. In a stream it
                    # might keep short work waiting for ever.
                    queues["execute"].put(job, 0 if fed else payload.work)
                    continue
                attempts.pop(id(job), None)  # a later job may get the same id
                left -= 1
                yield payload

    def _receive(self, worker: _Worker) -> tuple[str, Any] | None:
        """The worker's message, or None when it is dead."""
        try:
            if worker.connection.poll():
                return worker.connection.recv()
        except (EOFError, OSError):
            pass
        return None

    def _replace(self, worker: _Worker) -> Job | None:
        """Start a fresh worker in place of a dead one; returns the job it held."""
        key = id(worker.plan)
        if not worker.ready:
            self._stillborn[key] = self._stillborn.get(key, 0) + 1
            if self._stillborn[key] >= MAX_STILLBORN:
                worker.process.join(timeout=5)
                code = worker.process.exitcode
                raise HarnessError(
                    f"the {worker.plan.role} workers die while starting (last exit code {code}; what they printed is above). "
                    "A script that starts them does so below `if __name__ == '__main__':`."
                )
        worker.process.kill()
        worker.process.join()
        worker.connection.close()
        worker.lifeline.close()
        self._workers[self._workers.index(worker)] = self._start(worker.plan)
        return worker.job


def _serve(connection: Connection, lifeline: Connection, make_handler: Callable[[], Handler]) -> None:
    """Main function of a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the pool handles Ctrl-C and ends workers by their pipes
    try:
        handler = make_handler()
    except DiceError as error:
        connection.send(("failed_to_start", error))
        return
    threading.Thread(target=_leave_with_pool, args=(lifeline,), daemon=True).start()
    connection.send(("ready", None))
    try:
        while (job := connection.recv()) is not None:
            try:
                message = ("done", handler.handle(job))
            except HarnessError as error:
                message = ("harness", str(error))
            except Exception as error:  # noqa: BLE001  a bug of ours on one job must not lose the others; it is reported
                trace = traceback.extract_tb(error.__traceback__)[-1]
                text = f"{type(error).__name__}: {error} ({os.path.basename(trace.filename)}:{trace.lineno})"
                message = ("harness", text)
            connection.send(message)
    except (EOFError, OSError):
        pass  # the pool is gone
    finally:
        handler.close()


def _leave_with_pool(lifeline: Connection) -> None:
    """End this worker when the pool's process has ended: then the write end of the pipe is closed."""
    with contextlib.suppress(EOFError, OSError):
        lifeline.recv()
    os._exit(1)
