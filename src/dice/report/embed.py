"""`dice embed`: tables of recorded studies, written into Markdown pages.

    dice embed README.md docs/measurements/small-models.md
    dice embed --check README.md docs/measurements/small-models.md

The text between `<!-- recorded: results/recorded/tiny/table1.csv -->` and `<!-- end of recorded -->` is made from that CSV:
from a table of models the measured rows with their intervals, from exams the scores of each model, from any other CSV all of
it. With `--check` nothing is written, and the exit code is 1 where a page says something else. A place whose CSV is not
recorded yet keeps its text, and the command says so.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dice.errors import DiceError
from dice.evaluation.score import PASS_AT
from dice.jsonl import write_text
from dice.manifest import read_manifest
from dice.report.rows import NOT_AVAILABLE, Row, label, level_metric, read_csv, with_ends

_PLACE = re.compile(r"(<!-- recorded: (\S+) -->\n)(.*?)(<!-- end of recorded -->)", re.DOTALL)
_NAMES = {"exec": "Exec", "fast1": "fast_1", "fast2": "fast_2"}


@dataclass
class Page:
    """A page with what its places should say."""

    text: str
    wanted: str
    places: int = 0
    waiting: list[str] = field(default_factory=list)
    """CSV files that are not recorded yet."""


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [list(header), ["---"] * len(header), *(list(row) for row in rows)]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def models_table(rows: Sequence[Row]) -> str:
    """The measured rows of a table of models: each metric that was measured, with its interval, and the number of answers:
    in the header where all rows have the same, else in a column of its own."""
    measured = [row for row in rows if row["status"] == "measured"]
    metrics = {
        name: found
        for name in rows[0]
        if (found := level_metric(name)) and any(row[name] not in ("", NOT_AVAILABLE) for row in measured)
    }
    levels = list(dict.fromkeys(level for level, _ in metrics.values()))
    same = _same_answers(measured)
    size = {level: f" ({n})" for level, n in zip(levels, measured[0]["n"].split("/"), strict=True)} if same else {}
    header = ["row", *(f"level {level}{size.get(level, '')}: {_NAMES[metric]}" for level, metric in metrics.values())]
    lines = ([label(row), *(_cell(row, name) for name in metrics), *([] if same else [row["n"]])] for row in measured)
    return markdown(header if same else [*header, "answers"], lines)


def _same_answers(measured: Sequence[Row]) -> bool:
    """Whether all rows have the same number of answers in each level."""
    return len({row["n"] for row in measured}) == 1


def exams_table(rows: Sequence[Row]) -> str:
    """What `dice exams` wrote: Exec, and each pass@k that was measured, with its interval."""
    names = {"exec": "Exec"} | {f"pass_at_{k}": f"pass@{k}" for k in PASS_AT if k > 1}
    metrics = [name for name in names if any(row[name] for row in rows)]
    header = ["model", "benchmark", "level", "problems", *(names[name] for name in metrics)]
    lines = []
    for row in rows:
        model = f"{row['measured_model'] or row['unit']}, {row['measured_params']} parameters"
        lines.append(
            [model, row["measured_on"], row["level"], row["problems"], *(_cell(row, name) for name in metrics)]
        )
    return markdown(header, lines)


def _cell(row: Row, metric: str) -> str:
    value, low, high = (row[name] for name in with_ends(metric))
    return f"{value} % [{low}, {high}]" if value not in ("", NOT_AVAILABLE) else value


def _backends(rows: Sequence[Row]) -> str:
    """The back end, for each benchmark where they differ: an exam may have one of its own."""
    by_benchmark = {row["measured_on"]: row["backend"] for row in rows}
    if len(distinct := set(by_benchmark.values())) == 1:
        return f"{distinct.pop()} back end"
    return " and ".join(f"{backend} back end for {benchmark}" for benchmark, backend in by_benchmark.items())


def block(csv: Path) -> str:
    """What a page says about a recorded CSV: where it is from, and the table. Raises DiceError for one without rows or
    manifest."""
    rows = read_csv(csv)
    if not rows:
        raise DiceError(f"{csv}: has no rows.")
    manifest = read_manifest(csv)
    if manifest is None:
        raise DiceError(f"{csv}: has no manifest, so a page cannot say when and where it was made.")
    commit = (manifest.git_commit or "no commit")[:7]
    made = f"`{csv}`, made on {manifest.started[:10]} at commit {commit}"
    if {"status", "measured_on"} <= rows[0].keys():
        measured = [row for row in rows if row["status"] == "measured"]
        if not measured:
            raise DiceError(f"{csv}: no row of it was measured.")
        first = measured[0]
        facts = f"scale {first['scale']}, {first['backend']} back end, protocol {first['protocol']}"
        facts += "; in brackets the number of answers" if _same_answers(measured) else ""
        return f"Percent with 95 % intervals; {facts}.\n{made}.\n\n{models_table(rows)}"
    if "pass_at_1" in rows[0]:
        facts = f"scale {rows[0]['scale']}, {_backends(rows)}, protocol {rows[0]['protocol']}"
        return f"Percent with 95 % intervals; {facts}.\n{made}.\n\n{exams_table(rows)}"
    return f"{made}.\n\n{markdown(list(rows[0]), (list(row.values()) for row in rows))}"


def read_page(path: Path) -> Page:
    """A page, and what it should say. Raises DiceError for a page without a place, or a place that does not end."""
    if not path.is_file():
        raise DiceError(f"{path}: no such page.")
    page = Page(path.read_text(encoding="utf-8"), "")

    def filled(found: re.Match[str]) -> str:
        page.places += 1
        csv = Path(found[2])
        if not csv.is_file():
            page.waiting.append(str(csv))
            return found[0]
        return f"{found[1]}\n{block(csv)}\n{found[4]}"

    page.wanted = _PLACE.sub(filled, page.text)
    if page.places == 0 or page.places != page.text.count("<!-- recorded:"):
        raise DiceError(f"{path}: expected `<!-- recorded: CSV -->`, later `<!-- end of recorded -->`.")
    return page


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `dice embed`."""
    parser.add_argument("pages", nargs="+", help="Markdown pages with places for recorded tables")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit code 1 where a page says something else"
    )


def run(args: argparse.Namespace) -> int:
    """Entry point of `dice embed`."""
    differ = 0
    for path in map(Path, args.pages):
        page = read_page(path)
        for csv in page.waiting:
            print(f"{path}: {csv} is not recorded yet; its place keeps its text.")
        same = page.text == page.wanted
        if not same and not args.check:
            write_text(path, page.wanted)
        differ += not same
        if len(page.waiting) < page.places or not same:
            says = "says what is recorded" if same else "DIFFERS from what is recorded" if args.check else "written"
            print(f"{path}: {says}.")
    return 1 if args.check and differ else 0
