"""TRL's reward function: asynchronous, for `GRPOTrainer(reward_funcs=kernel_reward("http://HOST:8642"), ...)`.

The data set has a column `problem_id`, a problem's name at the service, and may have `problem_code`. A completion is a
model's whole answer, as text or as messages. The token comes from `DICE_SERVICE_TOKEN`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from dice.errors import HarnessError
from dice.service.adapters.reward import reward
from dice.service.client import shared_client
from dice.service.schema import Candidate


def kernel_reward(url: str) -> Callable[..., Awaitable[list[float | None]]]:
    """The reward function of a service. None, which TRL leaves out, where the machine failed."""

    async def verified_kernel(
        completions: Sequence[Any],
        problem_id: Sequence[str],
        problem_code: Sequence[str | None] | None = None,
        **_: Any,
    ) -> list[float | None]:
        """One reward per completion."""

        async def one(text: str, name: str, code: str | None) -> float | None:
            try:
                return reward(await shared_client(url).verify(Candidate(problem_id=name, problem_code=code, text=text)))
            except HarnessError:
                return None

        texts = [done if isinstance(done, str) else done[-1]["content"] for done in completions]
        codes = problem_code or [None] * len(texts)
        return await asyncio.gather(*map(one, texts, problem_id, codes))

    return verified_kernel
