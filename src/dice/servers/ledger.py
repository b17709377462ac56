"""What answers have cost, and whether the budget allows another one.

Before a request is sent, the most that its answer can cost is set aside: one token for each byte of the prompt, room for
the chat template, and the whole length that the answer may have. So the budget is kept whatever the answers turn out to be.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from dice.errors import DiceError
from dice.servers.answers import Answer
from dice.servers.config import Budget, Prices

TEMPLATE_TOKENS = 1024
"""More than any chat template adds to one message."""


def money(prices: Prices | None, prompt_tokens: int, completion_tokens: int) -> float | None:
    """Price of so many tokens; None without prices."""
    if prices is None:
        return None
    return (prompt_tokens * prices.prompt + completion_tokens * prices.completion) / 1e6


class Ledger:
    """Tokens and money of one file of answers."""

    def __init__(self, prices: Prices | None, budget: Budget, max_new_tokens: int) -> None:
        self._prices, self._budget, self._max_new_tokens = prices, budget, max_new_tokens
        self._costs: list[float] = []
        self._reserved: list[tuple[int, float]] = []
        self.tokens = 0
        """Tokens of the answers that are entered."""

    @property
    def cost(self) -> float:
        """Money of the answers that are entered; 0 without prices."""
        return math.fsum(self._costs)

    def enter(self, answers: Iterable[Answer]) -> None:
        """Count answers. Raises DiceError where there is a budget, and the server does not say how many tokens it took."""
        limited = self._budget.money is not None or self._budget.tokens is not None
        for answer in answers:
            if answer.tokens is None and answer.finish_reason != "refused" and limited:
                raise DiceError(
                    "the server does not say how many tokens an answer took, so no budget can be kept; "
                    "take `budget` out, or another server."
                )
            self.tokens += answer.tokens or 0
            unpriced = money(self._prices, answer.prompt_tokens or 0, answer.completion_tokens or 0)
            self._costs.append((unpriced or 0.0) if answer.cost is None else answer.cost)

    def bound(self, prompt: str) -> tuple[int, float]:
        """The most that an answer to `prompt` can take: tokens and money."""
        asked = len(prompt.encode()) + TEMPLATE_TOKENS
        return asked + self._max_new_tokens, money(self._prices, asked, self._max_new_tokens) or 0.0

    def reserve(self, prompt: str) -> bool:
        """Set aside what an answer to `prompt` may take; False where that is more than is left."""
        tokens, cost = self.bound(prompt)
        all_tokens = self.tokens + sum(one for one, _ in self._reserved) + tokens
        all_money = self.cost + math.fsum(one for _, one in self._reserved) + cost
        if self._budget.tokens is not None and all_tokens > self._budget.tokens:
            return False
        if self._budget.money is not None and all_money > self._budget.money:
            return False
        self._reserved.append((tokens, cost))
        return True

    def release(self, prompt: str) -> None:
        """Give back what was set aside for an answer to `prompt`."""
        self._reserved.remove(self.bound(prompt))

    def spent(self, prompt: str) -> str:
        """A sentence for a budget that does not allow an answer to `prompt`."""
        tokens, cost = self.bound(prompt)
        left = []
        if self._budget.tokens is not None:
            left.append(f"{self.tokens:,} of {self._budget.tokens:,} tokens are spent and {tokens:,} may follow")
        if self._budget.money is not None:
            left.append(f"{self.cost:.4f} of {self._budget.money:g} are spent and {cost:.4f} may follow")
        return f"the budget allows no further answer: {'; '.join(left)}"
