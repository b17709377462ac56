"""Checkpoints of an RL run: a failure is told in one sentence, and earlier checkpoints stay."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from dice.decoding.requests import Completion, FinishReason, Request, Trace
from dice.errors import DiceError, HarnessError
from dice.jsonl import read_jsonl, write_jsonl
from dice.training.checkpoints import Checkpoint, latest_checkpoint, save_checkpoint
from dice.training.engine import TrainingEngine
from dice.training.rollout import Answer


class DrawnRow(BaseModel):
    """One answer that was drawn for the step behind a checkpoint: a row of checkpoints/step-N/drawn.RANK.jsonl."""

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
    """Tokens of the answer: those behind its end token are not of it."""
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


def resume(out: Path, engine: TrainingEngine, identity: str) -> Checkpoint | None:
    """Load the newest checkpoint under `out`, if there is one.

    Raises DiceError for a damaged checkpoint, or one of a run with other settings.
    """
    folder = out / "checkpoints"
    try:
        checkpoint = latest_checkpoint(folder, identity)
    except (ValueError, KeyError) as error:
        raise DiceError(f"{folder}: the newest checkpoint's checkpoint.json is damaged; delete its folder.") from error
    if checkpoint is None:
        return None
    try:
        engine.load(checkpoint.folder)
    except (OSError, RuntimeError, ValueError, KeyError, EOFError) as error:
        others = sorted(path.name for path in folder.glob("step-*") if path != checkpoint.folder)
        rest = f"delete that folder to go on from {others[-1]}" if others else "delete it to start again"
        raise DiceError(
            f"{checkpoint.folder}: the checkpoint is damaged ({' '.join(str(error).split())[:160]}); {rest}."
        ) from error
    return checkpoint


def store(
    out: Path, engine: TrainingEngine, step: int, identity: str, *, keep: int, also: Callable[[Path], None]
) -> None:
    """Write a checkpoint, with what `also` writes into its folder. Raises HarnessError when that fails."""
    folder = out / "checkpoints"
    try:
        save_checkpoint(folder, engine, step, identity, keep=keep, also=also)
    except (OSError, RuntimeError) as error:
        for partial in folder.glob(".step-*.partial"):
            shutil.rmtree(partial, ignore_errors=True)
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error).split("\n")[0]
        raise HarnessError(
            f"{folder}: the checkpoint of step {step} could not be written ({reason}); {what_is_left(out)}"
        ) from error


def what_is_left(out: Path) -> str:
    """Half a sentence for errors: where the run can continue from."""
    found = sorted(path.name for path in (out / "checkpoints").glob("step-*"))
    return f"{found[-1]} is intact, run again to go on from it." if found else "there is no checkpoint yet."
