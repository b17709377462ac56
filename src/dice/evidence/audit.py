"""`dice audit`: the chain of evidence behind one cell of a table, with hashes.

    dice audit results/table1.csv --cell DICE-8B:l1_exec
    dice audit results/recorded/tiny/table1.csv --cell DICE-8B:l1_exec --problem level1/15_MatMul

The cell is counted again from the verdicts, each answer behind it is named with its status, and the manifests that every
stage writes are walked: table, score, verdicts, generations, checkpoint, data (`dice.evidence.chain` says which states a
link may have). With `--problem` it prints the answers to it too: the problem, the kernel, its verdict, and whether the
verdict is about this very text. The exit code is 1 when a link has changed or is missing, the recount differs, or a verdict
is about another text. A table in a recorded study is audited on that study's files alone; so is one that `dice regenerate`
made.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dice.errors import DiceError
from dice.evaluation.score import Metric, count, is_hit
from dice.evidence.answers import judged_answers, verdict_lines
from dice.evidence.chain import BROKEN, SURE, Link, Place, chain
from dice.evidence.recording import altered, is_recorded, read_record, unpack, unpacked
from dice.jsonl import read_jsonl
from dice.kernels.api import Problem, Verdict
from dice.manifest import MANIFEST_SUFFIX, read_manifest
from dice.report.rows import level_metric, percent, read_table


@dataclass(frozen=True)
class Study:
    """Where a table's evidence lies."""

    table: str
    """Path of the table as the manifests know it."""
    results: Path
    """Folder of the study's results."""
    place: Place
    wrong: tuple[str, ...] = ()
    """What is wrong with the files of a recorded or unpacked study, a sentence each."""


@contextmanager
def study_of(table: str) -> Iterator[Study]:
    """The study that a table belongs to; a recorded one is unpacked for as long. Raises DiceError."""
    folder = Path(table).parent
    if not is_recorded(folder):
        yield _unpacked_study(table) or Study(table, folder, Place())
        return
    record = read_record(folder)
    with tempfile.TemporaryDirectory(prefix="dice-audit-") as name:
        root = Path(name)
        wrong = unpack(record, folder, root)
        path = f"{record.results}/{Path(table).name}"
        yield Study(path, root / record.results, Place(root, record.files), tuple(wrong))


def _unpacked_study(table: str) -> Study | None:
    found = unpacked(Path(table).parent)
    if found is None:
        return None
    record, root = found
    place = Place(root, record.files)
    return Study(f"{record.results}/{Path(table).name}", root / record.results, place, tuple(altered(record, root)))


def recount(
    score_path: str, level: int, metric: Metric, robust: bool, root: Path | None = None
) -> tuple[str, list[str], list[str]]:
    """The cell counted again from the verdicts that the score names, and a line for each answer: those that count, and the
    others. Raises DiceError where they cannot be read."""
    root = root or Path()
    spec = _settings(score_path, root)
    problems = read_jsonl(root / spec["problems"], Problem)
    levels = {problem.id: level for problem in problems if problem.level == level}
    seeds = [
        [v for v in read_jsonl(root / path, Verdict) if v.protocol == spec["protocol"] and v.problem_id in levels]
        for path in spec["verdicts"]
    ]
    if not any(seeds):
        raise DiceError(f"{', '.join(spec['verdicts'])}: no verdicts of level {level}.")
    rate = next(row for row in count(seeds, levels) if row.robust == robust).metrics[metric]
    if rate is None:
        return percent(None), [], []
    counted: list[str] = []
    others: list[str] = []
    for k, seed in enumerate(seeds):
        for v in seed:
            status = v.status if robust else v.functional_status
            line = f"  {v.problem_id}, seed {k}, sample {v.sample}, code {v.code_sha256[:16]}: {status}"
            (counted if is_hit(v, metric, robust) else others).append(line)
    return percent(rate.value), counted, others


def _settings(score_path: str, root: Path) -> dict[str, Any]:
    """The settings of `dice score`: problems, verdicts, protocol. Raises DiceError where no manifest tells them."""
    manifest = read_manifest(root / score_path)
    if manifest is None:
        raise DiceError(f"{score_path}: has no manifest, so its verdicts are not known.")
    return manifest.spec


def _logs(score_path: Path) -> list[str]:
    """Logs of the rules that worked for the score's unit."""
    unit = score_path.stem
    logs = score_path.parent.parent / "logs"
    return sorted(str(log) for pattern in (f"*-{unit}.log", f"*-{unit}-[0-9]*.log") for log in logs.glob(pattern))


