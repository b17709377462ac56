"""Rollouts: answers of the live policy, each submitted to the verifier as soon as it is finished.

The policy's own weights decode; token ids, step maps and log-probabilities are kept as they were drawn. One pool of the
verifier stays open for the whole run. Equal candidates of one problem are verified once.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import itertools
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from dice.decoding.decoder import Decoder
from dice.decoding.requests import Completion, Request
from dice.kernels.api import Feed, Job, Verdict, cores, open_pool
from dice.training.rl_config import RewardConfig
from dice.training.rl_data import Candidate, RlProblem


@dataclass(frozen=True)
class Asked:
    """One answer to draw."""

    problem: RlProblem
    group: int
    """Place of the problem in the step."""
    sample: int
    """Place of the answer in the group."""


@dataclass
class Answer:
    """One answer with its candidate, verdict and reward."""

    asked: Asked
    completion: Completion
    text: str
    candidate: Candidate
    verdict: Verdict | None = None
    """None: there was nothing to verify, or no verdict came."""
    reward: float | None = None
    """None: the answer earned neither 0 nor 1 and is left out of its group."""

    @property
    def status(self) -> str:
        """Status of the verdict, or why there is none."""
        if self.verdict is not None:
            return self.verdict.status
        return "no_code" if self.candidate.code is None else "no_verdict"

    @property
    def deceptive(self) -> bool:
        """Whether a finding is fatal under the verdict's protocol."""
        return self.verdict is not None and any(f.fatal.get(self.verdict.protocol) for f in self.verdict.deception)


def answer_seed(seed: int, purpose: int | str, problem_id: str, group: int, sample: int) -> int:
    """A seed in [0, 2**48), another one for each answer of a run. `purpose`: the step, or the pool that it is drawn for."""
    text = f"{seed}/{purpose}/{problem_id}/{group}/{sample}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big")


def reward_of(verdict: Verdict | None, config: RewardConfig, *, host_error_earns_zero: bool = False) -> float | None:
    """1 for a correct kernel, 0 for a wrong one, None where the verifier could not decide."""
    if verdict is None or verdict.status == "host_error":
        return 0.0 if host_error_earns_zero else None
    if verdict.status == "unsupported_on_cpu" and not config.unsupported_earns_zero:
        return None
    status = verdict.status if config.deceptive_earns_zero else verdict.functional_status
    return float(status == "correct")


def rewards_of(groups: Sequence[Sequence[Answer]]) -> list[list[float | None]]:
    """The rewards of each group."""
    return [[answer.reward for answer in group] for group in groups]


_Came = queue.Queue[tuple[Verdict, float] | BaseException]
"""Verdicts with the time (`time.perf_counter`, s) at which they came; or why no more come."""


