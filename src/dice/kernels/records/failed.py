"""Verdicts of candidates that never ran."""

from __future__ import annotations

from dice.kernels.records.host import this_host
from dice.kernels.records.job import Job, Judging
from dice.kernels.records.verdict import Backend, Stage, Status, Verdict


def failed_verdicts(
    job: Job, status: Status, stage: Stage, message: str, judging: Judging, backend: Backend
) -> list[Verdict]:
    """Verdicts of a candidate that never ran: one per protocol."""
    host = this_host()
    return [
        Verdict(
            problem_id=job.problem_id,
            sample=job.sample,
            code_sha256=job.code_sha256,
            problem_sha256=job.problem_sha256,
            status=status,
            functional_status=status,
            stage=stage,
            message=message,
            protocol=protocol,
            backend=backend,
            trials=0,
            host=host,
        )
        for protocol in judging.protocols
    ]
