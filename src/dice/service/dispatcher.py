"""Jobs between clients and the pool: accepts them, runs them in order, and tells what came of them.

All state lives in the thread of the event loop. One more thread owns the pool; the two talk by a `Feed` and by
`call_soon_threadsafe`. What a client is told is on disk first.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dice.errors import DiceError, HarnessError
from dice.jsonl import valid_text
from dice.kernels.api import Feed, Job, Pool, Verdict, extract_code, failed_verdicts, open_pool
from dice.service.journal import Accepted, Event, Finished, JobJournal, Joined, Left
from dice.service.metrics import Metrics
from dice.service.queue import JobQueue
from dice.service.schema import Candidate, JobView, JobViews, Submission, job_id
from dice.service.settings import ServeConfig

AHEAD = 2
"""Jobs in the pool per worker: what runs, and what follows at once."""
MOST_FAILURES = 3
"""Pools that break without a verdict, one after the other, before the service gives up."""
STOP_TIMEOUT_S = 20.0
"""Seconds that a stopping service waits for its pool."""


class Refused(Exception):
    """A request that is refused, with HTTP status `code` and one sentence. 429: the client should try again later."""

    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


class Dispatcher:
    """The jobs of one service. Made and used in the event loop's thread, between `start` and `stop`."""

    def __init__(
        self, config: ServeConfig, journal: JobJournal, problems: Mapping[str, str], give_up: Callable[[], None]
    ) -> None:
        """`problems`: code by name. `give_up` is called when the service cannot go on; `failure` says why."""
        self.config, self.journal, self.metrics = config, journal, Metrics()
        self.isolation: dict[str, list[str]] = {}
        self.ready = False
        self.failure: DiceError | None = None
        self._problems, self._give_up = problems, give_up
        self._own_code = frozenset(problems.values())
        self._queue = JobQueue()
        self._running: dict[int, str] = {}
        """Number of a job in the pool (its `sample` there) -> id."""
        self._tries: Counter[str] = Counter()
        self._cancelled: dict[str, None] = {}
        self._watched: dict[str, set[asyncio.Event]] = {}
        self._numbers = itertools.count()
        self._feed: Feed | None = None
        self._room = 0
        self._current, self._stopping = Feed(), threading.Event()
        for accepted in journal.open.values():
            self._queue.put(accepted.id, accepted.priority)

    # ---- what clients ask ----

    def submit(self, client: str, submission: Submission) -> list[JobView]:
        """Accept candidates; what is known or under way is joined. Raises Refused: then none of them is accepted."""
        jobs = [self._job(candidate) for candidate in submission.candidates]
        ids = [job_id(self.journal.identity, job) for job in jobs]
        answers = {id: self._answer(client, id, job, submission.priority) for id, job in zip(ids, jobs, strict=True)}
        events = [event for _, event in answers.values() if event is not None]
        self._check_room(client, events)
        self._record(*events)
        for event in events:
            self._cancelled.pop(event.id, None)
            if event.id in self.journal.open and event.id not in self._running.values():
                self._queue.put(event.id, self.journal.open[event.id].priority)
        for how, _ in answers.values():
            self.metrics.submitted.labels(how).inc()
        self._fill()
        return [self.view(id) for id in ids]

    def view(self, id: str) -> JobView:
        """The job as it is now. Raises Refused (404) for one that is not known."""
        if id in self.journal.open:
            return JobView(id=id, state="waiting" if id in self._queue else "running")
        if id in self._cancelled:
            return JobView(id=id, state="cancelled")
        verdicts = self.journal.verdicts(id)
        if verdicts is None:
            raise Refused(404, f"job {id} is not known here (any more); submit the candidate again.")
        return JobView(id=id, state="done", verdicts=verdicts)

    async def wait(self, ids: Sequence[str], wait_s: float) -> JobViews:
        """Those of the jobs that have ended; when none has, wait for the first."""
        ended = asyncio.Event()
        for id in ids:
            self._watched.setdefault(id, set()).add(ended)
        try:
            found = self._ended(ids)
            if not found.jobs and not found.unknown:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(ended.wait(), wait_s)
                found = self._ended(ids)
            return found
        finally:
            for id in set(ids):
                self._watched[id].discard(ended)
                if not self._watched[id]:
                    del self._watched[id]

    async def judged(self, client: str, candidate: Candidate, wait_s: float) -> list[Verdict]:
        """Submit one candidate and wait for its verdicts.

        Raises Refused (503) where there are none after `wait_s`, or the machine failed: the caller should ask again.
        """
        [view] = self.submit(client, Submission(candidates=[candidate]))
        if view.state != "done":
            await self.wait([view.id], wait_s)
            view = self.view(view.id)
        if view.verdicts is None:
            raise Refused(503, f"job {view.id} has no verdict yet; ask again.")
        if is_host_error(view.verdicts):
            raise Refused(503, f"host error: {view.verdicts[0].message}; ask again.")
        return view.verdicts

    def cancel(self, client: str, id: str) -> JobView:
        """Say that `client` wants the job no more. It ends when nobody wants it and it has not begun."""
        accepted = self.journal.open.get(id)
        if accepted and client in accepted.clients and (len(accepted.clients) > 1 or id in self._queue):
            self._record(Left(id=id, client=client))
            if id not in self.journal.open:
                self._queue.remove(id)
                self._cancelled[id] = None
                while len(self._cancelled) > self.config.keep_verdicts:
                    del self._cancelled[next(iter(self._cancelled))]
                self._wake(id)
        return self.view(id)

    @property
    def n_problems(self) -> int:
        """Problems that can be named."""
        return len(self._own_code)

    def counts(self) -> tuple[int, int]:
        """Jobs that wait, and jobs in the pool."""
        return len(self._queue), len(self._running)

    # ---- acceptance ----

    def _job(self, candidate: Candidate) -> Job:
        problem = candidate.problem_code
        if problem is None:
            problem = self._problems.get(candidate.problem_id)
            if problem is None:
                raise Refused(422, f"problem {candidate.problem_id!r} is not one of this service, and brings no code.")
        elif not self.config.client_problems and problem not in self._own_code:
            raise Refused(403, f"problem {candidate.problem_id!r}: this service takes no problems from its clients.")
        if problem != valid_text(problem):
            raise Refused(422, f"problem {candidate.problem_id!r}: its code holds a lone surrogate.")
        code, reason = candidate.code, "" if candidate.code and candidate.code.strip() else "the code is empty"
        if candidate.text is not None:
            found = extract_code(candidate.text)
            code, reason = found.code, found.reason
        if code is not None and code != valid_text(code):
            reason = "the code is not Unicode text: it holds a lone surrogate"
        return Job(
            problem_id=valid_text(candidate.problem_id),
            problem_code=problem,
            sample=0,
            code=None if reason else code,
            no_code_reason=reason,
        )

    def _answer(self, client: str, id: str, job: Job, priority: int) -> tuple[str, Event | None]:
        """How a candidate is answered (`Metrics.submitted`), and what is to be recorded for it."""
        accepted = self.journal.open.get(id)
        if accepted is not None:
            news = client not in accepted.clients or priority > accepted.priority
            return "joined", Joined(id=id, client=client, priority=priority) if news else None
        verdicts = self.journal.verdicts(id)
        if verdicts and not is_host_error(verdicts):
            return "known", None
        if job.code is None:
            config = self.config
            reason = failed_verdicts(job, "no_code", "extract", job.no_code_reason, config.judging, config.backend)
            return "new", Finished(id=id, verdicts=reason)
        return "new", Accepted(id=id, clients=[client], priority=priority, job=job)

    def _check_room(self, client: str, events: Sequence[Event]) -> None:
        """Raise Refused where the queue, or the client's part of it, has no room for `events`."""
        open_jobs = self.journal.open
        new = sum(isinstance(event, Accepted) for event in events)
        mine = sum(event.id not in open_jobs or client not in open_jobs[event.id].clients
                   for event in events if not isinstance(event, Finished))  # fmt: skip
        held = sum(client in accepted.clients for accepted in open_jobs.values())
        rooms = (
            (new, len(open_jobs), self.config.most_jobs, "this service"),
            (mine, held, self.config.client_jobs, "one client"),
        )
        for more, _, most, whose in rooms:
            if more > most:
                raise Refused(413, f"{more} jobs at once, where {whose} may have {most}; send fewer.")
        for more, there, most, whose in rooms:
            if more and there + more > most:
                raise Refused(429, f"{there} unfinished jobs, of {most} that {whose} may have; try again later.")

    def _record(self, *events: Event) -> None:
        """Put events on disk. A disk that fails ends the service: nothing more could be promised."""
        try:
            if events:
                self.journal.add(*events)
        except HarnessError as error:
            self._fail(error)
            raise

    # ---- between clients and pool ----

    def _ended(self, ids: Sequence[str]) -> JobViews:
        jobs: list[JobView] = []
        unknown: list[str] = []
        for id in dict.fromkeys(ids):
            if id not in self.journal.open:
                try:
                    jobs.append(self.view(id))
                except Refused:
                    unknown.append(id)
        return JobViews(jobs=jobs, unknown=unknown)

    def _wake(self, id: str) -> None:
        for event in self._watched.get(id, ()):
            event.set()

    def _fill(self) -> None:
        """Give the pool jobs while it has room."""
        while self._feed is not None and len(self._running) < self._room and (id := self._queue.take()):
            number = next(self._numbers)
            self._running[number] = id
            self._feed.put(self.journal.open[id].job.model_copy(update={"sample": number}))

    def _opened(self, feed: Feed, pool: Pool) -> None:
        self._feed, self._room = feed, AHEAD * sum(plan.count for plan in pool.plans)
        self.isolation, self.ready = pool.isolation, True
        self.metrics.pools.inc()
        self._fill()

    def _closed(self) -> None:
        """The pool is gone: what was in it waits again."""
        self._feed, self.ready = None, False
        for id in self._running.values():
            self._queue.put(id, self.journal.open[id].priority)
        self._running.clear()

    def _took(self, verdicts: list[Verdict]) -> None:
        id = self._running.pop(verdicts[0].sample)
        self._tries[id] += 1
        if is_host_error(verdicts) and self._tries[id] <= self.config.retries:
            self._queue.put(id, self.journal.open[id].priority)
        else:
            del self._tries[id]
            self._record(Finished(id=id, verdicts=[plain(verdict) for verdict in verdicts]))
            self.metrics.verdicts.labels(verdicts[0].status).inc()
            self.metrics.verify_s.observe(verdicts[0].seconds)
            self._wake(id)
        self._fill()

    def _fail(self, error: DiceError) -> None:
        self.failure = self.failure or error
        self._give_up()

    # ---- the thread that owns the pool ----

    def start(self) -> None:
        """Open the pool, in a thread of its own; jobs are accepted meanwhile."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._work, name="pool", daemon=True)
        self._thread.start()

    async def stop(self) -> None:
        """Close the pool. What has no verdict stays open in the journal."""
        self._stopping.set()
        self._current.stop()
        await asyncio.to_thread(self._thread.join, STOP_TIMEOUT_S)

    def _tell(self, method: Callable[..., None], *values: Any) -> None:
        self._loop.call_soon_threadsafe(method, *values)

    def _work(self) -> None:
        config, failures = self.config, 0
        while True:
            feed = self._current = Feed()
            if self._stopping.is_set():
                return
            try:
                with open_pool(config.backend, config.judging, config.limits, config.machine, config.most_jobs) as pool:
                    self._tell(self._opened, feed, pool)
                    for verdicts in pool.stream(feed):
                        failures = 0
                        self._tell(self._took, verdicts)
            except Exception as error:  # noqa: BLE001  whatever breaks the pool: it is opened anew, or the service ends
                failures += 1
                is_usage = isinstance(error, DiceError) and not isinstance(error, HarnessError)
                if is_usage or failures == MOST_FAILURES:
                    failure = error if isinstance(error, DiceError) else HarnessError(f"the pool broke: {error!r}.")
                    self._tell(self._fail, failure)
                    return
            self._tell(self._closed)


def is_host_error(verdicts: Sequence[Verdict]) -> bool:
    """Whether the machine failed, so that nothing is known of the candidate."""
    return any(verdict.status == "host_error" for verdict in verdicts)


def plain(verdict: Verdict) -> Verdict:
    """The verdict as JSON can hold it: without lone surrogates, without the pool's own number."""
    text = json.dumps(verdict.model_dump(mode="json") | {"sample": 0}, ensure_ascii=False)
    return Verdict.model_validate_json(text.encode("utf-8", "replace"))
