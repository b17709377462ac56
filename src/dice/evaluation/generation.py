"""The rows of generations.jsonl, which our own engine and the client of servers write alike."""

from __future__ import annotations

import hashlib
from typing import Literal

from pydantic import BaseModel, ConfigDict

THINK_END = "</think>"


class Generation(BaseModel):
    """One row of generations.jsonl."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)
    problem_id: str
    sample: int
    seed: int
    """Seed of this sample; with the model, the prompt and the decoding settings it repeats the answer of our own engine."""
    prompt_sha256: str
    text: str
    """The answer without its end token."""
    thought: str | None = None
    """Reasoning before the answer, where it was told apart."""
    code: str | None
    """The candidate's source in the answer (`extract_code`); None: there is none, or the answer is a middle."""
    n_tokens: int | None
    """Tokens of the answer, the end token and the reasoning included; None: the server did not say."""
    n_forwards: int | None
    """Forward passes that the answer took part in, prefill included; None: a server's, unknown."""
    seconds: float
    """From entering the batch, or sending the request, to the end; other answers were made in the same time."""
    finish_reason: Literal["stop", "length", "refused"]
    """`refused`: the server gave no answer to this prompt (too long, filtered), and would not the next time."""
    order: list[int]
    """For each token, the forward (from 1, prefill not counted) in which it was fixed; empty: unknown."""
    ends: list[int] = []
    """For each token, the characters of `text` up to its end; the end token ends where the text does. Empty: unknown."""


def sample_seed(seed: int, problem_id: str, sample: int) -> int:
    """A seed in [0, 2**48) of its own for every sample of every problem."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{problem_id}/{sample}".encode()).digest()[:6], "big")


def split_thought(text: str) -> tuple[str | None, str]:
    """Reasoning and answer: what stands before `</think>`, and what follows; None without reasoning.

    The opening tag may be part of the prompt, so it may be missing. Reasoning that never ends leaves an empty answer.
    """
    before, end, after = text.partition(THINK_END)
    opened = before.lstrip().startswith("<think>")
    if not (end or opened):
        return None, text
    return before.strip().removeprefix("<think>").strip(), after.lstrip("\n")
