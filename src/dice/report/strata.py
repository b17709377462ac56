"""`dice strata`: Exec of a table's rows by how new the exam problems are to the models.

Two CSV files. `out`: row, stratum, level (or `all`), problems, Exec in percent and its 95 % Wilson interval over problems.
`<out>.problems.csv`: the stratum of each problem, its operators, and those that are in no training program. The operators
of the training data, and of the problems that it was compared with, stand in its reports of leaks (`*.leaks.json`).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from dice.config import add_options, config_from, stage_config, to_spec
from dice.data.leakage.report import LeakReport, read_report
from dice.data.leakage.strata import STRATA, Placed, place, traced_anew
from dice.errors import DiceError
from dice.evaluation.score import Score, read_score, wilson
from dice.jsonl import read_jsonl
from dice.kernels.api import Problem
from dice.manifest import Stopwatch, sha256_text, write_manifest
from dice.report.rows import Row, percent, with_ends, write_csv


@stage_config
class ScoredRow:
    """A row of the table."""

    row: str
    """Its name."""
    score: str
    """Its score.json."""
    robust: bool = True
    """With the robust check."""


@stage_config
class StrataConfig:
    """Settings of `dice strata`."""

    problems: str
    """JSON lines of the exam's problems."""
    leaks: tuple[str, ...]
    """Reports of leaks of the data that the rows were trained on."""
    rows: tuple[ScoredRow, ...] = ()
    """Rows of the table that were measured."""
    out: str
    """CSV to write; the problems' CSV goes beside it."""


def exec_by_stratum(name: str, score: Score, robust: bool, placed: Mapping[str, Placed]) -> Iterator[Row]:
    """The rows of one model: each stratum over all levels, then by level. Raises DiceError for an unknown problem."""
    shares: dict[tuple[str, str], list[float]] = {}
    for level in score.levels:
        counted = level.metrics["exec"]
        if level.robust != robust or counted is None:
            continue
        for problem, share in counted.by_problem.items():
            if problem not in placed:
                raise DiceError(f"strata: {name} was scored on '{problem}', which is not among the problems.")
            for part in ("all", str(level.level)):
                shares.setdefault((placed[problem].stratum, part), []).append(share)
    parts = ["all", *sorted({part for _, part in shares} - {"all"})]
    for stratum in STRATA:
        for part in parts:
            found = shares.get((stratum, part))
            if found:
                ends = (sum(found) / len(found), *wilson(sum(found), len(found)))
                row = {"row": name, "stratum": stratum, "level": part, "problems": str(len(found))}
                yield row | dict(zip(with_ends("exec"), map(percent, ends), strict=True))


def placed_by(problems: Iterable[Problem], reports: Sequence[LeakReport]) -> dict[str, Placed]:
    """Each problem by its id, for models that were trained on the data of the reports."""
    trained = {name for report in reports for name in report.counts.operators}
    known = {digest: applied for report in reports for digest, applied in report.applied.items()}

    def placed(code: str) -> Placed:
        digest = sha256_text(code)
        return place(known[digest] if digest in known else traced_anew(code), trained)

    return {problem.id: placed(problem.code) for problem in problems}


def make_strata(config: StrataConfig) -> list[Row]:
    """Write both files and the manifest; returns the rows of the first. Raises DiceError."""
    watch = Stopwatch()
    placed = placed_by(read_jsonl(config.problems, Problem), [read_report(path) for path in config.leaks])
    found = [
        row
        for scored in config.rows
        for row in exec_by_stratum(scored.row, read_score(scored.score), scored.robust, placed)
    ]
    write_csv(config.out, found, ("row", "stratum", "level", "problems", *with_ends("exec")))
    problems = [
        {
            "problem": name,
            "stratum": one.stratum,
            "operators": " ".join(one.operators),
            "untrained": " ".join(one.untrained),
        }
        for name, one in placed.items()
    ]
    write_csv(problems_path(config.out), problems, ("problem", "stratum", "operators", "untrained"))
    inputs = [config.problems, *config.leaks, *(scored.score for scored in config.rows)]
    write_manifest(config.out, stage="strata", spec=to_spec(config), watch=watch, inputs=inputs)
    return found


def problems_path(out: str) -> str:
    """Where the problems' strata lie."""
    return str(Path(out).with_suffix(".problems.csv"))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `dice strata`."""
    add_options(parser, StrataConfig, "problems", "leaks", "out")


def run(args: argparse.Namespace) -> int:
    """Entry point of `dice strata`."""
    for row in make_strata(config_from(args, StrataConfig)):
        if row["level"] == "all":
            print(f"{row['row']:24s} {row['stratum']:24s} {row['exec']:>5s} % of {row['problems']} problems")
    return 0
