"""`dice explorer`: a static site from every cell to its verdicts, the kernel, its message and its denoising order.

Plain HTML without scripts: index.html (the tables), one page for each model, and one page for each answer. Templates are
in pages/*.html.j2.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from dice.config import add_options, config_from, stage_config, to_spec
from dice.jsonl import atomic_writer, read_objects
from dice.manifest import Stopwatch, write_manifest
from dice.report.tables import Row, label, read_table

PAGES = Path(__file__).parent / "pages"


@stage_config
class ExplorerConfig:
    """What `dice explorer` shows."""

    tables: tuple[str, ...]
    """CSV files of tables."""
    units: dict[str, tuple[int, ...]]
    """Unit with verdicts -> its seeds."""
    results: str
    """Folder with verdicts/ and generations/."""
    out: str
    """Folder to write."""


def _table(path: str) -> dict[str, Any]:
    """What index.html shows of a table."""
    rows = read_table(path)
    metrics = [name.removesuffix("_reported") for name in rows[0] if name.endswith("_reported")]
    return {"name": Path(path).stem, "metrics": metrics, "rows": [_row(row, metrics) for row in rows]}


def _row(row: Row, metrics: list[str]) -> dict[str, Any]:
    unit = Path(row.get("manifest", "")).name.removesuffix(".json.manifest.json")
    return {
        "name": label(row),
        "unit": unit if row["status"] == "measured" else "",
        "cells": [(row[metric], row[f"{metric}_reported"]) for metric in metrics],
        "status": row["status"],
    }


def _answers(config: ExplorerConfig, unit: str, seed: int) -> list[dict[str, Any]]:
    """The verdicts of one seed, each with its answer and its page."""
    name = f"{unit}/seed{seed}.jsonl"
    generations = {
        (row.get("problem_id"), row.get("sample", 0)): row
        for _, row in read_objects(Path(config.results) / "generations" / name)
    }
    answers = []
    for _, verdict in read_objects(Path(config.results) / "verdicts" / name):
        problem, sample = verdict["problem_id"], verdict["sample"]
        generation = generations.get((problem, sample), {})
        answers.append(
            {
                "page": f"{unit}/{seed}-{problem.replace('/', '-')}-{sample}-{verdict['protocol']}.html",
                "title": f"{unit}: {problem}, sample {sample}",
                "seed": seed,
                "verdict": verdict,
                "code": next((generation[key] for key in ("code", "text", "cuda_code") if generation.get(key)), ""),
                "order": generation.get("order") or [],
            }
        )
    return answers


def explore(config: ExplorerConfig) -> int:
    """Write the site; returns its number of pages."""
    watch, out, pages = Stopwatch(), Path(config.out), 0
    templates = Environment(
        loader=FileSystemLoader(PAGES), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )

    def write(name: str, template: str, **values: Any) -> None:
        nonlocal pages
        with atomic_writer(out / name) as stream:
            stream.write(templates.get_template(template).render(values))
        pages += 1

    for unit, seeds in config.units.items():
        answers = [answer for seed in seeds for answer in _answers(config, unit, seed)]
        for answer in answers:
            write(answer["page"], "answer.html.j2", **answer)
        write(f"{unit}.html", "unit.html.j2", title=unit, answers=answers)
    write("index.html", "index.html.j2", title="DICE, reproduced", tables=[_table(path) for path in config.tables])
    tables: list[str | Path] = list(config.tables)
    write_manifest(out / "index.html", stage="explorer", spec=to_spec(config), watch=watch, inputs=tables)
    return pages


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `dice explorer`."""
    add_options(parser, ExplorerConfig)


def run(args: argparse.Namespace) -> int:
    """Entry point of `dice explorer`."""
    config = config_from(args, ExplorerConfig)
    print(f"{explore(config)} pages written to {config.out}")
    return 0
