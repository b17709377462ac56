"""`dice explorer`: a static site from every cell of the tables to the answers behind it.

    dice explorer --results results --out results/explorer

index.html has the tables with their intervals; compare.html sets rows beside each other, problem by problem; a model has a
page of its verdicts, and each of its problems one with the problem beside the answers, their verdicts, and their tokens in
the order in which they were fixed. The pages work from the disk: one style sheet, one script, no network. Templates, script
and style are in pages/.
"""

from __future__ import annotations

import argparse
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from pydantic import Field

from dice.config import add_options, config_from, stage_config, to_spec
from dice.errors import DiceError
from dice.evaluation.score import Score, read_score
from dice.jsonl import read_jsonl, read_objects, write_text
from dice.kernels.api import Problem, read_candidates
from dice.manifest import MANIFEST_SUFFIX, Stopwatch, write_manifest
from dice.report.highlight import STYLE, highlighted
from dice.report.pairs import PairEvidence, compared
from dice.report.rows import Row, interval, label, level_metric, metrics_of, read_table
from dice.study.units import asked

PAGES = Path(__file__).parent / "pages"


@stage_config
class ExplorerConfig:
    """What `dice explorer` shows."""

    results: str
    """Folder with verdicts/, generations/ and scores/."""
    tables: tuple[str, ...] = ()
    """CSV files of tables; none: all in `results`."""
    units: dict[str, tuple[int, ...]] = Field(default_factory=dict)
    """Unit with verdicts -> its seeds; none: all that have verdicts in `results`."""
    problems: str | None = None
    """problems.jsonl of the benchmark; None: the one in `results`. An exam's lie below data/exams/ in `results`."""
    out: str
    """Folder to write."""


def problem_page(unit: str, problem: str) -> str:
    """Path of the page about a unit's answers to a problem."""
    return f"{unit}/{problem.replace('/', '-')}.html"


def shown_table(path: str) -> dict[str, Any]:
    """What index.html shows of a table."""
    rows = read_table(path)
    metrics = metrics_of(rows[0])
    return {"name": Path(path).stem, "metrics": metrics, "rows": [_row(row, metrics) for row in rows]}


def _row(row: Row, metrics: list[str]) -> dict[str, Any]:
    cells = []
    for metric in metrics:
        between = "–".join(interval(row, metric) or ())
        level = found[0] if (found := level_metric(metric)) else ""
        reported = row[f"{metric}_reported"]
        cells.append({"value": row[metric], "interval": between, "reported": reported, "level": level})
    unit = unit_of(row)
    return {"name": label(row), "unit": unit, "cells": cells, "status": row["status"], "reason": row.get("reason", "")}


def unit_of(row: Row) -> str:
    """The unit whose score a row shows; empty for none."""
    name, suffix = Path(row.get("manifest", "")).name, f".json{MANIFEST_SUFFIX}"
    return name.removesuffix(suffix) if name.endswith(suffix) and row["status"] == "measured" else ""


def answers_of_seed(results: Path, unit: str, seed: int) -> list[dict[str, Any]]:
    """The verdicts of one seed, each with its answer."""
    name = f"{unit}/seed{seed}.jsonl"
    generations = {
        (row.get("problem_id"), row.get("sample", 0)): row for _, row in read_objects(results / "generations" / name)
    }
    codes = {(one.problem_id, one.sample): one.code for one in read_candidates(results / "generations" / name)}
    answers = []
    for _, verdict in read_objects(results / "verdicts" / name):
        problem, sample = verdict["problem_id"], verdict["sample"]
        row = generations.get((problem, sample), {})
        short = problem.partition("_")[0]  # published solutions name `level1/19_ReLU` by its number alone
        code = codes.get((problem, sample)) or codes.get((short, sample)) or row.get("text") or ""
        tokens = {name: row.get(name) or [] for name in ("order", "ends")} | {"text": row.get("text") or ""}
        answers.append({"seed": seed, "verdict": verdict, "code": code, "tokens": tokens})
    return answers


