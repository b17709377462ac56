"""slime's `remote_rm`: the service answers `--rm-type remote_rm --rm-url http://user:TOKEN@HOST:8642/slime`.

slime (`slime/rollout/rm_hub/__init__.py`) posts prompt, response and label of a sample, takes the JSON that comes back as
its reward, gives up on a request after 120 s, and tries ten times. A sample's `label` is the name of a problem of the
service, or `{"problem_id": ..., "problem_code": ...}`.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel

from dice.service.adapters.reward import reward
from dice.service.schema import Candidate, ProblemId

WAIT_S = 100.0
"""Less than slime's own 120 s; its next try joins the job."""

router = APIRouter(tags=["adapters"])


class Problem(BaseModel):
    """A problem in a label."""

    problem_id: ProblemId
    problem_code: str | None = None


class Sample(BaseModel):
    """What slime posts."""

    response: str
    label: ProblemId | Problem
    prompt: Any = None


@router.post("/slime")
async def remote_rm(sample: Sample, request: Request) -> float:
    """The reward, 1 or 0. 503 while there is no verdict: slime asks again."""
    problem = Problem(problem_id=sample.label) if isinstance(sample.label, str) else sample.label
    candidate = Candidate(**problem.model_dump(), text=sample.response)
    return reward(await request.app.state.dispatcher.judged(request.state.client, candidate, WAIT_S))
