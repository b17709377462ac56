"""`dice explorer`: a static site from every cell to its verdicts, the kernel, its message and its denoising order.

Plain HTML without scripts: index.html (the tables), one page for each model, and one page for each answer.
"""

from __future__ import annotations

import argparse
import html
from pathlib import Path
from typing import Any

from dice.config import add_options, config_from, stage_config, to_spec
from dice.jsonl import atomic_writer, read_objects
from dice.manifest import Stopwatch, write_manifest
from dice.report.tables import read_table

CSS = """body{font:14px/1.45 Georgia,serif;max-width:72em;margin:2em auto;padding:0 1em;color:#222}
table{border-collapse:collapse;font-size:13px}td,th{padding:.2em .7em;text-align:right;border-bottom:1px solid #ddd}
td:first-child,th:first-child{text-align:left}.reported{color:#888}.correct{color:#1b6b3a}pre{background:#f6f6f4;
padding:1em;overflow:auto;font-size:12px}.step{padding:0 1px;border-radius:2px}"""


@stage_config
class ExplorerConfig:
    """What `dice explorer` shows."""

    tables: tuple[str, ...]
    """CSV files of tables."""
    units: tuple[str, ...]
    """Units with verdicts."""
    results: str
    """Folder with verdicts/ and generations/."""
    seeds: tuple[int, ...] = (0,)
    """Seeds of every unit."""
    out: str
    """Folder to write."""


def _page(title: str, body: str) -> str:
    head = f"<!doctype html><meta charset=utf-8><title>{html.escape(title)}</title><style>{CSS}</style>"
    return f"{head}<h1>{html.escape(title)}</h1>{body}\n"


def _table_html(path: str) -> str:
    rows = read_table(path)
    metrics = [name.removesuffix("_reported") for name in rows[0] if name.endswith("_reported")]
    lines = [f"<h2>{html.escape(Path(path).stem)}</h2><table><tr><th>row"]
    lines += [f"<th>{html.escape(metric)}" for metric in metrics] + ["<th>status"]
    for row in rows:
        unit = Path(row.get("manifest", "")).name.removesuffix(".json.manifest.json")
        link = f"<a href='{unit}.html'>{html.escape(row['row'])}</a>" if row["status"] == "measured" else row["row"]
        lines.append(f"<tr><td>{link}")
        for metric in metrics:
            grey = f"<span class=reported>[{row[f'{metric}_reported']}]</span>"
            lines.append(f"<td>{html.escape(row[metric])} {grey}")
        lines.append(f"<td>{row['status']}")
    return "".join(lines) + "</table>"


def _answer_html(verdict: dict[str, Any], generation: dict[str, Any]) -> str:
    parts = [f"<p>status <b>{verdict['status']}</b>, before the deception check {verdict['functional_status']}"]
    parts.append(f"<p>{html.escape(verdict['message'])}")
    for finding in verdict["deception"]:
        parts.append(f"<p>{html.escape(finding['name'])}: {html.escape(finding['evidence'])}")
    if verdict.get("speedup"):
        parts.append(f"<p>speed-up {verdict['speedup']['median']:.3f}")
    code = generation.get("code") or generation.get("text") or generation.get("cuda_code") or ""
    parts.append(f"<h2>answer</h2><pre>{html.escape(code)}</pre>")
    order = generation.get("order") or []
    if order:
        last = max(order)
        marks = "".join(
            f"<span class=step style='background:hsl(205 60% {95 - 55 * step / last:.0f}%)'>{step}</span> "
            for step in order[:2000]
        )
        parts.append(f"<h2>denoising order</h2><p>the forward in which each token was fixed</p><p>{marks}</p>")
    return "".join(parts)


def explore(config: ExplorerConfig) -> int:
    """Write the site; returns its number of pages."""
    watch, out, pages = Stopwatch(), Path(config.out), 0

    def write(name: str, text: str) -> None:
        nonlocal pages
        with atomic_writer(out / name) as stream:
            stream.write(text)
        pages += 1

    for unit in config.units:
        lines = ["<table><tr><th>problem<th>seed<th>sample<th>protocol<th>status<th>speed-up"]
        seeds = [0] if unit.startswith("supplied-") else config.seeds
        for seed in seeds:
            name = f"{unit}/seed{seed}.jsonl"
            generations = {
                (row.get("problem_id"), row.get("sample", 0)): row
                for _, row in read_objects(Path(config.results) / "generations" / name)
            }
            for _, verdict in read_objects(Path(config.results) / "verdicts" / name):
                page = (
                    f"{unit}/{seed}-{verdict['problem_id'].replace('/', '-')}-{verdict['sample']}-{verdict['protocol']}"
                )
                answer = generations.get((verdict["problem_id"], verdict["sample"]), {})
                title = f"{unit}: {verdict['problem_id']}, sample {verdict['sample']}"
                write(f"{page}.html", _page(title, _answer_html(verdict, answer)))
                speedup = f"{verdict['speedup']['median']:.2f}" if verdict.get("speedup") else ""
                lines.append(
                    f"<tr><td><a href='{page}.html'>{verdict['problem_id']}</a><td>{seed}<td>{verdict['sample']}"
                    f"<td>{verdict['protocol']}<td class={verdict['status']}>{verdict['status']}<td>{speedup}"
                )
        write(f"{unit}.html", _page(unit, "".join(lines) + "</table>"))
    write("index.html", _page("DICE, reproduced", "".join(_table_html(path) for path in config.tables)))
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
