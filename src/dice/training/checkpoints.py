"""Checkpoints of a run. A checkpoint appears whole or not at all, whenever the run is killed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch.distributed as dist

from dice.errors import DiceError
from dice.training.engine import TrainingEngine

_META = "checkpoint.json"


@dataclass(frozen=True)
class Checkpoint:
    """A complete checkpoint after `step` optimizer steps."""

    folder: Path
    step: int


def latest_checkpoint(folder: Path, identity: str) -> Checkpoint | None:
    """The newest complete checkpoint. Raises DiceError when it belongs to a run with other settings or data."""
    found = sorted(path for path in folder.glob("step-*") if (path / _META).is_file())
    if not found:
        return None
    meta = json.loads((found[-1] / _META).read_text(encoding="utf-8"))
    if meta["identity"] != identity:
        raise DiceError(
            f"{found[-1]}: this checkpoint is of a run with other settings or data; choose another --out, or delete "
            f"{folder} to start again."
        )
    return Checkpoint(found[-1], meta["step"])


def save_checkpoint(
    folder: Path,
    engine: TrainingEngine,
    step: int,
    identity: str,
    *,
    keep: int,
    also: Callable[[Path], None] = lambda folder: None,
) -> None:
    """Write `folder`/step-N through a temporary folder (every process its part), then drop all but `keep`.

    `also` writes what else this process keeps into the temporary folder.
    """
    final = folder / f"step-{step:08d}"
    partial = folder / f".{final.name}.partial"
    if engine.rank == 0:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
    _wait(engine)
    engine.save(partial)
    also(partial)
    _wait(engine)
    if engine.rank == 0:
        (partial / _META).write_text(json.dumps({"step": step, "identity": identity}) + "\n", encoding="utf-8")
        shutil.rmtree(final, ignore_errors=True)
        partial.rename(final)
        for old in sorted(folder.glob("step-*"))[:-keep]:
            shutil.rmtree(old)
    _wait(engine)


def _wait(engine: TrainingEngine) -> None:
    if engine.world > 1:
        dist.barrier()
