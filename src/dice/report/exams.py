"""`dice exams`: the scores of each model in each benchmark, a row for each level: Exec and pass@k in percent, with intervals.

The CSV has `unit`, `measured_model`, `measured_params`, `measured_on` (the benchmark), `level`, `n` (answers), `problems`,
then Exec and pass@1, pass@8, pass@64 with the ends of their 95 % intervals, `scale`, `backend`, `protocol` and `manifest`.
A pass@k for which a benchmark has too few answers is empty. All scores are with the robust check.
"""

from __future__ import annotations

import argparse

from pydantic import Field

from dice.config import add_options, config_from, stage_config, to_spec
from dice.evaluation.score import PASS_AT, read_score
from dice.manifest import Stopwatch, manifest_path, write_manifest
from dice.report.rows import Row, rate_cells, read_csv, write_csv
from dice.report.tables import MeasuredModel


@stage_config
class ExamScore:
    """One model in one benchmark."""

    unit: str
    """The model."""
    measured: MeasuredModel = MeasuredModel()
    """What it is."""
    benchmark: str
    """Version of the benchmark."""
    score: str
    """score.json of its answers."""


@stage_config
class ExamsConfig:
    """What `dice exams` reads and writes."""

    rows: tuple[ExamScore, ...] = Field(min_length=1)
    """Models and benchmarks, in their order."""
    scale: str
    """Name of the scale."""
    out: str
    """CSV to write."""


def exam_rows(config: ExamsConfig) -> list[Row]:
    """A row for each model, benchmark and level."""
    rows: list[Row] = []
    for one in config.rows:
        score = read_score(one.score)
        for level in (level for level in score.levels if level.robust):
            executed = level.metrics["exec"]
            assert executed is not None  # only speed may not be measured
            row: Row = {"unit": one.unit, "measured_model": one.measured.model, "measured_params": one.measured.params}
            row |= {"measured_on": one.benchmark, "level": str(level.level), "n": str(executed.n)}
            row |= {"problems": str(len(executed.by_problem))} | rate_cells("exec", executed)
            for k in PASS_AT:
                row |= rate_cells(f"pass_at_{k}", level.pass_at.get(k))
            row |= {"scale": config.scale, "backend": score.backend, "protocol": score.protocol}
            rows.append(row | {"manifest": str(manifest_path(one.score))})
    return rows


def exams(config: ExamsConfig) -> list[Row]:
    """Run the stage: CSV and manifest."""
    watch = Stopwatch()
    rows = exam_rows(config)
    write_csv(config.out, rows)
    scores = [one.score for one in config.rows]
    write_manifest(config.out, stage="exams", spec=to_spec(config), watch=watch, inputs=scores)
    return rows


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `dice exams`."""
    add_options(parser, ExamsConfig, "out")
    parser.add_argument("--show", metavar="CSV", help="print one that was written, and do nothing else")


def run(args: argparse.Namespace) -> int:
    """Entry point of `dice exams`."""
    for row in read_csv(args.show) if args.show else exams(config_from(args, ExamsConfig)):
        passed = "".join(f", pass@{k} {row[f'pass_at_{k}']}" for k in PASS_AT[1:] if row[f"pass_at_{k}"])
        print(
            f"{row['unit']} on {row['measured_on']}, level {row['level']}: Exec {row['exec']} "
            f"({row['exec_low']} to {row['exec_high']}) of {row['n']}{passed}"
        )
    return 0
