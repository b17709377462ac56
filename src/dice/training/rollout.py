"""Rollouts: answers of the live policy, each submitted to the verifier as soon as it is finished.

The policy's own weights decode; token ids, step maps and log-probabilities are kept as they were drawn. One pool of the
verifier stays open for the whole run. Equal candidates of one problem are verified once.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

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


class VerdictStream(Protocol):
    """A pool of this machine, or a service's."""

    def stream(self, feed: Feed) -> Iterator[list[Verdict]]:
        """The verdicts of each job that is fed, as they come."""
        ...


class Verifier:
    """The verifier's pool, open for a whole run. Use as a context manager; then `begin` when the last answers are done."""

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
        self._open = contextlib.ExitStack()
        self._last: PendingVerdicts | None = None
        self.pool: VerdictStream | None = None

    def __enter__(self) -> Verifier:
        self.restart()
        return self

    def __exit__(self, *_: object) -> None:
        if self._last is not None:
            self._last.abandon()
        self._open.close()

    def restart(self) -> None:
        """Close the pool and open a new one. Raises DiceError for a service that judges otherwise."""
        self._open.close()
        self._open = contextlib.ExitStack()
        config = self.config
        if config.url is not None:
            from dice.service.remote_pool import RemotePool  # needs the extra `serve`

            pool = RemotePool(config.url, config.backend, config.judging, config.limits)
        else:
            pool = open_pool(config.backend, config.judging, config.limits, self.machine, self._most_jobs)
        self.pool = self._open.enter_context(pool)

    def begin(self) -> PendingVerdicts:
        """Start the verification of some answers."""
        assert self.pool is not None
        self._last = PendingVerdicts(self.pool, self.config)
        return self._last


@dataclass
class PendingVerdicts:
    """Verdicts on their way: candidates go in while others are decoded, `finish` waits for the missing verdicts."""

    pool: VerdictStream
    config: RewardConfig
    host_errors: int = 0
    began: float | None = None
    ended: float | None = None
    _by_text: dict[tuple[str, str], list[Answer]] = field(default_factory=dict)
    _waiting: dict[tuple[str, int], tuple[Job, int, list[Answer]]] = field(default_factory=dict)
    """(problem, number of the job) -> job, retries so far, answers that wait for it."""
    _numbers: int = 0

    def __post_init__(self) -> None:
        self._feed = Feed()
        self._verdicts: queue.Queue[list[Verdict] | BaseException | None] = queue.Queue()
        self._thread = threading.Thread(target=self._collect, name="verdicts", daemon=True)
        self._thread.start()

    def _collect(self) -> None:
        try:
            for verdicts in self.pool.stream(self._feed):
                self.ended = time.perf_counter()
                self._verdicts.put(verdicts)
            self._verdicts.put(None)
        except BaseException as error:  # noqa: BLE001  raised again where the verdicts are taken
            self._verdicts.put(error)

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
            job = Job(problem_id=problem.id, problem_code=problem.pytorch_code, sample=self._numbers, code=code)
            self._numbers += 1
            self._waiting[problem.id, job.sample] = (job, 0, equal)
            self._feed.put(job)
        self.take()

    def take(self, timeout_s: float | None = None) -> bool:
        """Take the verdicts that have come; with `timeout_s`, wait for one. False: none came in time."""
        came = False
        while True:
            try:
                message = self._verdicts.get(block=timeout_s is not None and not came, timeout=timeout_s)
            except queue.Empty:
                return came
            if isinstance(message, BaseException):
                raise message
            if message is None:
                return True
            came = True
            self._absorb(message[0])

    def _absorb(self, verdict: Verdict) -> None:
        job, tried, answers = self._waiting.pop((verdict.problem_id, verdict.sample))
        if verdict.status == "host_error":
            self.host_errors += 1
            if tried < self.config.retries:
                self._waiting[job.problem_id, job.sample] = (job, tried + 1, answers)
                self._feed.put(job.model_copy())
                return
        for answer in answers:
            answer.verdict = verdict

    def abandon(self) -> None:
        """Drop what is still to be verified: nobody may be in the pool when it is closed."""
        self._feed.stop()
        self._thread.join()

    def finish(self) -> bool:
        """Wait for the missing verdicts. False: no verdict came for `silence_s`, and the rest stays without one."""
        while self._waiting:
            if not self.take(self.config.silence_s):
                self.abandon()
                return False
        self._feed.close()
        self._thread.join()
        return True


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
