"""`dice check`: for every cell of every table, does what was measured agree with what the paper reports?

agrees           the paper's number lies in the measured 95 % interval (for a value without interval: within 5 %)
differs          it does not
not comparable   measured at another scale or on a back end without speed: the models or the hardware are not the paper's
not measured     only the paper's number is there

Only the scales `released` and `paper` evaluate the paper's models on its benchmark and can agree or differ; there every
difference is listed. The check reports; it never fails and feeds no table.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from pathlib import Path

from dice.config import add_options, config_from, stage_config, to_spec
from dice.evaluation.score import Z95, wilson
from dice.jsonl import atomic_writer
from dice.manifest import Stopwatch, write_manifest
from dice.report.tables import NOT_AVAILABLE, Row, read_table, to_csv

COMPARABLE_SCALES = ("released", "paper")
RELEVANT = 0.05
"""Difference of two rates that matters: below it they agree."""


@stage_config
class CheckConfig:
    """What `dice check` compares."""

    tables: tuple[str, ...]
    """CSV files of `dice table`."""
    out: str
    """CSV to write, one row per cell; a summary goes beside it as .md."""


def judge(row: Row, metric: str) -> str:
    """The result for one cell.

    `differs`: the interval of measured minus reported excludes 0. `agrees`: it lies within `RELEVANT`. `cannot be told`:
    neither, so the answers are too few to see a difference of 5 points.
    """
    measured, reported = row[metric], row[f"{metric}_reported"]
    if row["status"] != "measured" or measured == "":
        return "not measured"
    if measured == NOT_AVAILABLE or row["scale"] not in COMPARABLE_SCALES or not reported:
        return "not comparable"
    low, high = row.get(f"{metric}_low", ""), row.get(f"{metric}_high", "")
    if not low:
        return "agrees" if abs(float(measured) - float(reported)) <= 0.05 * abs(float(reported)) else "differs"
    least, most = difference_interval(*(float(value) / 100 for value in (measured, low, high, reported)))
    if least > 0 or most < 0:
        return "differs"
    return "agrees" if max(-least, most) <= RELEVANT else "cannot be told"


def difference_interval(measured: float, low: float, high: float, reported: float) -> tuple[float, float]:
    """95 % interval of measured minus reported, all in 0..1 (R. G. Newcombe 1998, method 10: from two Wilson intervals).

    The paper gives no intervals. Its number is as uncertain as ours: a share of as many independent answers, which the
    width of the measured interval tells.
    """
    reported_low, reported_high = wilson(reported * (n := answers_behind(low, high)), n)
    difference = measured - reported
    return (
        difference - math.hypot(measured - low, reported_high - reported),
        difference + math.hypot(high - measured, reported - reported_low),
    )


def answers_behind(low: float, high: float) -> float:
    """The number of answers of which Wilson's 95 % interval has these ends.

    Its ends l, h solve n (s - l)^2 = z^2 l (1 - l) for the share s, and likewise for h; s is eliminated.
    """
    roots = math.sqrt(low * (1 - low)) + math.sqrt(high * (1 - high))
    return (Z95 * roots / (high - low)) ** 2


def check(config: CheckConfig) -> list[Row]:
    """Run the stage."""
    watch = Stopwatch()
    cells: list[Row] = []
    for path in config.tables:
        for row in read_table(path):
            for metric in (name.removesuffix("_reported") for name in row if name.endswith("_reported")):
                interval = "/".join(filter(None, (row.get(f"{metric}_low"), row.get(f"{metric}_high"))))
                cells.append(
                    {"table": Path(path).stem, "row": row["row"], "metric": metric, "measured": row[metric]}
                    | {"interval": interval, "reported": row[f"{metric}_reported"], "scale": row["scale"]}
                    | {"result": judge(row, metric), "reason": row.get("reason", "")}
                )
    with atomic_writer(Path(config.out).with_suffix(".md")) as stream:
        stream.write(summary(cells))
    with atomic_writer(config.out) as stream:
        stream.write(to_csv(cells))
    write_manifest(config.out, stage="check", spec=to_spec(config), watch=watch, inputs=list(config.tables))
    return cells


def summary(cells: list[Row]) -> str:
    """Counts per table, then every cell that differs."""
    words = ("agrees", "differs", "cannot be told", "not comparable", "not measured")
    lines = ["# Measured against reported", "", f"| table | {' | '.join(words)} |", f"|---|{'---|' * len(words)}"]
    for table in dict.fromkeys(cell["table"] for cell in cells):
        counts = Counter(cell["result"] for cell in cells if cell["table"] == table)
        lines.append(f"| {table} | {' | '.join(str(counts[word]) for word in words)} |")
    differing = [cell for cell in cells if cell["result"] == "differs"]
    lines += ["", f"## Cells that differ: {len(differing)}", ""]
    lines += [
        f"- {c['table']}, {c['row']}, {c['metric']}: measured {c['measured']} ({c['interval']}), reported {c['reported']}"
        for c in differing
    ]
    return "\n".join(lines) + "\n"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `dice check`."""
    add_options(parser, CheckConfig, "tables", "out")


def run(args: argparse.Namespace) -> int:
    """Entry point of `dice check`."""
    cells = check(config_from(args, CheckConfig))
    print(", ".join(f"{n} {word}" for word, n in Counter(cell["result"] for cell in cells).most_common()))
    return 0
