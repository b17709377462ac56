"""`dice synth`: write synthetic pairs as JSON lines.

    dice synth --n 20000 --seed 7 --scale tiny --out pairs.jsonl

The rows are `dice.data.pair.Pair`; `origin` names families, styles and, for a flawed pair, the flaw and the expected
verdict. Programs that leak (`dice.data.leakage`) are drawn anew and counted in `pairs.jsonl.leaks.json`.
"""

from __future__ import annotations

import argparse
import multiprocessing
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache

from tqdm import tqdm

from dice.config import add_options, config_from, stage_config, to_spec
from dice.data.leakage.index import LeakIndex, add_benchmark_option, leak_index
from dice.data.leakage.report import Counts
from dice.data.pair import Pair
from dice.data.synthetic.config import SyntheticConfig
from dice.data.synthetic.generator import pairs
from dice.data.synthetic.table import HELD_OUT
from dice.errors import DiceError
from dice.jsonl import write_jsonl
from dice.kernels.api import cores, load_problems
from dice.manifest import Stopwatch, write_manifest

PART = 250
"""Pairs that one process draws at a time."""
EACH = 2000
"""Pairs for each process: fewer are drawn sooner than a process starts."""


@stage_config
class SynthConfig:
    """Settings of `dice synth`."""

    out: str
    """JSON lines to write."""
    n: int = 1000
    """Number of pairs."""
    seed: int = 0
    """Seed; pair k of a seed is the same in every run."""
    start: int = 0
    """Index of the first pair."""
    generator: SyntheticConfig = SyntheticConfig()
    """What is drawn."""
    benchmarks: tuple[str, ...] = ("mini",)
    """Benchmarks that must not leak in: `mini`, folders of problem files, JSON lines of problems."""


def exam_index(benchmarks: tuple[str, ...], families: tuple[str, ...] | None = None) -> LeakIndex | None:
    """The problems of the named benchmarks, and the operators that are never trained unless `families` has a held-out one;
    None for no benchmarks. Raises DiceError for one that is missing."""
    problems = [problem for name in benchmarks for problem in load_problems(name, "cpu")]
    return leak_index(problems, heldout=not HELD_OUT & {*(families or ())}) if problems else None


_index = cache(exam_index)
"""The index of a process that draws parts."""


def _part(config: SynthConfig, start: int) -> tuple[list[Pair], Counts]:
    """The pairs of the part that begins at `start`, and what the check counted for them."""
    index = _index(config.benchmarks, config.generator.families)
    count = min(PART, config.start + config.n - start)
    if index is None:
        return list(pairs(config.generator, config.seed, count, start)), Counts()
    index.counts = Counts()
    return list(pairs(config.generator, config.seed, count, start, index.leaks)), index.counts


def _parts(config: SynthConfig) -> Iterator[tuple[list[Pair], Counts]]:
    """All parts in order; of a large set drawn by several processes."""
    starts = range(config.start, config.start + config.n, PART)
    jobs = min(cores(), config.n // EACH)
    if jobs < 2:
        yield from (_part(config, start) for start in starts)
        return
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(_part, [config] * len(starts), starts)


def synth(config: SynthConfig, progress: bool = True) -> Counter[str]:
    """Write the pairs, the report of leaks and the manifest; returns how many of each kind were written.

    Raises DiceError.
    """
    if config.n < 1 or config.start < 0 or config.seed < 0:
        raise DiceError(
            f"synth: n {config.n} must be positive, start {config.start} and seed {config.seed} not negative."
        )
    watch, kinds, counts = Stopwatch(), Counter[str](), Counts()
    index = _index(config.benchmarks, config.generator.families)

    def rows() -> Iterator[Pair]:
        with tqdm(total=config.n, unit="pair", disable=not progress) as bar:
            for drawn, counted in _parts(config):
                counts.add(counted)
                for pair in drawn:
                    kinds[pair.origin.get("flaw", f"level {pair.level}")] += 1
                    bar.update()
                    yield pair

    write_jsonl(config.out, rows())
    if index is not None:
        index.counts = counts
        index.report(config.out, "drawn anew", config.benchmarks, {}).write(config.out)
    extra = {"kinds": dict(kinds), "redrawn_for_leakage": counts.leaks if index else None}
    write_manifest(config.out, stage="synth", spec=to_spec(config), watch=watch, seeds=[config.seed], extra=extra)
    return kinds


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `dice synth`."""
    generator = {name: f"generator.{name}" for name in ("scale", "shapes", "flawed_share")}
    add_options(parser, SynthConfig, "n", "seed", "start", "out", **generator)
    add_benchmark_option(parser, "its problems must not be among the pairs")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def run(args: argparse.Namespace) -> int:
    """Entry point of `dice synth`."""
    config = config_from(args, SynthConfig)
    kinds = synth(config, progress=not args.quiet)
    print(f"{sum(kinds.values())} pairs written to {config.out}")
    for kind, count in sorted(kinds.items()):
        print(f"  {count:7d}  {kind}")
    return 0
