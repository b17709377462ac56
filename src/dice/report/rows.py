"""Rows of the CSV files that tables, figures and checks read and write, and what their cells mean.

A row maps a column's name to its text. A metric is a column beside which the paper's value stands (`*_reported`); where it
was measured with an interval, `*_low` and `*_high` are its ends.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from dice.errors import DiceError
from dice.evaluation.score import METRICS, Metric, PassRate, Rate
from dice.jsonl import atomic_writer

NOT_AVAILABLE = "n/a"
"""A cell that cannot be measured; one that was not measured is empty."""

Row = dict[str, str]
_LEVEL_METRIC = re.compile(rf"l(\d+)_({'|'.join(METRICS)})")


def percent(value: float | None) -> str:
    """A share as percent with one decimal; `n/a` for none."""
    return NOT_AVAILABLE if value is None else f"{100 * value:.1f}"


def label(row: Row) -> str:
    """The row's name, and what was measured: `DICE-8B: stand-in 8B-dice, 2.9M parameters, on mini-2-cpu`."""
    forms = {"measured_model": "{}", "measured_params": "{} parameters", "measured_on": "on {}"}
    measured = ", ".join(form.format(row[name]) for name, form in forms.items() if row.get(name))
    return f"{row['row']}: {measured}" if measured else row["row"]


def metrics_of(row: Row) -> list[str]:
    """The metrics of a row, in their order."""
    return [name.removesuffix("_reported") for name in row if name.endswith("_reported")]


def level_metric(column: str) -> tuple[int, Metric] | None:
    """The level and the metric of a column such as `l1_exec`; None for any other."""
    found = _LEVEL_METRIC.fullmatch(column)
    return (int(found[1]), cast(Metric, found[2])) if found else None


def with_ends(metric: str) -> tuple[str, str, str]:
    """Columns of a metric: its value, and the ends of its interval."""
    return metric, f"{metric}_low", f"{metric}_high"


def rate_cells(metric: str, rate: Rate | PassRate | None, missing: str = "") -> Row:
    """The cells of a metric in percent: value, low and high; `missing` where there is no rate."""
    texts = (missing,) * 3 if rate is None else map(percent, (rate.value, rate.low, rate.high))
    return dict(zip(with_ends(metric), texts, strict=True))


def interval(row: Row, metric: str) -> tuple[str, str] | None:
    """The ends of a metric's interval; None where it has none."""
    low, high = (row.get(end, "") for end in with_ends(metric)[1:])
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
