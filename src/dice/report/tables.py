"""`dice table`: one table of the paper as CSV and LaTeX, measured beside reported.

The CSV has the row's name and the paper's own columns that describe it (for those in `numbers`, such as the size of a data
set, what holds here and the paper's as `*_reported`), what was measured (`measured_model`, `measured_params`,
`measured_on`: the benchmark), then for every metric its measured value in percent, the ends of its 95 % interval, the
paper's value (`*_reported`) and measured minus reported (`*_difference`), then `status` (`measured`; `reported`: only the
paper's number; `withdrawn`: likewise, and the model can no longer be called), `reason`, `scale`, `n`, `seeds`,
`seed_spread` (standard deviation of Exec over seeds in points), `backend`, `protocol` and `manifest`. A cell that was not
measured is empty; one that cannot be measured (speed on the CPU back end) is `n/a`. The paper's numbers stand beside what
was measured on its benchmark, and in rows that were not measured.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from dice.config import add_options, config_from, stage_config, to_spec
from dice.data.kernelbench import PAPER_VERSION
from dice.data.pair import rows_with_lines
from dice.errors import DiceError
from dice.evaluation.score import Score, read_score
from dice.jsonl import read_objects, write_text
from dice.manifest import Stopwatch, manifest_path, write_manifest
from dice.report.latex import table_tex
from dice.report.rows import (
    NOT_AVAILABLE,
    Row,
    interval,
    label,
    level_metric,
    metrics_of,
    percent,
    rate_cells,
    read_csv,
    read_table,
    write_csv,
)


@stage_config
class MeasuredModel:
    """What a row was measured with: printed wherever its numbers are."""

    model: str = ""
    """The model: a unit, marked where it only stands in for the paper's model; a repository of the hub."""
    params: str = ""
    """Its parameters, such as `2.9M`."""


@stage_config
class RowEvidence:
    """What a row is measured with."""

    row: str
    """Name of the row."""
    measured: MeasuredModel = MeasuredModel()
    """The model behind the score."""
    score: str | None = None
    """score.json; None: the row stays `reported`."""
    reason: str = ""
    """Why there is no score."""
    withdrawn: bool = False
    """There is no score because the model is gone."""
    added: bool = False
    """The paper has no such row."""
    robust: bool = True
    """With the robust check."""
    paper: str | None = None
    """The paper's row that stands beside it, by name; None: the one of the same name."""
    sizes: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Column that says how much data was used -> the files whose rows are counted."""
    settings: dict[str, int] = Field(default_factory=dict)
    """Column that says how the answers were made -> its value here."""


@stage_config
class CostEvidence:
    """A training stage whose cost is counted."""

    stage: str
    """The paper's name of the stage."""
    manifest: str | None = None
    """Manifest of the run; None: it was not run here."""
    history: str | None = None
    """history.jsonl of the run; None: its hours are those of the manifest, of the last process alone."""
    measured: MeasuredModel = MeasuredModel()
    """The model that was trained."""


@stage_config
class TableConfig:
    """What `dice table` reads and writes."""

    number: int
    """Number in the paper."""
    title: str
    """Caption."""
    kind: Literal["suite", "cost", "histogram"] = "suite"
    """Where its numbers come from."""
    reported: str
    """The paper's table as CSV."""
    rows: tuple[RowEvidence, ...] = ()
    """Rows of a suite table, in their order."""
    numbers: tuple[str, ...] = ()
    """Columns that describe a row by a number, which differs where other data or settings were used."""
    stages: tuple[CostEvidence, ...] = ()
    """Rows of a cost table."""
    speedups: str | None = None
    """Report of `dice curate` for a histogram."""
    reason: str = ""
    """Why a histogram was not measured."""
    scale: str
    """Name of the scale."""
    benchmark: str
    """Version of the benchmark that rows are measured on."""
    out: str
    """CSV to write; the LaTeX goes beside it as .tex."""

    @property
    def comparable(self) -> bool:
        """Whether the benchmark is the paper's, so that its numbers may stand beside measured ones."""
        return self.benchmark == PAPER_VERSION


def _model_cells(measured: MeasuredModel | None, benchmark: str) -> Row:
    """The cells `measured_*`: the model, its parameters and the benchmark; empty for None."""
    model, params, on = (measured.model, measured.params, benchmark) if measured else ("", "", "")
    return {"measured_model": model, "measured_params": params, "measured_on": on}


def _difference(measured: str, reported: str) -> str:
    if measured in ("", NOT_AVAILABLE) or reported in ("", NOT_AVAILABLE):
        return ""
    return f"{float(measured) - float(reported):+.1f}"


