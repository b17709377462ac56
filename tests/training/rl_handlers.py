"""Workers that misbehave on order, for the tests of rewards; a module of its own because workers import it by name."""

import functools
import os
import signal
from pathlib import Path

from dice.errors import HarnessError
from dice.kernels.pool.pool import WorkerPlan
from dice.kernels.records.job import Job
from dice.kernels.records.verdict import Host, Verdict


def verdict(job: Job, status: str, **changes) -> Verdict:
    host = Host(gpu=None, driver=None, cuda=None, torch="", cpu="", isolation=[])
    values = {"problem_id": job.problem_id, "sample": job.sample, "code_sha256": job.code_sha256, "status": status}
    values |= {"functional_status": status, "stage": "done", "message": "", "protocol": "paper", "backend": "cpu"}
    return Verdict.model_validate(values | {"trials": 1, "host": host} | changes)


class Ordered:
    """The candidate's text says what happens; `folder` remembers what was tried."""

    def __init__(self, folder: str):
        self.folder = Path(folder)

    def handle(self, job: Job):
        order = job.code or ""
        tried = len(list(self.folder.glob(f"tried-{job.sample}-*")))
        (self.folder / f"tried-{job.sample}-{tried}").touch()
        if order.startswith("hang"):
            signal.pause()
        if order == "die":
            os._exit(9)
        if order.startswith("host_error") and (order != "host_error once" or tried == 0):
            return [verdict(job, "host_error")]
        if order == "bug":
            raise HarnessError("disk full")
        return [
            verdict(
                job, order if order in ("timeout", "wrong_value", "unsupported_on_cpu", "refused_flag") else "correct"
            )
        ]

    def close(self):
        pass


def plans(folder) -> list[WorkerPlan]:
    return [WorkerPlan("execute", 2, functools.partial(Ordered, str(folder)))]


def host_error(job: Job, message: str) -> list[Verdict]:
    return [verdict(job, "host_error", message=message)]
