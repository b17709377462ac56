"""Handlers for the pool's tests; a module of its own because workers import it by name."""

import gc
import os
import signal
import sys
from pathlib import Path

from waiting import wait_for

from dice.errors import DiceError, HarnessError
from dice.kernels.pool.pool import Onward
from dice.kernels.records.job import Job
from dice.kernels.records.verdict import Host, Verdict


def verdict(job: Job, status: str = "correct", message: str = "") -> Verdict:
    return Verdict.model_validate(
        {
            "problem_id": job.problem_id,
            "sample": job.sample,
            "code_sha256": job.code_sha256,
            "problem_sha256": job.problem_sha256,
            "status": status,
            "functional_status": status,
            "stage": "done",
            "message": message,
            "protocol": "paper",
            "backend": "cpu",
            "trials": 1,
            "host": Host(gpu=None, driver=None, cuda=None, torch="", cpu="", isolation=[]),
        }
    )


def host_error(job: Job, message: str) -> list[Verdict]:
    return [verdict(job, "host_error", message)]


class Scripted:
    """Does what the job's code says; `folder` remembers across workers what was already tried."""

    def __init__(self, folder: str, role: str):
        self.folder, self.role = Path(folder), role
        (self.folder / f"{role}-{os.getpid()}").touch()

    def handle(self, job: Job):
        order = job.code or ""
        tried = self.folder / f"tried-{job.sample}"
        first = not tried.exists()
        tried.touch()
        if order == "die" or (order == "die_once" and first):
            os._exit(9)
        if order == "hang_once" and first:
            signal.pause()
        if order == "bug" or (order == "bug_once" and first):
            raise ZeroDivisionError("oops")
        if order == "harness":
            raise HarnessError("disk full")
        if order == "say what is there":
            known = "dice.kernels.grader.executor" in sys.modules
            return [verdict(job, message=f"{known} {gc.isenabled()} {gc.get_freeze_count() > 100_000}")]
        if self.role == "build":
            return [verdict(job, "compile_error")] if order == "broken" else Onward()
        return [verdict(job)]

    def close(self):
        pass


class Weighed:
    """Builds by saying how much work a job's code names. The executor works on job 0 until the builder has begun with the
    last of `jobs`: then the pool has heard of all others."""

    def __init__(self, folder: str, role: str, jobs: int):
        self.folder, self.role, self.jobs = Path(folder), role, jobs

    def handle(self, job: Job):
        if self.role == "build":
            (self.folder / f"begun-{job.sample}").touch()
            return Onward(int(job.code or 0))
        if job.sample == 0:
            wait_for((self.folder / f"begun-{self.jobs - 1}").exists, "the builder begins with the last job")
        return [verdict(job)]

    def close(self):
        pass


def refuses_to_start():
    raise DiceError("no compiler: install g++.")


def dies_at_start():
    os._exit(11)


class EveryOtherStart(Scripted):
    """The first worker dies while it starts, the second lives, the third dies, ..."""

    def __init__(self, folder: str, role: str):
        started = Path(folder, "started")
        before = started.stat().st_size if started.exists() else 0
        with started.open("a") as stream:
            stream.write("x")
        if before % 2 == 0:
            os._exit(11)
        super().__init__(folder, role)
