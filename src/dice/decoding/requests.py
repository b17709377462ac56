"""What every decoder takes and gives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from dice.errors import DiceError

FinishReason = Literal["stop", "length"]


@dataclass(frozen=True)
class Request:
    """One answer to make."""

    prompt: tuple[int, ...]
    max_new_tokens: int
    seed: int = 0
    key: Any = None
    """Returned with the completion; for the caller."""


@dataclass(frozen=True)
class Trace:
    """All decoded positions to the end of the last block, those behind the end token included. A canvas that ended early has
    masks there, of step 0."""

    ids: tuple[int, ...]
    step_map: tuple[int, ...]
    log_confidence: tuple[float, ...]


@dataclass(frozen=True)
class Completion:
    """One finished answer."""

    request: Request
    ids: tuple[int, ...]
    """Answer tokens, the end token included where there is one."""
    step_map: tuple[int, ...]
    """For each answer token the forward (from 1, prefill not counted) in which it was fixed."""
    log_confidence: tuple[float, ...]
    """Log-probability of each token, in the model's own distribution, when it was fixed."""
    n_forwards: int
    """Forwards that computed tokens of the sequence, prefill included."""
    seconds: float
    """From entering the batch to leaving it."""
    finish_reason: FinishReason
    trace: Trace
    """What reinforcement learning replays; it begins with the answer."""


class AnyDecoder(Protocol):
    """What `dice generate` needs of a decoder."""

    def check(self, request: Request) -> None:
        """Raises DiceError for a request that cannot be decoded."""
        ...

    def run(self, requests: Iterable[Request]) -> Iterator[Completion]:
        """Yield completions as they finish."""
        ...


def check_request(request: Request, vocab_size: int) -> None:
    """Raises DiceError for a request that no decoder can answer."""
    if not request.prompt:
        raise DiceError("an empty prompt cannot be decoded; give at least one token.")
    if request.max_new_tokens < 1:
        raise DiceError(f"max_new_tokens is {request.max_new_tokens}; it must be at least 1.")
    if not 0 <= min(request.prompt) <= max(request.prompt) < vocab_size:
        raise DiceError(f"a prompt holds a token outside the model's vocabulary of {vocab_size}.")


def check_mask(mask_id: int | None, vocab_size: int) -> None:
    """Raises DiceError for a mask token that the model has no embedding for."""
    if mask_id is not None and mask_id >= vocab_size:
        raise DiceError(f"the mask token {mask_id} is outside the model's vocabulary of {vocab_size}.")


def check_no_mask(prompt: Iterable[int], mask_id: int) -> None:
    """Raises DiceError for a prompt with the mask token in it."""
    if mask_id in prompt:
        raise DiceError(f"a prompt holds the mask token {mask_id}, which stands for tokens to be decoded.")
