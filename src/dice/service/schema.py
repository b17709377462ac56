"""What goes over the wire: requests and replies, as the OpenAPI page shows them."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from dice.kernels.api import Backend, Job, Judging, Limits, Verdict

State = Literal["waiting", "running", "done", "cancelled"]
LONGEST_WAIT_S = 60.0
"""Most seconds that one request waits."""
ProblemId = Annotated[str, Field(min_length=1, max_length=500)]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True, frozen=True)


class Candidate(_Body):
    """One candidate to verify: its problem, and either its code or a model's whole answer."""

    problem_id: ProblemId
    """Name of a problem of the service; with `problem_code` any label."""
    problem_code: str | None = None
    """Python source of the problem."""
    code: str | None = None
    """Python source of the candidate."""
    text: str | None = None
    """A model's whole answer, from which the code is taken; in the place of `code`."""

    @model_validator(mode="after")
    def _one_answer(self) -> Candidate:
        if (self.code is None) == (self.text is None):
            raise ValueError("give either 'code' or 'text'")
        return self


class Submission(_Body):
    """Candidates of one request; all of them are accepted, or none."""

    candidates: list[Candidate] = Field(min_length=1, max_length=4096)
    priority: int = Field(default=0, ge=-100, le=100)
    """Higher ones run first; equal ones in the order in which they came."""


class JobView(_Body):
    """One job as a client sees it."""

    id: str
    """The job's content, hashed: equal candidates of equal problems have one."""
    state: State
    verdicts: list[Verdict] | None = None
    """One per protocol; only of a job that is done. `problem_id` is the first submission's label, `sample` is 0."""


class JobViews(_Body):
    """Several jobs."""

    jobs: list[JobView]
    unknown: list[str] = []
    """Ids that the service does not know (any more): submit those candidates again."""


class Wait(_Body):
    """Which jobs to wait for."""

    ids: list[str] = Field(min_length=1, max_length=4096)
    wait_s: float = Field(default=0.0, ge=0, le=LONGEST_WAIT_S)
    """Seconds to wait for the first of them to end; 0: answer at once."""


class Info(_Body):
    """What the service is, and how it judges."""

    version: str
    identity: str
    """Hash of all that a verdict depends on besides candidate and problem: settings, versions, the verifier's code, GPUs."""
    backend: Backend
    judging: Judging
    limits: Limits
    isolation: dict[str, list[str]]
    """Layers that confine `candidates` and `compilers` there, and those `missing`; empty before the pool is open."""
    problems: int
    """Problems that can be named."""
    client_problems: bool
    """Whether candidates may bring other problems."""


class Health(_Body):
    """Whether verdicts are being made."""

    status: Literal["starting", "ready"]
    waiting: int
    running: int


def job_id(identity: str, job: Job) -> str:
    """Id of a job: 32 hex digits of a hash over its content and the service's identity. Labels do not count."""
    text = json.dumps([identity, job.problem_code, job.code, job.no_code_reason])
    return hashlib.sha256(text.encode()).hexdigest()[:32]
