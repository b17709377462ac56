"""The verifier beside `stock_pass.py`, on the same candidates and the same machine.

    python benchmarks/stock_pass.py --kernelbench CHECKOUT --out stock.jsonl candidates.jsonl ...
    python benchmarks/against_stock.py --stock stock.jsonl --work DIR candidates.jsonl ...

Prints: verified kernels a minute (cold and warm build cache, paper-protocol correctness, no timing) beside the stock
pool's rate; where the executors' time went; CPU seconds per build, route by route; build outcomes that differ; verdicts
that differ from KernelBench's own evaluator, one by one. `--earlier` adds stock's rows of other runs: their verdicts and
builds are compared too, their times are not. `--protocol` and further `dice verify` flags follow after `--`.

Rates are end to end on both sides: all candidates, from the start of the command to its last verdict, start of the
processes and imports of PyTorch included, empty build cache, what a machine prepares once not included. Stock may have done
a random sample only, in a run too short to be counted by its own clock (a third of it is the pool running empty). Its
time for all candidates is then that of its pool on as many candidates drawn from the sample, by the wall time of each
(`pool_seconds`), with a 95 % interval over the draws of the sample. One that ran into stock's timeout counts as the
timeout, in stock's favour.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import random
import shutil
import statistics
import sys
import time
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

from verify_command import quantiles, read_pairs, verify, write_candidates

from dice.kernels.builder.builder import Builder


def pool_seconds(walls: list[float], workers: int) -> float:
    """Time of a pool that takes one candidate after another, from its start to the last end."""
    free = [0.0] * min(workers, len(walls))
    for wall in walls:
        heapq.heappush(free, heapq.heappop(free) + wall)
    return max(free)


def stock_rate(sample: list[float], n: int, workers: int, draws: int = 400) -> tuple[float, float, float]:
    """Candidates a minute of stock's pool on `n` candidates like those of the sample: (median, 2.5 %, 97.5 %)."""
    draw = random.Random(0)
    rates = []
    for _ in range(draws):
        seen = draw.choices(sample, k=len(sample))
        rates.append(60 * n / pool_seconds(draw.choices(seen, k=n), workers))
    low, *_, high = statistics.quantiles(rates, n=40)
    return statistics.median(rates), low, high


def kernelbench_word(row: dict[str, Any]) -> str:
    """One word for what KernelBench said."""
    if "kernelbench_raised" in row or "died" in row:
        return "raised"
    verdict = row["kernelbench"]
    if verdict is None:
        return "asks to retry"
    return "correct" if verdict["correctness"] else "incorrect" if verdict["compiled"] else "not compiled"


def stock_reason(row: dict[str, Any]) -> str:
    """The stock evaluator's own explanation, shortened."""
    metadata = (row.get("kernelbench") or {}).get("metadata", {})
    for key in ("correctness_issue", "runtime_error", "compilation_error", "max_difference"):
        if key in metadata:
            return f"{key}: {metadata[key]}"[:160]
    return str(row.get("kernelbench_raised") or row.get("died") or "")[:160]


