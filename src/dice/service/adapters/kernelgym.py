"""KernelGYM's HTTP interface: its clients evaluate kernels here (`/evaluate`, then `/status` and `/results`).

Fields as in github.com/hkust-nlp/KernelGYM, `kernelgym/server/api/models.py`. How many trials there are, and whether time
is measured, is the service's setting: what a request says of that is not read.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from dice.kernels.api import Verdict
from dice.service.dispatcher import Refused
from dice.service.schema import LONGEST_WAIT_S, Candidate

NOT_COMPILED = ("no_code", "compile_error", "refused_flag", "import_error")
MOST_TASKS = 20_000
"""Results that are kept under their task's name; older ones are forgotten."""

router = APIRouter(tags=["adapters"])


class Evaluation(BaseModel):
    """What KernelGYM's clients post."""

    model_config = ConfigDict(extra="allow")
    task_id: str = Field(min_length=1, max_length=100)
    reference_code: str
    kernel_code: str


@router.post("/evaluate")
async def evaluate(asked: Evaluation, request: Request) -> dict[str, Any]:
    """The result. 503 while there is no verdict: KernelGYM's client asks again."""
    candidate = Candidate(problem_id=asked.task_id, problem_code=asked.reference_code, code=asked.kernel_code)
    verdicts = await request.app.state.dispatcher.judged(request.state.client, candidate, LONGEST_WAIT_S)
    tasks = _tasks(request)
    tasks[asked.task_id] = found = result(asked.task_id, verdicts[0])
    while len(tasks) > MOST_TASKS:
        del tasks[next(iter(tasks))]
    return found


@router.get("/status/{task_id}")
@router.get("/results/{task_id}")
async def results(task_id: str, request: Request) -> dict[str, Any]:
    """The result once more, under the name that the client gave it. Raises Refused (404) for an unknown name."""
    if task_id not in _tasks(request):
        raise Refused(404, f"task {task_id}: no result under this name.")
    return _tasks(request)[task_id]


def _tasks(request: Request) -> dict[str, dict[str, Any]]:
    if not hasattr(request.app.state, "kernelgym"):
        request.app.state.kernelgym = {}
    return request.app.state.kernelgym


def result(task_id: str, verdict: Verdict) -> dict[str, Any]:
    """A verdict in KernelGYM's fields; run times in milliseconds."""
    return {
        "task_id": task_id,
        "status": "completed",
        "compiled": verdict.status not in NOT_COMPILED,
        "correctness": verdict.functional_status == "correct",
        "decoy_kernel": verdict.status == "deceptive",
        "reference_runtime": verdict.reference_ms and verdict.reference_ms.mean,
        "kernel_runtime": verdict.runtime_ms and verdict.runtime_ms.mean,
        "speedup": verdict.speedup and verdict.speedup.median,
        "metadata": {"status": verdict.status, "num_custom_kernel": sum((verdict.launches or {}).values())},
        "error_message": verdict.message or None,
        "processing_time": verdict.seconds,
    }
