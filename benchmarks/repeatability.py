"""Does the strict protocol say the same twice, and does it ever call an unmodified model faster?

    python benchmarks/repeatability.py --work DIR [--budget-s 220] candidates.jsonl [more ...]

Three runs of `dice verify --protocol strict`, on candidates drawn by `--seed` from the given files of pairs:

first, second   the same `--kernels` candidates, timed in two separate runs. They agree when the median speedup of each
                lies within the other's 95 % interval.
unmodified      the reference models of `--models` of those problems, each wrapped as a candidate `--tries` times. One is
                "faster" when the lower bound of its interval passes 1. (Its status is `deceptive`: it has no kernel.)

A candidate without a speedup (wrong under the strict tolerance, say) is not counted; `--spare` more are drawn for it.
All three share `--budget-s`; what was not reached is said, and the same command goes on where it stopped.
"""

from __future__ import annotations

import argparse
import inspect
import random
import statistics
import sys
import time
from pathlib import Path

from verify_command import Row, read_pairs, verify, write_candidates

from dice.kernels.api import Speedup

Speedups = dict[tuple[str, int], Speedup]
"""By problem and sample."""


def drawn(paths: list[str], count: int, seed: int) -> list[Row]:
    """`count` pairs of different code, in an order that the seed fixes."""
    rows = list({row["sha256"]: row for path in paths for row in read_pairs(path)}.values())
    random.Random(seed).shuffle(rows)
    return rows[:count]


def unmodified(rows: list[Row], tries: int) -> list[Row]:
    """Each row's reference model as a candidate, `tries` samples of it."""
    wrapper = "\n\nclass ModelNew(Model):\n    pass\n"
    return [
        {"id": row["id"], "sample": number, "problem_code": row["problem_code"], "code": row["problem_code"] + wrapper}
        for row in rows
        for number in range(tries)
    ]


def speedups(verdicts: list[Row]) -> Speedups:
    """Those that were timed."""
    found = {(row["problem_id"], row["sample"]): row["speedup"] for row in verdicts}
    return {key: Speedup.model_validate(value) for key, value in found.items() if value is not None}


def is_faster(speedup: Speedup) -> bool:
    """Whether the interval lies above 1: what the strict protocol counts as faster."""
    assert speedup.ci_low is not None
    return speedup.ci_low > 1.0


def inside(value: float, speedup: Speedup) -> bool:
    """Whether a speedup lies within another one's interval."""
    assert speedup.ci_low is not None
    assert speedup.ci_high is not None
    return speedup.ci_low <= value <= speedup.ci_high


def agree(first: Speedup, second: Speedup) -> bool:
    """Whether each of two measurements lies within the other's interval."""
    return inside(first.median, second) and inside(second.median, first)


def overlap(first: Speedup, second: Speedup) -> bool:
    """Whether the two intervals have a point in common: the weaker sense of agreement."""
    assert None not in (first.ci_low, second.ci_low, first.ci_high, second.ci_high)
    return first.ci_low <= second.ci_high and second.ci_low <= first.ci_high  # pyright: ignore[reportOperatorIssue]


def shown(speedup: Speedup) -> str:
    """Median and interval."""
    return f"{speedup.median:7.3f} [{speedup.ci_low:.3f}, {speedup.ci_high:.3f}]"


def report_pairs(first: Speedups, second: Speedups) -> bool:
    """Both runs side by side; whether the demand is met by those that were timed twice."""
    pairs = {key[0]: (first[key], second[key]) for key in first if key in second}
    print(f"\n{'kernel':24s}{'first run':>28s}{'second run':>28s}")
    for name, (one, other) in sorted(pairs.items()):
        print(f"{name:24s}{shown(one):>28s}{shown(other):>28s}{'' if agree(one, other) else '   DIFFER'}")
    agreeing = sum(agree(*pair) for pair in pairs.values())
    print(f"agree: {agreeing} of {len(pairs)} (each median within the other's 95 % interval; wanted 28 of 30)")
    print(f"intervals that overlap: {sum(overlap(*pair) for pair in pairs.values())} of {len(pairs)}")
    same = sum(is_faster(one) == is_faster(other) for one, other in pairs.values())
    print(f"same word on `faster`: {same} of {len(pairs)}")
    return bool(pairs) and agreeing >= 28 / 30 * len(pairs)


def report_tries(tries: Speedups, wanted: int) -> bool:
    """Unmodified models, problem by problem; whether none was called faster."""
    columns = f"{'tries':>6s}{'least':>8s}{'median':>8s}{'most':>8s}{'best lower bound':>18s}{'faster':>8s}"
    print(f"\n{'unmodified model':24s}{columns}")
    for name in sorted({key[0] for key in tries}):
        mine = [speedup for key, speedup in tries.items() if key[0] == name]
        medians = [speedup.median for speedup in mine]
        best = max(speedup.ci_low or 0.0 for speedup in mine)
        spread = f"{min(medians):8.3f}{statistics.median(medians):8.3f}{max(medians):8.3f}"
        print(f"{name:24s}{len(mine):6d}{spread}{best:18.3f}{sum(is_faster(speedup) for speedup in mine):8d}")
    wrongly = sum(is_faster(speedup) for speedup in tries.values())
    print(f"called faster: {wrongly} of {len(tries)} tries (wanted 0 of {wanted})")
    return bool(tries) and not wrongly


def main() -> int:
    """Three runs, two tables. The exit code is 1 if a demand is not met by what was measured."""
    parser = argparse.ArgumentParser(description=inspect.cleandoc(__doc__ or "").splitlines()[0])
    parser.add_argument("candidates", nargs="+")
    parser.add_argument("--work", type=Path, required=True, help="folder of verdicts, kept for the next call")
    parser.add_argument("--kernels", type=int, default=30)
    parser.add_argument("--spare", type=int, default=10, help="more candidates in the first run")
    parser.add_argument("--models", type=int, default=10, help="problems whose reference is tried as a candidate")
    parser.add_argument("--tries", type=int, default=5, help="for each of them")
    parser.add_argument("--budget-s", type=float, default=220.0)
    parser.add_argument("--cache", help="build cache folder")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    flags = ["--protocol", "strict", *(["--cache", options.cache] if options.cache else [])]
    deadline = time.monotonic() + options.budget_s

    def run(name: str, rows: list[Row], runs_left: int) -> Speedups:
        limit_s = max(1.0, deadline - time.monotonic()) / runs_left
        out = options.work / f"{name}.jsonl"
        seconds, verdicts = verify(write_candidates(out.with_suffix(".in"), rows), out, *flags, limit_s=limit_s)
        alone_s = sum(row["phase_seconds"].get("timing", 0.0) for row in verdicts)
        print(f"{name}: {len(verdicts)} of {len(rows)} verdicts in {seconds:.0f} s; {alone_s:.0f} s of timing in all")
        for row in verdicts:
            if row["speedup"] is None:
                print(f"  not timed: {row['problem_id']}: {row['status']}: {row['message'][:120]}")
        return speedups(verdicts)

    rows = drawn(options.candidates, options.kernels + options.spare, options.seed)
    first = run("first", rows, 3)
    timed = [row for row in rows if (row["id"], 0) in first][: options.kernels]
    second = run("second", timed, 2)
    tries = run("unmodified", unmodified(timed[: options.models], options.tries), 1)
    repeats, honest = report_pairs(first, second), report_tries(tries, options.models * options.tries)
    return int(not (repeats and honest))


if __name__ == "__main__":
    sys.exit(main())