def by_problem(answers: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Problem -> its answers, equal ones once: each with the places (seed, sample) where it was given."""
    found: dict[str, dict[tuple[str, str, str], dict[str, Any]]] = {}
    for answer in answers:
        verdict = answer["verdict"]
        key = (answer["tokens"]["text"] or answer["code"], verdict["protocol"], verdict["status"])
        same = found.setdefault(verdict["problem_id"], {}).setdefault(key, answer | {"places": []})
        same["places"].append(f"seed {answer['seed']}, sample {verdict['sample']}")
    return {problem: list(distinct.values()) for problem, distinct in found.items()}


def outcomes(answers: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Problem -> share of its answers that are correct, and the status that most of them have."""
    statuses: dict[str, list[str]] = {}
    for answer in answers:
        statuses.setdefault(answer["verdict"]["problem_id"], []).append(answer["verdict"]["status"])
    return {
        problem: {"share": found.count("correct") / len(found), "status": Counter(found).most_common(1)[0][0]}
        for problem, found in statuses.items()
    }


def pair_lines(results: Path, units: Sequence[str]) -> list[Row]:
    """Exec of every two units that were asked the same problems, by level: the difference with its paired interval."""
    scores = {unit: results / "scores" / f"{unit}.json" for unit in units}
    scored = [unit for unit, path in scores.items() if path.is_file()]
    lines = []
    for one, other in itertools.combinations(scored, 2):
        first, second = read_score(scores[one]), read_score(scores[other])
        if (first.protocol, _asked(first)) == (second.protocol, _asked(second)):
            evidence = PairEvidence(
                table="", row=one, against=other, score=str(scores[one]), score_against=str(scores[other])
            )
            lines += [line for line in compared(evidence) if line["metric"] == "exec"]
    return lines


def _asked(score: Score) -> dict[int, set[str]]:
    """Level -> the problems that were asked."""
    rates = {level.level: level.metrics["exec"] for level in score.levels}
    return {level: set(rate.by_problem) for level, rate in rates.items() if rate is not None}


def found_units(results: Path) -> dict[str, tuple[int, ...]]:
    """Units with verdicts in a results folder, and their seeds."""
    seeds: dict[str, list[int]] = {}
    for path in sorted((results / "verdicts").glob("*/seed*.jsonl")):
        if match := re.fullmatch(r"seed(\d+)\.jsonl", path.name):
            seeds.setdefault(path.parent.name, []).append(int(match[1]))
    return {unit: tuple(sorted(found)) for unit, found in seeds.items()}


def labels(tables: Iterable[str]) -> dict[str, str]:
    """Unit -> the name of the first row that shows it."""
    found: dict[str, str] = {}
    for path in tables:
        for row in read_table(path):
            if unit := unit_of(row):
                found.setdefault(unit, label(row))
    return found


def _problems_path(results: Path, unit: str) -> str | None:
    """The problems of the exam that the unit was asked; None for the benchmark."""
    exam = asked(unit)[1]
    return None if exam is None else str(results / "data" / "exams" / exam / "problems.jsonl")


def explore(config: ExplorerConfig) -> int:
    """Write the site; returns its number of pages. Raises DiceError where there is no verdict."""
    watch, out, results = Stopwatch(), Path(config.out), Path(config.results)
    tables = list(config.tables) or sorted(str(path) for path in results.glob("table*[0-9].csv"))
    units = dict(config.units) or found_units(results)
    if not units:
        raise DiceError(f"{results}: no verdicts/<unit>/seed<k>.jsonl, so there is nothing to show.")
    suite = config.problems or str(results / "data" / "problems.jsonl")
    paths = {unit: _problems_path(results, unit) or suite for unit in units}
    problems = {
        path: {problem.id: problem for problem in read_jsonl(path, Problem)}
        for path in dict.fromkeys([suite, *paths.values()])
    }
    site = _Site(out)
    names, seen = labels(tables), {}
    for unit, seeds in units.items():
        answers = [answer for seed in seeds for answer in answers_of_seed(results, unit, seed)]
        seen[unit] = outcomes(answers)
        site.unit(unit, names.get(unit, unit), answers, problems[paths[unit]])
    facts = {"units": {unit: names.get(unit, unit) for unit in units}, "root": ""}
    site.write(
        "index.html", "index.html.j2", title="DICE, reproduced", tables=[shown_table(t) for t in tables], **facts
    )
    listed = dict.fromkeys(itertools.chain.from_iterable(problems.values()))
    ids = [problem for problem in listed if any(problem in found for found in seen.values())]
    pairs = pair_lines(results, list(units))
    site.write("compare.html", "compare.html.j2", title="Rows compared", ids=ids, seen=seen, pairs=pairs, **facts)
    for name in ("explorer.js", "explorer.css"):
        style = f"\n{STYLE}\n" if name.endswith("css") else ""
        write_text(out / name, (PAGES / name).read_text(encoding="utf-8") + style)
    read = [*tables, *problems]
    write_manifest(out / "index.html", stage="explorer", spec=to_spec(config), watch=watch, inputs=read)
    return site.pages


class _Site:
    """The folder that is written."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.pages = 0
        self.templates = Environment(
            loader=FileSystemLoader(PAGES),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self.templates.globals |= {"highlighted": highlighted, "problem_page": problem_page}

    def write(self, name: str, template: str, **values: Any) -> None:
        """One page."""
        write_text(self.out / name, self.templates.get_template(template).render(values))
        self.pages += 1

    def unit(self, unit: str, name: str, answers: list[dict[str, Any]], problems: Mapping[str, Problem]) -> None:
        """The page of a unit, and one for each problem that it answered."""
        grouped = by_problem(answers)
        ids = list(grouped)
        for place, problem in enumerate(ids):
            self.write(
                problem_page(unit, problem),
                "problem.html.j2",
                title=f"{problem}: {name}",
                root="../",
                unit=unit,
                problem=problem,
                reference=problems[problem].code if problem in problems else "",
                answers=grouped[problem],
                before=ids[place - 1] if place else "",
                after=ids[place + 1] if place + 1 < len(ids) else "",
            )
        levels = {problem: problems[problem].level if problem in problems else 0 for problem in ids}
        counts = Counter(answer["verdict"]["status"] for answer in answers).most_common()
        self.write(
            f"{unit}.html",
            "unit.html.j2",
            title=name,
            root="",
            unit=unit,
            answers=answers,
            levels=levels,
            counts=counts,
        )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `dice explorer`."""
    add_options(parser, ExplorerConfig, "results", "tables", "problems", "out")


def run(args: argparse.Namespace) -> int:
    """Entry point of `dice explorer`."""
    config = config_from(args, ExplorerConfig)
    print(f"{explore(config)} pages written to {config.out}")
    return 0