def main() -> None:
    """Measure, join, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("candidates", nargs="+")
    parser.add_argument("--stock", required=True, help="output of stock_pass.py")
    parser.add_argument("--earlier", nargs="*", default=[], help="outputs of stock_pass.py in other runs")
    parser.add_argument("--work", required=True, help="folder for verdicts and the build cache")
    parser.add_argument("--cache", type=Path, help="build cache; its builds are dropped, its headers kept")
    parser.add_argument(
        "--no-warm", action="store_true", help="no second pass over the build cache that the first fills"
    )
    parser.add_argument("--stock-workers", type=int, default=14, help="--workers of stock_pass.py")
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)))
    ours_from = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    args, flags = parser.parse_args(sys.argv[1:ours_from]), sys.argv[ours_from + 1 :]
    work = Path(args.work)
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    beside = {row["sha256"]: row for row in map(json.loads, Path(args.stock).read_text().splitlines())}
    stock = dict(beside)
    for path in args.earlier:
        stock |= {row["sha256"]: row for row in map(json.loads, Path(path).read_text().splitlines())} | beside
    rows = [row for path in args.candidates for row in read_pairs(path)]
    rows = list({row["sha256"]: row for row in rows}.values())
    pairs = write_candidates(work / "candidates.jsonl", rows)
    cache = args.cache or work / "cache"
    shutil.rmtree(cache / "objects", ignore_errors=True)
    started = time.monotonic()
    Builder(cache, "cuda").prepare(args.cores, everything=True)
    print(f"once per machine: {time.monotonic() - started:.0f} s for precompiled headers and the support library")
    flags = ["--cache", str(cache), "--no-timing", *flags]
    cold_began = time.time()
    cold_s, verdicts = verify(pairs, work / "cold.jsonl", *flags)
    passes = [("cold cache", cold_s)]
    if not args.no_warm:
        passes.append(("warm cache", verify(pairs, work / "warm.jsonl", *flags)[0]))
    n = len(verdicts)
    ours = {row["code_sha256"]: row for row in verdicts if row["code_sha256"] in stock}
    theirs, low, high = stock_rate([row["wall_s"] for row in beside.values()], n, args.stock_workers)
    print(f"\n{n} candidates; by stock in this run {len(beside)}, in any {len(ours)}; {args.cores} cores")
    print(f"{'':24s}{'a minute':>10s}{'ratio':>8s}")
    print(f"{f'stock, {args.stock_workers} workers':24s}{theirs:10.1f}{1:8.1f}   (95 %: {low:.1f} to {high:.1f})")
    for name, seconds in passes:
        rate = 60 * n / seconds
        print(f"{name:24s}{rate:10.1f}{rate / theirs:8.1f}   (95 %: {rate / high:.1f} to {rate / low:.1f})")

    begun = min(datetime.fromisoformat(row["started"]).timestamp() for row in verdicts)
    print(f"the command's start, until a worker took its first candidate: {begun - cold_began:.1f} s")
    spent: Counter[str] = Counter()
    for row in verdicts:
        spent.update(row["phase_seconds"])
    parts = ", ".join(f"{name} {seconds / n:.2f}" for name, seconds in spent.most_common())
    print(f"wall seconds per candidate in an executor, cold: {parts}")

    print(f"\nCPU seconds per build{'median':>12s}{'p95':>9s}{'max':>9s}      n")
    calls = [call for row in beside.values() for call in row.get("extensions", []) if "cpu_seconds" in call]
    for name, group in (
        ("stock, built", [c["cpu_seconds"] for c in calls if c["ok"]]),
        ("stock, refused", [c["cpu_seconds"] for c in calls if not c["ok"]]),
    ):
        if group:
            print(f"{name:24s} {quantiles(group)} {len(group):6d}")
    by_route: dict[str, list[float]] = {}
    ratios = []
    for row in verdicts:
        build = row["build"]
        if not build or not build["extensions"]:
            continue
        by_route.setdefault(build["path"], []).append(build["cpu_seconds"])
        by_stock = beside.get(row["code_sha256"], {})
        cost = sum(c.get("cpu_seconds", 0) for c in by_stock.get("extensions", []))
        if build["loaded"] and build["cpu_seconds"] and cost:
            ratios.append(cost / build["cpu_seconds"])
    for route, group in sorted(by_route.items()):
        print(f"{'ours, ' + route:24s} {quantiles(group)} {len(group):6d}")
    if ratios:
        print(f"stock / ours, per built candidate: median {statistics.median(ratios):.0f}x, least {min(ratios):.0f}x")

    print("\nextensions that loaded, where the two differ:")
    for sha, row in ours.items():
        loaded = [call["ok"] for call in stock[sha].get("extensions", [])]
        build = row["build"] or {"extensions": 0, "loaded": 0}
        if (len(loaded), sum(loaded)) != (build["extensions"], build["loaded"]):
            error = next((c["error"][-200:] for c in stock[sha]["extensions"] if not c["ok"]), "")
            said = f"stock {sum(loaded)} of {len(loaded)}, ours {build['loaded']} of {build['extensions']}"
            print(f"  {row['problem_id']}: {said}; {row['status']}: {row['message'][:160]} | {error}")

    table: Counter[tuple[str, str]] = Counter()
    differ = []
    for sha, row in ours.items():
        word, mine = kernelbench_word(stock[sha]), row["functional_status"]
        table[word, mine] += 1
        if (word == "correct") != (mine == "correct"):
            differ.append((row, word, stock_reason(stock[sha])))
    print("\nKernelBench's evaluator against functional_status:")
    for (word, mine), count in table.most_common():
        print(f"  {count:5d}  {word:14s} {mine}")
    print(f"disagreements on correctness: {len(differ)} of {len(ours)}")
    for row, word, reason in differ:
        said = f"KernelBench {word} ({reason}); ours {row['functional_status']}: {row['message'][:200]}"
        print(f"  {row['problem_id']}: {said}")


if __name__ == "__main__":
    main()
