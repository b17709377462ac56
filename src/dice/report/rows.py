"""Rows of the CSV files that tables, figures and checks read and write, and how their cells are told.

A row maps a column's name to its text. A metric is a column beside which the paper's value stands (`*_reported`); where it
was measured with an interval, `*_low` and `*_high` are its ends.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from dice.errors import DiceError
from dice.jsonl import atomic_writer

NOT_AVAILABLE = "n/a"
"""A cell that cannot be measured; one that was not measured is empty."""

Row = dict[str, str]


def percent(value: float | None) -> str:
    """A share as percent with one decimal; `n/a` for none."""
    return NOT_AVAILABLE if value is None else f"{100 * value:.1f}"


def label(row: Row) -> str:
    """The row's name, and what was measured: `DICE-8B: stand-in 8B-dice, 2.9M parameters, on mini-2-cpu`."""
    forms = {"measured_model": "{}", "measured_params": "{} parameters", "measured_on": "on {}"}
    said = ", ".join(form.format(row[name]) for name, form in forms.items() if row.get(name))
    return f"{row['row']}: {said}" if said else row["row"]


def metrics_of(row: Row) -> list[str]:
    """The metrics of a row, in their order."""
    return [name.removesuffix("_reported") for name in row if name.endswith("_reported")]


def interval(row: Row, metric: str) -> tuple[str, str] | None:
    """The ends of a metric's interval; None where it has none."""
    low, high = row.get(f"{metric}_low", ""), row.get(f"{metric}_high", "")
    return None if low in ("", NOT_AVAILABLE) else (low, high)


def read_csv(path: str | Path) -> list[Row]:
    """Rows of a CSV file. Raises DiceError where there is none."""
    if not Path(path).is_file():
        raise DiceError(f"{path}: no such table.")
    try:
        with Path(path).open(encoding="utf-8", newline="") as stream:
            return list(csv.DictReader(stream))
    except UnicodeDecodeError as error:
        raise DiceError(f"{path}: not UTF-8 text.") from error


def read_table(path: str | Path) -> list[Row]:
    """Rows of a table that `dice table` wrote. Raises DiceError for anything else."""
    rows = read_csv(path)
    if not rows or any(row.get(name) is None for row in rows for name in ("row", "status", "scale")):
        raise DiceError(f"{path}: not a table by `dice table` (no rows, or no columns row, status and scale).")
    return rows


def write_csv(path: str | Path, rows: Sequence[Row], columns: Sequence[str] = ()) -> None:
    """Write a CSV file. All rows have the same columns; `columns` names them where there may be no row."""
    with atomic_writer(path) as stream:
        writer = csv.DictWriter(stream, fieldnames=columns or list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
