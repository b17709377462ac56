"""`dice check`: for every cell of every table, does what was measured agree with what the paper reports?

agrees           the 95 % interval of measured minus reported lies within 5 points (a value without interval: within 5 %)
differs          that interval excludes 0
cannot be told   neither: there are too few answers to see a difference of 5 points
not comparable   measured at another scale or on a back end without speed: the models or the hardware are not the paper's
not measured     only the paper's number is there

Only the scales `released` and `paper` evaluate the paper's models on its benchmark and can agree or differ; there every
difference is listed. `power_5_points` is the chance, in percent, that a model 5 points above the paper's number is said to
differ from it. Rows of one table that were asked the same problems are compared in pairs.csv (`dice.report.pairs`). The
check reports; it never fails and feeds no table.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from functools import cache
from pathlib import Path
from statistics import fmean

from dice.config import add_options, config_from, stage_config, to_spec
from dice.evaluation.score import Z95, wilson
from dice.jsonl import write_text
from dice.manifest import Stopwatch, write_manifest
from dice.report.pairs import COLUMNS, PairEvidence, compared
from dice.report.rows import NOT_AVAILABLE, Row, interval, metrics_of, percent, read_table, write_csv

COMPARABLE_SCALES = ("released", "paper")
RELEVANT = 0.05
"""Difference of two rates that matters: below it they agree."""


@stage_config
class CheckConfig:
    """What `dice check` compares."""

    tables: tuple[str, ...]
    """CSV files of `dice table`."""
    pairs: tuple[PairEvidence, ...] = ()
    """Rows to compare with each other."""
    out: str
    """CSV to write, one row per cell; a summary goes beside it as .md, and the compared rows as pairs.csv."""


def judge(row: Row, metric: str) -> str:
    """The result for one cell: one of the five that the module lists."""
    measured, reported = row[metric], row[f"{metric}_reported"]
    if row["status"] != "measured" or measured == "":
        return "not measured"
    if measured == NOT_AVAILABLE or row["scale"] not in COMPARABLE_SCALES or not reported:
        return "not comparable"
    ends = interval(row, metric)
    if ends is None:
        return "agrees" if abs(float(measured) - float(reported)) <= 0.05 * abs(float(reported)) else "differs"
    least, most = difference_interval(*(float(value) / 100 for value in (measured, *ends, reported)))
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


@cache
def power(reported: float, answers: int) -> float:
    """The chance, in 0..1, that a model whose true share is `RELEVANT` above `reported` (below, where it would reach 1) is
    said to differ, with so many independent answers: the sum over all that it can get right.
    """
    true = reported + RELEVANT if reported + RELEVANT < 1 else reported - RELEVANT
    chance = 0.0
    for right in range(answers + 1):
        least, most = difference_interval(right / answers, *wilson(right, answers), reported)
        if least > 0 or most < 0:
            ways = math.lgamma(answers + 1) - math.lgamma(right + 1) - math.lgamma(answers - right + 1)
            chance += math.exp(ways + right * math.log(true) + (answers - right) * math.log1p(-true))
    return chance


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
            for metric in metrics_of(row):
                between = "/".join(filter(None, (row.get(f"{metric}_low"), row.get(f"{metric}_high"))))
                cells.append(
                    {"table": Path(path).stem, "row": row["row"], "metric": metric, "measured": row[metric]}
                    | {"interval": between, "reported": row[f"{metric}_reported"], "scale": row["scale"]}
                    | {"result": (result := judge(row, metric)), "power_5_points": _power(row, metric, result)}
                    | {"reason": row.get("reason", "")}
                )
    pairs = [line for pair in config.pairs for line in compared(pair)]
    write_csv(Path(config.out).with_name("pairs.csv"), pairs, COLUMNS)
    write_text(Path(config.out).with_suffix(".md"), summary(cells, pairs))
    write_csv(config.out, cells)
    scores = [score for pair in config.pairs for score in (pair.score, pair.score_against)]
    write_manifest(config.out, stage="check", spec=to_spec(config), watch=watch, inputs=[*config.tables, *scores])
    return cells


def _power(row: Row, metric: str, result: str) -> str:
    """`power` of a cell that was compared by its interval, in percent."""
    ends = interval(row, metric)
    if result not in ("agrees", "differs", "cannot be told") or ends is None:
        return ""
    low, high = (float(end) / 100 for end in ends)
    return percent(power(float(row[f"{metric}_reported"]) / 100, round(answers_behind(low, high))))


def summary(cells: list[Row], pairs: list[Row]) -> str:
    """Counts per table, what could have been seen, every cell that differs, every row that is better or worse."""
    words = ("agrees", "differs", "cannot be told", "not comparable", "not measured")
    lines = ["# Measured against reported", "", f"| table | {' | '.join(words)} |", f"|---|{'---|' * len(words)}"]
    for table in dict.fromkeys(cell["table"] for cell in cells):
        counts = Counter(cell["result"] for cell in cells if cell["table"] == table)
        lines.append(f"| {table} | {' | '.join(str(counts[word]) for word in words)} |")
    if powers := [float(cell["power_5_points"]) for cell in cells if cell["power_5_points"]]:
        seen = f"between {min(powers):.0f} and {max(powers):.0f} % of studies of this size, {fmean(powers):.0f} % on average"
        lines += ["", f"A model 5 points above the paper's number would be said to differ in {seen}."]
    differing = [cell for cell in cells if cell["result"] == "differs"]
    lines += ["", f"## Cells that differ: {len(differing)}", ""]
    lines += [
        f"- {c['table']}, {c['row']}, {c['metric']}: measured {c['measured']} ({c['interval']}), reported {c['reported']}"
        for c in differing
    ]
    told = [pair for pair in pairs if pair["result"] != "cannot be told"]
    lines += ["", f"## Rows compared on the same problems: {len(told)} of {len(pairs)} differences can be told", ""]
    lines += [
        f"- {p['table']}, {p['row']} is {p['result']} than {p['against']}, level {p['level']}, {p['metric']}: "
        f"{p['difference']} points ({p['low']} to {p['high']}), better on {p['better_on']} problems, worse on {p['worse_on']}"
        for p in told
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