def by_name(rows: Sequence[Row], column: str, wanted: Sequence[str], path: str) -> dict[str, Row]:
    """The paper's rows by the name in `column`. Raises DiceError where these are not exactly the `wanted` names."""
    found = {row.get(column, ""): row for row in rows}
    if len(found) < len(rows):
        names = [row.get(column, "") for row in rows]
        twice = next(name for name in names if names.count(name) > 1)
        raise DiceError(f"{path}: two rows have '{twice}' as {column}.")
    if missing := [name for name in wanted if name not in found]:
        raise DiceError(f"{path}: no row has '{missing[0]}' as {column}; correct its name in experiments/tables.yaml.")
    if left := [name for name in found if name not in wanted]:
        raise DiceError(f"{path}: the table leaves out the paper's row '{left[0]}'; add it to experiments/tables.yaml.")
    return found


def suite_rows(config: TableConfig, reported: list[Row]) -> list[Row]:
    """Rows of a table of scores, each beside the paper's row of its name."""
    papers = by_name(reported, "row", [row.paper or row.row for row in config.rows if not row.added], config.reported)
    nothing = dict.fromkeys(reported[0], "")
    papers |= {row.row: nothing for row in config.rows if row.added}
    rows: list[Row] = []
    for evidence in config.rows:
        paper = papers[evidence.paper or evidence.row]
        metrics = {name: found for name in paper if (found := level_metric(name))}
        score = read_score(evidence.score) if evidence.score else None
        described = [name for name in paper if name not in (*metrics, *config.numbers)]
        row: Row = {name: paper[name] for name in described} | {"row": evidence.row}
        row |= _model_cells(evidence.measured if score else None, config.benchmark)
        beside = paper if config.comparable or not score else nothing
        for name in config.numbers:
            row |= {name: _number_here(evidence, name) if score else "", f"{name}_reported": beside[name]}
        for name, (number, metric) in metrics.items():
            level = score.level(number, evidence.robust) if score else None
            row |= rate_cells(name, level.metrics.get(metric) if level else None, NOT_AVAILABLE if score else "")
            row |= {f"{name}_reported": beside[name], f"{name}_difference": _difference(row[name], beside[name])}
        rows.append(row | _last_cells(evidence, score, config.scale))
    return rows


def _number_here(evidence: RowEvidence, name: str) -> str:
    """A measured row's value in a column of `numbers`: rows of its data, or a setting of its answers; empty: unknown."""
    if name in evidence.settings:
        return str(evidence.settings[name])
    files = evidence.sizes.get(name)
    return str(sum(1 for path in files for _ in rows_with_lines(path))) if files else ""


def _last_cells(evidence: RowEvidence, score: Score | None, scale: str) -> Row:
    """From `status` to `manifest`."""
    if score is None or evidence.score is None:
        empty = dict.fromkeys(("n", "seeds", "seed_spread", "backend", "protocol", "manifest"), "")
        status = "withdrawn" if evidence.withdrawn else "reported"
        return {"status": status, "reason": evidence.reason, "scale": scale, **empty}
    rates = [rate for level in score.levels if level.robust == evidence.robust and (rate := level.metrics["exec"])]
    spread = ""
    if score.seeds > 1:
        by_seed = [statistics.fmean(rate.by_seed[k] for rate in rates) for k in range(score.seeds)]
        spread = f"{100 * statistics.stdev(by_seed):.2f}"
    return {
        "status": "measured",
        "reason": "",
        "scale": scale,
        "n": "/".join(str(rate.n) for rate in rates),
        "seeds": str(score.seeds),
        "seed_spread": spread,
        "backend": score.backend,
        "protocol": score.protocol,
        "manifest": str(manifest_path(evidence.score)),
    }


