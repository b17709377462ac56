"""Verdicts for tests, as a verifier would write them."""

from __future__ import annotations

from typing import Any

from dice.kernels.records.job import Job
from dice.kernels.records.verdict import Host, Verdict

HOST = Host(gpu=None, driver=None, cuda=None, torch="2", cpu="test", isolation=[])


def verdict(problem: str = "level1/1_A", status: str = "correct", **changes: Any) -> Verdict:
    """A verdict of the CPU back end under `paper`; `changes`: other fields than usual."""
    values = {"problem_id": problem, "sample": 0, "code_sha256": "0", "status": status, "functional_status": status}
    values |= {"stage": "done", "message": "", "protocol": "paper", "backend": "cpu", "trials": 5, "host": HOST}
    return Verdict.model_validate(values | changes)


def verdict_on(job: Job, status: str = "correct", **changes: Any) -> Verdict:
    """The same on a job."""
    texts = {"code_sha256": job.code_sha256, "problem_sha256": job.problem_sha256}
    return verdict(job.problem_id, status, sample=job.sample, **texts | changes)
