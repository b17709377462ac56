"""Checkpoints of a run. A checkpoint appears whole or not at all, whenever the run is killed."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch.distributed as dist

from dice.errors import DiceError, HarnessError
from dice.training.engine import TrainingEngine

_META = "checkpoint.json"


@dataclass(frozen=True)
class Checkpoint:
    """A complete checkpoint after `step` optimizer steps."""

    folder: Path
    step: int


def resume(out: Path, engine: TrainingEngine, identity: str) -> Checkpoint | None:
    """Load the newest complete checkpoint of the run in `out`, if there is one.

    Raises DiceError for a damaged checkpoint, and for one of a run with other settings, weights or data.
    """
    found = sorted(path for path in (out / "checkpoints").glob("step-*") if (path / _META).is_file())
    if not found:
        return None
    *others, newest = found
    try:
        meta = json.loads((newest / _META).read_text(encoding="utf-8"))
        step, same = meta["step"], meta["identity"] == identity
    except (ValueError, KeyError) as error:
        raise DiceError(f"{newest}: its {_META} is damaged; delete this folder.") from error
    if not same:
        raise DiceError(
            f"{newest}: this checkpoint is of a run with other settings, weights or data; choose another --out, or delete "
            f"{newest.parent} to start again."
        )
    try:
        engine.load(newest)
    except (OSError, RuntimeError, ValueError, KeyError, EOFError, pickle.UnpicklingError) as error:
        rest = f"delete that folder to go on from {others[-1].name}" if others else "delete it to start again"
        raise DiceError(
            f"{newest}: the checkpoint is damaged ({' '.join(str(error).split())[:160]}); {rest}."
        ) from error
    return Checkpoint(newest, step)


def save_checkpoint(
    out: Path,
    engine: TrainingEngine,
    step: int,
    identity: str,
    *,
    keep: int,
    also: Callable[[Path], None] = lambda folder: None,
) -> None:
    """Write `out`/checkpoints/step-N through a temporary folder (every process its part), then drop all but `keep`.

    `also` writes what else this process keeps into the temporary folder. A whole checkpoint of that step stays as it is.
    Raises HarnessError when writing fails; earlier checkpoints stay.
    """
    final = out / "checkpoints" / f"step-{step:08d}"
    partial = final.with_name(f".{final.name}.partial")
    try:
        if engine.rank == 0:
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
        _wait(engine)
        engine.save(partial)
        also(partial)
        _wait(engine)
        if engine.rank == 0:
            (partial / _META).write_text(json.dumps({"step": step, "identity": identity}) + "\n", encoding="utf-8")
            if (final / _META).is_file():  # the same state: a kill between its end and the new name would leave none
                shutil.rmtree(partial)
            else:
                shutil.rmtree(final, ignore_errors=True)
                partial.rename(final)
            for old in sorted(final.parent.glob("step-*"))[:-keep]:
                (old / _META).unlink(missing_ok=True)  # first: what is gone in part is no checkpoint
                shutil.rmtree(old)
        _wait(engine)
    except (OSError, RuntimeError) as error:
        shutil.rmtree(partial, ignore_errors=True)
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error).split("\n")[0]
        raise HarnessError(
            f"{final.parent}: the checkpoint of step {step} could not be written ({reason}); {what_is_left(out)}"
        ) from error


def what_is_left(out: Path) -> str:
    """Half a sentence for errors: where the run can continue from."""
    found = sorted(path.name for path in (out / "checkpoints").glob("step-*"))
    return f"{found[-1]} is intact, run again to go on from it." if found else "there is no checkpoint yet."


def _wait(engine: TrainingEngine) -> None:
    if engine.world > 1:
        dist.barrier()