class Verifier:
    """The verifier's pool, open for a whole run. Use as a context manager.

    `begin` opens a set of answers. Sets may overlap, as a step's and the next one's do: what came first is judged first.
    """

    def __init__(self, config: RewardConfig, *, most_jobs: int, gpu: int | None = None, share: int = 1) -> None:
        """`gpu`: this process's GPU where several processes share a machine; `share`: how many share it."""
        machine = config.machine
        if gpu is not None and machine.gpus is None:
            machine = dataclasses.replace(machine, gpus=(gpu,))
        mine = max(1, cores() // share)
        if share > 1 and config.backend == "cuda" and machine.builders is None:
            machine = dataclasses.replace(machine, builders=mine)
        if share > 1 and config.backend == "cpu" and machine.jobs is None:
            machine = dataclasses.replace(machine, jobs=mine)
        self.config, self.machine, self._most_jobs = config, machine, most_jobs
        self._opened: contextlib.ExitStack | None = None
        self._feed, self._came = Feed(), _Came()
        self._waiting: dict[int, _Waiting] = {}
        """By the number of the job, which is its `sample`."""
        self._numbers = itertools.count()

    def __enter__(self) -> Verifier:
        self.restart()
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    @property
    def is_open(self) -> bool:
        """Whether the pool was opened."""
        return self._opened is not None

    def restart(self) -> None:
        """Open the pool, a new one in the place of one that is open. What waits for a verdict is judged by the new one.

        Raises DiceError for a service that judges otherwise.
        """
        self._close()
        config = self.config
        if config.url is not None:
            from dice.service.remote_pool import RemotePool  # needs the extra `serve`

            pool = RemotePool(config.url, config.backend, config.judging, config.limits)
        else:
            pool = open_pool(config.backend, config.judging, config.limits, self.machine, self._most_jobs)
        with contextlib.ExitStack() as opened:
            stream = opened.enter_context(pool).stream
            feed, came = self._feed, self._came = Feed(), _Came()
            thread = threading.Thread(target=_collect, args=(stream, feed, came), name="verdicts", daemon=True)
            thread.start()
            opened.callback(thread.join)
            opened.callback(feed.stop)  # this first: nobody may be in the pool when it is closed
            self._opened = opened.pop_all()
        for waiting in self._waiting.values():
            feed.put(waiting.job.model_copy())

    def _close(self) -> None:
        if self._opened is not None:
            self._opened.close()

    def begin(self) -> PendingVerdicts:
        """Start the verification of some answers."""
        return PendingVerdicts(self)

    def put(self, problem: RlProblem, code: str, answers: list[Answer], of: PendingVerdicts) -> None:
        """Have a candidate judged, for the answers that are equal to it; returns at once."""
        number = next(self._numbers)
        job = Job(problem_id=problem.id, problem_code=problem.pytorch_code, sample=number, code=code)
        self._waiting[number] = _Waiting(job, answers, of)
        self._feed.put(job)

    def take(self, timeout_s: float | None = None) -> bool:
        """Take the verdicts that have come; with `timeout_s`, wait for one. False: none came in time."""
        taken = False
        while True:
            try:
                message = self._came.get(block=timeout_s is not None and not taken, timeout=timeout_s)
            except queue.Empty:
                return taken
            if isinstance(message, BaseException):
                raise message
            taken = True
            self._absorb(*message)

    def _absorb(self, verdict: Verdict, came_s: float) -> None:
        waiting = self._waiting.pop(verdict.sample)
        of = waiting.of
        of.ended = came_s
        if verdict.status == "host_error":
            of.host_errors += 1
            if waiting.retries < self.config.retries:
                self._waiting[verdict.sample] = dataclasses.replace(waiting, retries=waiting.retries + 1)
                self._feed.put(waiting.job.model_copy())
                return
        of.missing -= 1
        for answer in waiting.answers:
            answer.verdict = verdict

    def give_up(self, of: PendingVerdicts) -> None:
        """Leave the rest of a set without verdicts, and open a new pool for the others."""
        self._waiting = {number: waiting for number, waiting in self._waiting.items() if waiting.of is not of}
        self.restart()


def _collect(stream: Callable[[Feed], Iterator[list[Verdict]]], feed: Feed, came: _Came) -> None:
    try:
        for verdicts in stream(feed):
            came.put((verdicts[0], time.perf_counter()))
    except BaseException as error:  # noqa: BLE001  raised again where the verdicts are taken
        came.put(error)


@dataclass(eq=False)
class PendingVerdicts:
    """Verdicts on their way: candidates go in while others are decoded, `finish` waits for the missing verdicts."""

    verifier: Verifier
    host_errors: int = 0
    began: float | None = None
    ended: float | None = None
    missing: int = 0
    """Candidates that have no verdict yet."""
    _by_text: dict[tuple[str, str], list[Answer]] = field(default_factory=dict)

    def submit(self, answer: Answer) -> None:
        """Submit one candidate, unless the same text was submitted before; returns at once."""
        if answer.candidate.code is None:
            return
        self.began = self.began or time.perf_counter()
        problem, code = answer.asked.problem, answer.candidate.code
        equal = self._by_text.setdefault((problem.pytorch_code, code), [])
        equal.append(answer)
        if len(equal) > 1:
            answer.verdict = equal[0].verdict
        else:
            self.missing += 1
            self.verifier.put(problem, code, equal, self)
        self.verifier.take()

    def finish(self) -> None:
        """Wait for the missing verdicts. Where none came for `silence_s`, the rest stays without one."""
        while self.missing:
            if not self.verifier.take(self.verifier.config.silence_s):
                self.verifier.give_up(self)
                return


@dataclass(frozen=True)
class _Waiting:
    """A candidate without a verdict."""

    job: Job
    answers: list[Answer]
    """Equal answers, which all wait for it."""
    of: PendingVerdicts
    retries: int = 0


def draw(
    decoder: Decoder,
    asked: Sequence[Asked],
    *,
    purpose: int | str,
    seed: int,
    new_tokens: int,
    to_text: Callable[[Sequence[int]], str],
    on_answer: Callable[[Answer], object],
) -> list[Answer]:
    """Draw all answers, in the order of `asked`; `on_answer` gets each as soon as it is finished."""
    requests = [
        Request(
            one.problem.prompt,
            new_tokens,
            answer_seed(seed, purpose, one.problem.id, one.group, one.sample),
            (number, one),
        )
        for number, one in enumerate(asked)
    ]
    found: dict[int, Answer] = {}
    for completion in decoder.run(requests):
        number, one = completion.request.key
        found[number] = answer_of(one, completion, to_text)
        on_answer(found[number])
    return [found[number] for number in range(len(requests))]


def answer_of(asked: Asked, completion: Completion, to_text: Callable[[Sequence[int]], str]) -> Answer:
    """The answer that a completion is."""
    ids = completion.ids[:-1] if completion.finish_reason == "stop" else completion.ids
    text = to_text(ids)
    return Answer(asked, completion, text, asked.problem.candidate(text))