def cost_rows(config: TableConfig, reported: list[Row]) -> list[Row]:
    """Table 9: GPU-hours of training; on a CPU the unit is CPU-hours, and nothing compares.

    They are the seconds of the run's steps, whichever process took them: a run that was ended and resumed costs both parts.
    Start and checkpoints are left out.
    """
    stages = {stage.stage: stage for stage in config.stages}
    by_name(reported, "stage", list(stages), config.reported)
    rows = []
    for paper in reported:
        stage = stages[paper["stage"]]
        path, model = stage.manifest, stage.measured
        theirs = paper["a100_gpu_hours"] if config.comparable or path is None else ""
        row: Row = {"row": paper["stage"], "stage": paper["stage"], "gpu_hours": "", "cpu_hours": "", "device": ""}
        row |= _model_cells(model if path else None, "") | {"gpu_hours_reported": theirs, "gpu_hours_difference": ""}
        status, seeds = "reported", ""
        if path is not None:
            manifest = json.loads(Path(path).read_text(encoding="utf-8"))
            gpus = manifest["gpus"]
            steps = read_objects(stage.history) if stage.history else None
            hours = (sum(step["seconds"] for _, step in steps) if steps is not None else manifest["wall_s"]) / 3600
            row["device"] = gpus[0]["name"] if gpus else manifest["cpu"]
            row["gpu_hours" if gpus else "cpu_hours"] = f"{hours * max(1, len(gpus)):.4f}"
            if not gpus:
                row["gpu_hours"] = NOT_AVAILABLE
            elif theirs:
                row["gpu_hours_difference"] = f"{hours * len(gpus) - float(theirs):+.4f}"
            status, seeds = "measured", "1"
        rows.append(
            row
            | {"status": status, "reason": "" if path else f"not part of the scale {config.scale}"}
            | {"scale": config.scale, "n": "", "seeds": seeds, "manifest": path or ""}
        )
    return rows


def histogram_rows(config: TableConfig, reported: list[Row]) -> list[Row]:
    """Table 12: share of a source's rows in every range of speed-up, from the report of `dice curate`.

    Rows without a correct program count in the lowest range, as in the published numbers.
    """
    shares: dict[str, float] = {}
    n = 0
    if config.speedups is not None:
        by_source = json.loads(Path(config.speedups).read_text(encoding="utf-8"))["speedups"]
        bins = by_source.get("cudallm") or by_source.get("pairs") or []
        shares = {one["range"]: one["percent_of_rows"] / 100 for one in bins}
        n = sum(one["n"] for one in bins)
    papers = by_name(
        reported, "speedup_range", list(shares) or [row["speedup_range"] for row in reported], config.reported
    )
    rows = []
    for name, paper in papers.items():
        share = shares.get(name)
        measured = "" if share is None else percent(share)
        rows.append(
            {"row": name, "speedup_range": name, "percent": measured}
            | {"percent_reported": paper["percent"], "percent_difference": _difference(measured, paper["percent"])}
            | {"status": "reported" if share is None else "measured", "reason": config.reason if share is None else ""}
            | {"scale": config.scale, "n": str(n or ""), "seeds": "", "manifest": config.speedups or ""}
        )
    return rows


def make_table(config: TableConfig) -> list[Row]:
    """Run the stage: CSV, LaTeX, manifest."""
    watch = Stopwatch()
    reported = read_csv(config.reported)
    make = {"suite": suite_rows, "cost": cost_rows, "histogram": histogram_rows}[config.kind]
    rows = make(config, reported)
    tex = Path(config.out).with_suffix(".tex")
    write_text(tex, table_tex(config.number, config.title, [row | {"row": label(row)} for row in rows]))
    write_csv(config.out, rows)
    inputs = [config.reported, *(row.score for row in config.rows), *(stage.manifest for stage in config.stages)]
    inputs += [stage.history for stage in config.stages]
    inputs += [path for row in config.rows for files in row.sizes.values() for path in files] + [config.speedups]
    write_manifest(config.out, stage="table", spec=to_spec(config), watch=watch, inputs=filter(None, inputs))
    return rows


def print_table(rows: list[Row]) -> None:
    """The table for a terminal: value and interval where measured, the paper's number in brackets where there is one."""
    metrics = metrics_of(rows[0])
    header = ["row", *metrics, "status"]
    lines = [header]
    for row in rows:
        cells = []
        for name in metrics:
            ends = interval(row, name)
            ours = f"{row[name]} {ends[0]}-{ends[1]}" if ends else row[name]
            theirs = f"[{reported}]" if (reported := row[f"{name}_reported"]) else ""
            cells.append(" ".join(filter(None, (ours, theirs))))
        lines.append([label(row), *cells, row["status"]])
    widths = [max(len(line[k]) for line in lines) for k in range(len(header))]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `dice table`."""
    add_options(parser, TableConfig)
    parser.add_argument("--show", metavar="CSV", help="print a table that was written, and do nothing else")


def run(args: argparse.Namespace) -> int:
    """Entry point of `dice table`."""
    if args.show:
        print_table(read_table(args.show))
        print("\nmeasured, 95 % interval, [the paper's number, on KernelBench]; n/a: not measured.")
        return 0
    config = config_from(args, TableConfig)
    rows = make_table(config)
    measured = sum(row["status"] == "measured" for row in rows)
    print(f"table {config.number}: {len(rows)} rows, {measured} measured, written to {config.out}")
    return 0
