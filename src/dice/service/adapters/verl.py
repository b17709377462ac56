"""verl's `custom_reward_function`: an asynchronous `compute_score` that asks a service.

    reward.custom_reward_function.path=pkg://dice.service.adapters.verl
    reward.custom_reward_function.name=compute_score
    +reward.custom_reward_function.reward_kwargs.url=http://HOST:8642

A row's `reward_model.ground_truth` is the problem's code, or its name at the service; `extra_info.problem_id` may name it.
The token comes from `DICE_SERVICE_TOKEN`.
"""

from __future__ import annotations

from typing import Any

from dice.service.adapters.reward import reward
from dice.service.client import shared_client
from dice.service.schema import Candidate


async def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: str,
    extra_info: dict[str, Any] | None = None,
    *,
    url: str,
    **_: Any,
) -> dict[str, Any]:
    """`score` (1 or 0) and the verdict's `status`. Raises HarnessError where the machine failed: that is no reward."""
    is_code = "class Model" in ground_truth
    candidate = Candidate(
        problem_id=(extra_info or {}).get("problem_id", data_source) if is_code else ground_truth,
        problem_code=ground_truth if is_code else None,
        text=solution_str,
    )
    verdicts = await shared_client(url).verify(candidate)
    return {"score": reward(verdicts), "status": verdicts[0].status}
