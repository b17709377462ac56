"""Recorded answers: what a server said, when, under which model's name. One JSON line each (docs/guides/servers.md).

`dice ask` appends every answer to such a file before it counts, so it is the journal of a run, and the file that anyone
with old answers can give in the place of a server that is gone.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from dice.config import spec_hash
from dice.errors import DiceError
from dice.evaluation.prompts.stage import PromptRow
from dice.jsonl import read_jsonl
from dice.servers.config import ServerConfig


class Answer(BaseModel):
    """One recorded answer."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)
    problem_id: str
    sample: int = Field(default=0, ge=0)
    model: str
    """Name of the model in the server's response, or the vendor's id."""
    date: datetime
    """When the answer came."""
    text: str
    """The answer without its reasoning."""
    thought: str | None = None
    """Its reasoning; None: none was sent. It may also stand between think tags in `text`."""
    finish_reason: Literal["stop", "length", "refused"] = "stop"
    """`refused`: there is no answer to this prompt, and asking again would not help."""
    note: str = ""
    """Why it was refused, in the server's words."""
    prompt_sha256: str | None = None
    """sha256 of the prompt without chat markup; None: not recorded."""
    request: str | None = None
    """Identity of the request: everything that was sent, the seed included; None: the answer comes from elsewhere."""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    """Reasoning included."""
    reasoning_tokens: int | None = None
    cost: float | None = None
    """Money, at the prices that were set at the time."""
    seconds: float = 0.0

    @property
    def tokens(self) -> int | None:
        """Prompt and answer; None where the server did not say."""
        if self.prompt_tokens is None or self.completion_tokens is None:
            return None
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True)
class Question:
    """One sample that is wanted."""

    prompt: PromptRow
    sample: int
    seed: int

    @property
    def key(self) -> tuple[str, int]:
        """Problem and sample."""
        return self.prompt.id, self.sample

    def body(self, server: ServerConfig, max_new_tokens: int) -> dict[str, object]:
        """The request as it is sent."""
        sampling = {"temperature": server.temperature, "top_p": server.top_p}
        sampling |= {"seed": self.seed % 2**31 if server.sends_seed else None, server.limit: max_new_tokens}
        given = {name: value for name, value in sampling.items() if value is not None}
        messages = [{"role": "user", "content": self.prompt.prompt}]
        return {"model": server.model, "messages": messages, **given, **server.extra}

    def identity(self, body: dict[str, object], weights: dict[str, str] | None) -> str:
        """What an answer belongs to: the request, its place, and a local server's weights. Not the address."""
        place = {"problem_id": self.prompt.id, "sample": self.sample, "seed": self.seed}
        return spec_hash({"body": body, "weights": weights, **place})


def read_answers(path: str | Path) -> list[Answer]:
    """All answers of a file; none where there is no file. Raises DiceError for a bad row."""
    return list(read_jsonl(path, Answer)) if Path(path).exists() else []


def check_model(answer: Answer, models: Collection[str]) -> None:
    """Raises DiceError for an answer of another model than `models`, where there are any."""
    if models and answer.model not in models:
        raise DiceError(
            f"the answer to {answer.problem_id} is of '{answer.model}', and this row is of {' or '.join(sorted(models))}; "
            "give another model a row of its own."
        )


def recorded(path: str | Path, questions: list[Question], models: Collection[str]) -> dict[tuple[str, int], Answer]:
    """Answers of a record, by problem and sample.

    Raises DiceError for an answer of another model than `models` (where there are any), for one to another prompt, for one
    that is there twice, and when one is missing. Answers to problems that are not asked are left out.
    """
    if not Path(path).exists():
        raise DiceError(f"{path}: no such file; give the recorded answers (docs/guides/servers.md says in which form).")
    asked = {question.key: question for question in questions}
    found: dict[tuple[str, int], Answer] = {}
    for answer in read_answers(path):
        key = answer.problem_id, answer.sample
        where = f"{path}: sample {answer.sample} of {answer.problem_id}"
        check_model(answer, models)
        if key in found:
            raise DiceError(f"{where} is there twice; which is the answer?")
        if key not in asked:
            continue
        if answer.prompt_sha256 not in (None, asked[key].prompt.prompt_sha256):
            raise DiceError(f"{where} answers another prompt than that of this study.")
        found[key] = answer
    if missing := [key for key in asked if key not in found]:
        problem, sample = missing[0]
        raise DiceError(
            f"{path}: {len(missing)} of {len(asked)} answers are missing, the first is sample {sample} of {problem}."
        )
    return found
