"""`dice leaks`: which programs of a file are exam problems, and the file without them; or print reports of leaks.

    dice leaks --data end_to_end.json --benchmark KernelBench --out programs.jsonl
    dice leaks --show results/data

The rows are those of `dice.data.pair` (our pairs, and the authors' published files); what is kept is written as pairs. For
files that are trained on as they are; `dice synth` and `dice curate` check what they write themselves.
"""

from __future__ import annotations

import argparse

from tqdm import tqdm

from dice.config import add_options, config_from, stage_config, to_spec
from dice.data.leakage.index import add_benchmark_option, leak_index
from dice.data.leakage.report import DONE, SUFFIX, LeakReport, Policy, lines_of, reports_below
from dice.data.leakage.texts import Leak
from dice.data.pair import OnBad, from_published, read_pairs
from dice.errors import DiceError
from dice.jsonl import write_jsonl
from dice.kernels.api import load_problems
from dice.manifest import Stopwatch, write_manifest


@stage_config
class LeaksConfig:
    """Settings of `dice leaks`."""

    data: str
    """Pairs or programs: JSON lines, or the authors' JSON arrays."""
    out: str
    """JSON lines to write; the report goes beside it."""
    benchmarks: tuple[str, ...] = ("mini",)
    """Exams: `mini`, folders of problem files, JSON lines of problems."""
    leakage: Policy = "drop"
    """Leave programs that leak out, or only report them."""
    on_bad: OnBad = "refuse"
    """`refuse` the file when a row is bad, or `skip` and report it."""


def filter_leaks(config: LeaksConfig, progress: bool = True) -> LeakReport:
    """Write the rows that are kept, the report and the manifest. Raises DiceError."""
    watch = Stopwatch()
    pairs, bad = read_pairs(config.data, on_bad=config.on_bad, require_cuda=False, convert=from_published("dice"))
    index = leak_index(problem for name in config.benchmarks for problem in load_problems(name, "cpu"))
    found: dict[str, Leak] = {}
    for pair in tqdm(pairs, unit="program", disable=not progress):
        leak = index.check(pair.pytorch_code)
        if leak is not None:
            found[pair.id] = leak
    kept = [pair for pair in pairs if config.leakage == "report" or pair.id not in found]
    write_jsonl(config.out, kept)
    report = index.report(config.out, DONE[config.leakage], config.benchmarks, found)
    report.write(config.out)
    extra = {"rows": len(pairs), "kept": len(kept), "leaks": dict(report.counts.rules), "bad_rows": len(bad)}
    write_manifest(config.out, stage="leaks", spec=to_spec(config), watch=watch, inputs=[config.data], extra=extra)
    return report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `dice leaks`."""
    parser.add_argument("--show", nargs="+", metavar="PLACE", help=f"print reports: files, or folders with *{SUFFIX}")
    add_benchmark_option(parser, "an exam")
    add_options(parser, LeaksConfig, "data", "out", "leakage", "on_bad")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def run(args: argparse.Namespace) -> int:
    """Entry point of `dice leaks`."""
    if args.show:
        if args.data or args.out:
            raise DiceError("leaks: --show prints reports that exist; give it without --data and --out.")
        reports = reports_below(args.show)
    else:
        reports = [filter_leaks(config_from(args, LeaksConfig), progress=not args.quiet)]
    for report in reports:
        print("\n".join(lines_of(report)))
    return 0