def audit(table: str, cell: str, problem: str | None = None) -> tuple[list[str], bool]:
    """(lines to print, whether everything that can be verified holds). Raises DiceError for a cell that is not there."""
    with study_of(table) as study:
        return _audit(study, table, cell, problem)


def _audit(study: Study, table: str, cell: str, problem: str | None) -> tuple[list[str], bool]:
    name, colon, column = cell.partition(":")
    root = study.place.root
    rows = {row["row"]: row for row in read_table(table)}
    if not colon or name not in rows:
        raise DiceError(f"--cell {cell}: give ROW:COLUMN; rows of {table} are {', '.join(rows)}.")
    row = rows[name]
    if column not in row:
        raise DiceError(f"--cell {cell}: {table} has no column '{column}'; it has {', '.join(row)}.")
    lines = [f"{table}, {name}, {column}: {row[column] or '(empty)'}  [{row['status']}, scale {row['scale']}]"]
    if row["status"] != "measured":
        reported = row.get(f"{column}_reported", "")
        lines.append(f"only the paper's number ({reported}) is there: {row['reason']}. There is no chain to audit.")
        return lines, True
    score_path = row["manifest"].removesuffix(MANIFEST_SUFFIX)
    if not (root / score_path).parent.is_dir():
        raise DiceError(f"{table}: names {score_path}; run this where Snakemake ran, paths begin there.")
    good = not study.wrong
    lines += study.wrong
    if found := level_metric(column):
        table_manifest = read_manifest(root / study.table)
        evidence = table_manifest.spec["rows"] if table_manifest else []
        robust = next((r["robust"] for r in evidence if r["row"] == name), True)
        try:
            again, counted, others = recount(score_path, *found, robust, root)
            same = again == row[column]
            good = good and same
            lines.append(f"counted again from the verdicts: {again} ({'the same' if same else 'NOT THE SAME'})")
            lines += [f"answers that count: {len(counted)}", *counted]
            lines += [f"answers that do not: {len(others)}", *others]
        except DiceError as error:
            good = False
            lines.append(f"cannot be counted again: {error}")
        links = [next(chain(study.table, study.results, where=study.place))]
        links += chain(score_path, study.results, depth=1, where=study.place)
    else:
        links = list(chain(study.table, study.results, where=study.place))
    if problem is not None:
        answers, agrees = _answers(score_path, problem, root)
        lines, good = lines + answers, good and agrees
    lines += _link_lines(links)
    good = good and not any(link.state in BROKEN for link in links)
    if logs := _logs(root / score_path):
        lines += ["logs:", *(f"  {log}" for log in logs)]
    weak = [link for link in links if link.state not in SURE]
    lines.append(f"{len(links) - len(weak)} of {len(links)} links are verified.")
    lines += [f"  {link.state}: {link.path}" for link in weak]
    return lines, good


def _link_lines(links: list[Link]) -> Iterator[str]:
    for link in links:
        yield f"{'  ' * link.depth}{link.path}"
        yield f"{'  ' * link.depth}  {link.state}  {link.sha256[:16] or 'folder'}  {link.stage}  {link.detail}"


def _answers(score_path: str, problem: str, root: Path) -> tuple[list[str], bool]:
    """The problem and every answer to it with its verdict. Raises DiceError where the score knows no such problem."""
    spec = _settings(score_path, root)
    problems = {one.id: one for one in read_jsonl(root / spec["problems"], Problem)}
    if problem not in problems:
        raise DiceError(f"--problem {problem}: not one of {spec['problems']}; try {next(iter(problems))}.")
    lines, good = [f"{problem}:", *_indented(problems[problem].code)], True
    for path in spec["verdicts"]:
        for answer in judged_answers(path, root, problems.values(), problem):
            lines.append(f"{path}, sample {answer.verdict.sample}, answer in {answer.generations}:")
            lines += [*_indented(answer.code or "(no code)"), *(f"  {line}" for line in verdict_lines(answer.verdict))]
            agrees = answer.is_of_this_code
            good = good and agrees
            lines.append(f"  the verdict is about this text: {'yes' if agrees else 'NO'}")
    return lines, good


def _indented(text: str) -> list[str]:
    return [f"    {line}".rstrip() for line in text.splitlines()]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `dice audit`."""
    parser.add_argument("table", help="results/table1.csv, or one in a recorded study")
    parser.add_argument("--cell", required=True, help="ROW:COLUMN, e.g. DICE-8B:l1_exec")
    parser.add_argument("--problem", help="print the answers to this problem too, e.g. level1/15_MatMul")


def run(args: argparse.Namespace) -> int:
    """Entry point of `dice audit`."""
    lines, good = audit(args.table, args.cell, args.problem)
    print("\n".join(lines))
    return 0 if good else 1
