"""The answers that were drawn ahead, as a checkpoint keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from dice.decoding.requests import Completion, FinishReason, Request, Trace
from dice.jsonl import read_jsonl, write_jsonl
from dice.training.rollout import Answer


class DrawnRow(BaseModel):
    """One answer that was drawn for the step after a checkpoint: a row of checkpoints/step-N/drawn.RANK.jsonl."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)
    group: int
    sample: int
    ids: tuple[int, ...]
    """All decoded tokens, to the end of the last block."""
    step_map: tuple[int, ...]
    """The forward that fixed each."""
    log_probs: tuple[float, ...]
    """Log-probability of each when it was fixed."""
    n_tokens: int
    """Tokens of the answer, up to and with its end token."""
    n_forwards: int
    finish_reason: FinishReason

    @classmethod
    def of(cls, answer: Answer) -> DrawnRow:
        """What a checkpoint keeps of an answer."""
        done = answer.completion
        return cls(
            group=answer.asked.group,
            sample=answer.asked.sample,
            ids=done.trace.ids,
            step_map=done.trace.step_map,
            log_probs=done.trace.log_confidence,
            n_tokens=len(done.ids),
            n_forwards=done.n_forwards,
            finish_reason=done.finish_reason,
        )

    def completion(self, request: Request) -> Completion:
        """The completion as it was drawn, without its seconds."""
        trace, end = Trace(self.ids, self.step_map, self.log_probs), self.n_tokens
        parts = (self.ids[:end], self.step_map[:end], self.log_probs[:end])
        return Completion(request, *parts, self.n_forwards, 0.0, self.finish_reason, trace)


def write_drawn(folder: Path, rank: int, answers: Sequence[Answer]) -> None:
    """Keep the answers that this process has drawn for the next step in a checkpoint."""
    write_jsonl(folder / f"drawn.{rank}.jsonl", [DrawnRow.of(answer) for answer in answers])


def read_drawn(folder: Path) -> list[DrawnRow]:
    """The answers of all processes in a checkpoint, by group and sample."""
    rows = [row for path in sorted(folder.glob("drawn.*.jsonl")) for row in read_jsonl(path, DrawnRow)]
    return sorted(rows, key=lambda row: (row.group, row.sample))
