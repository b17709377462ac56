"""Checkpoints of an RL run: a failure is told in one sentence, and earlier checkpoints stay."""

from __future__ import annotations

import shutil
from pathlib import Path

from dice.errors import DiceError, HarnessError
from dice.training.checkpoints import latest_checkpoint, save_checkpoint
from dice.training.engine import TrainingEngine


def resume(out: Path, engine: TrainingEngine, identity: str) -> int:
    """Load the newest checkpoint under `out`; returns the number of steps done.

    Raises DiceError for a damaged checkpoint, or one of a run with other settings.
    """
    folder = out / "checkpoints"
    try:
        checkpoint = latest_checkpoint(folder, identity)
    except (ValueError, KeyError) as error:
        raise DiceError(f"{folder}: the newest checkpoint's checkpoint.json is damaged; delete its folder.") from error
    if checkpoint is None:
        return 0
    try:
        engine.load(checkpoint.folder)
    except (OSError, RuntimeError, ValueError, KeyError, EOFError) as error:
        others = sorted(path.name for path in folder.glob("step-*") if path != checkpoint.folder)
        rest = f"delete that folder to go on from {others[-1]}" if others else "delete it to start again"
        raise DiceError(
            f"{checkpoint.folder}: the checkpoint is damaged ({' '.join(str(error).split())[:160]}); {rest}."
        ) from error
    return checkpoint.step


def store(out: Path, engine: TrainingEngine, step: int, identity: str, *, keep: int) -> None:
    """Write a checkpoint. Raises HarnessError when that fails."""
    folder = out / "checkpoints"
    try:
        save_checkpoint(folder, engine, step, identity, keep=keep)
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
