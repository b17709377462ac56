"""The history of a run: JSON lines that survive `kill -9`, and the same numbers for TensorBoard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from dice.errors import DiceError
from dice.jsonl import Journal, read_jsonl, write_jsonl


class StepRow(BaseModel):
    """One step of any run."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)
    step: int
    """From 1."""


Row = TypeVar("Row", bound=StepRow)


class HistoryRow(StepRow):
    """One optimizer step of fine-tuning."""

    epoch: float
    """Passes over the data."""
    loss: float
    learning_rate: float
    grad_norm: float
    """Before clipping."""
    tokens: int
    """Tokens of the packs of this step (each counted once)."""
    rows: int
    """Rows that the model computed: both copies, padding included."""
    targets: int
    """Tokens that carried loss."""
    seconds: float
    tokens_per_s: float
    mfu: float | None = None
    """Share of the GPUs' peak rate; None where no peak is known."""
    peak_memory_gib: float | None = None


class History(Generic[Row]):
    """history.jsonl and a TensorBoard folder beside it, cut back to `step` when a run resumes there."""

    def __init__(self, folder: str | Path, kind: type[Row], *, step: int, tensorboard: bool) -> None:
        path = Path(folder) / "history.jsonl"
        if path.exists():
            Journal(path).close()  # cuts a torn last line
            write_jsonl(path, [row for row in read_jsonl(path, kind) if row.step <= step])
        self._journal = Journal(path)
        self._writer = None
        if tensorboard:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError as error:
                raise DiceError(
                    "TensorBoard is not installed: pip install 'dice-repro[train]', or set tensorboard to false."
                ) from error
            self._writer = SummaryWriter(str(Path(folder) / "tensorboard"), purge_step=step + 1)

    def append(self, row: Row) -> None:
        """Write one step durably."""
        self._journal.append(row)
        if self._writer is not None:
            for name, value in row.model_dump(exclude={"step"}, exclude_none=True).items():
                if isinstance(value, int | float):
                    self._writer.add_scalar(f"train/{name}", value, row.step)

    def close(self) -> None:
        """Flush and close."""
        self._journal.close()
        if self._writer is not None:
            self._writer.close()


def read_history(folder: str | Path, kind: type[Row]) -> Iterator[Row]:
    """The rows of a run's folder."""
    return read_jsonl(Path(folder) / "history.jsonl", kind)
