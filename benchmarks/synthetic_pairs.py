"""Synthetic pairs: how fast, how many, how many are right, and how fast their kernels are.

    python benchmarks/synthetic_pairs.py rate
    python benchmarks/synthetic_pairs.py sample --n 500 --seed 20 --out /tmp/sample.jsonl [--scale nano] [--flawed]
    dice verify --candidates /tmp/sample.jsonl --backend cuda --out /tmp/verdicts.jsonl
    python benchmarks/synthetic_pairs.py summary --pairs /tmp/sample.jsonl --verdicts /tmp/verdicts.jsonl [--json FILE]

`rate` measures pairs a second on one core and looks for duplicates among 100,000 pairs. `summary` gives the share of
correct pairs with a 95 % Wilson interval, statuses by family, style and level, the histogram of measured speed-ups and
how many pairs pass each of CuKe's thresholds; with flawed pairs, whether each verdict is the expected one.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import math
import re
import statistics
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from dice.data.pair import Pair, read_pairs
from dice.data.synthetic import HELD_OUT, SyntheticConfig, pairs
from dice.evaluation.score import wilson
from dice.jsonl import read_jsonl, write_jsonl
from dice.kernels.api import Verdict

THRESHOLDS = (1.0, 1.5, 2.0, 2.5)
BINS = (0.0, 0.1, 0.25, 0.5, 0.8, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 10.0, math.inf)
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def rate(n: int, seed: int) -> None:
    """Pairs a second and duplicates, at both scales."""
    for scale in ("nano", "tiny"):
        config = SyntheticConfig(scale=scale)
        for _ in pairs(config, seed, 300):
            pass  # tables are built on first use
        texts: set[bytes] = set()
        programs: set[bytes] = set()
        shapeless: set[bytes] = set()
        spent = 0.0
        for start in range(0, n, 1000):
            before = time.process_time()
            made = list(pairs(config, seed, min(1000, n - start), start))
            spent += time.process_time() - before
            for pair in made:
                texts.add(hashlib.md5((pair.pytorch_code + pair.cuda_code).encode()).digest())
                programs.add(hashlib.md5(pair.pytorch_code.encode()).digest())
                shapeless.add(hashlib.md5(_NUMBER.sub("0", pair.pytorch_code + pair.cuda_code).encode()).digest())
        print(f"{scale}: {n / spent:,.0f} pairs/s on one core; of {n:,} pairs {len(texts):,} are distinct, with")
        print(f"  {len(programs):,} distinct PyTorch programs; {len(shapeless):,} differ in more than numbers")


def sample(config: SyntheticConfig, seed: int, n: int, out: Path) -> None:
    """Write pairs; each row brings its own problem, so `dice verify` needs nothing else."""
    write_jsonl(out, pairs(config, seed, n))
    print(f"{n} pairs written to {out}")


def as_expected(verdict: Verdict, expected: dict[str, Any]) -> bool:
    """Whether a verdict on a flawed pair is the one that the flaw demands."""
    word = expected["functional_status"]
    if word is None:
        return verdict.status not in ("correct", "host_error", "compile_error")
    if verdict.functional_status != word:
        return False
    final = expected[verdict.protocol]
    if final is not None and verdict.status != final:
        return False
    slow = expected["faster"] is False and verdict.speedup is not None and verdict.speedup.median > 1.0
    return not slow


def histogram(speedups: list[float]) -> dict[str, int]:
    """Counts per bin of BINS."""
    counts = {}
    for low, high in itertools.pairwise(BINS):
        name = f"{low:g}-{high:g}" if high < math.inf else f">={low:g}"
        counts[name] = sum(low <= value < high for value in speedups)
    return counts


def summary(rows: list[Pair], verdicts: list[Verdict]) -> dict[str, Any]:
    """Everything that is known about a verified sample, per protocol."""
    by_id = {pair.id: pair for pair in rows}
    report: dict[str, Any] = {}
    for protocol in sorted({verdict.protocol for verdict in verdicts}):
        known = [v for v in verdicts if v.protocol == protocol and v.problem_id in by_id]
        sound = [v for v in known if "flaw" not in by_id[v.problem_id].origin]
        judged = [v for v in sound if v.status not in ("host_error", "unsupported_on_cpu")]
        right = [v for v in judged if v.status == "correct"]
        speedups = [v.speedup.median for v in right if v.speedup is not None]
        groups: dict[str, dict[str, Counter[str]]] = {
            name: defaultdict(Counter) for name in ("family", "style", "level", "kind")
        }
        for verdict in sound:
            origin = by_id[verdict.problem_id].origin
            kind = "slow" if origin["slow"] else "fused" if origin["fused"] else "unfused"
            for family in set(origin["families"]):
                groups["family"][family][verdict.status] += 1
            for style in set(origin["styles"]):
                groups["style"][style][verdict.status] += 1
            groups["level"][str(by_id[verdict.problem_id].level)][verdict.status] += 1
            groups["kind"][kind][verdict.status] += 1
        faster: dict[str, list[float]] = defaultdict(list)
        for verdict in right:
            origin = by_id[verdict.problem_id].origin
            kind = "slow" if origin["slow"] else "fused" if origin["fused"] else "unfused"
            if verdict.speedup is not None:
                faster[f"level {by_id[verdict.problem_id].level}, {kind}"].append(verdict.speedup.median)
        flawed = [v for v in known if "flaw" in by_id[v.problem_id].origin and v.status != "host_error"]
        flaws: dict[str, Counter[str]] = defaultdict(Counter)
        for verdict in flawed:
            origin = by_id[verdict.problem_id].origin
            word = "as expected" if as_expected(verdict, origin["expected"]) else f"unexpected {verdict.status}"
            flaws[origin["flaw"]][word] += 1
        report[protocol] = {
            "n": len(sound),
            "judged": len(judged),
            "correct": len(right),
            "share_correct": len(right) / len(judged) if judged else None,
            "interval": wilson(len(right), len(judged)),
            "statuses": dict(Counter(v.status for v in sound).most_common()),
            "by": {name: {key: dict(value) for key, value in sorted(group.items())} for name, group in groups.items()},
            "speedups": {
                "n": len(speedups),
                "quartiles": statistics.quantiles(speedups, n=4) if len(speedups) > 1 else speedups,
                "histogram": histogram(speedups),
                "above": {str(limit): sum(value > limit for value in speedups) for limit in THRESHOLDS},
                "medians": {key: (round(statistics.median(v), 3), len(v)) for key, v in sorted(faster.items())},
            },
            "flaws": {key: dict(value) for key, value in sorted(flaws.items())},
            "not_correct": [
                (v.problem_id, v.status, v.stage, v.message[:200], by_id[v.problem_id].origin["families"])
                for v in sound
                if v.status != "correct"
            ],
        }
    return report


def show(report: dict[str, Any]) -> None:
    """Print a report."""
    for protocol, facts in report.items():
        low, high = facts["interval"]
        share = facts["share_correct"]
        print(f"protocol {protocol}: {facts['correct']} of {facts['judged']} correct", end="")
        print(f" = {share:.2%} [{low:.2%}, {high:.2%}]" if share is not None else "")
        print(f"  statuses: {facts['statuses']}")
        for name, group in facts["by"].items():
            bad = {key: counts for key, counts in group.items() if set(counts) - {"correct"}}
            print(f"  by {name}: {len(group)} values, with other statuses than correct: {bad or 'none'}")
        speed = facts["speedups"]
        if speed["n"]:
            print(f"  speed-ups of {speed['n']}: quartiles {[round(value, 3) for value in speed['quartiles']]}")
            most = max(speed["histogram"].values())
            for name, count in speed["histogram"].items():
                print(f"    {name:>10} {count:5d} {'#' * round(40 * count / most)}")
            print(f"  above the thresholds: {speed['above']}")
            print(f"  medians (speed-up, n): {speed['medians']}")
        if facts["flaws"]:
            print(f"  flawed pairs: {json.dumps(facts['flaws'])}")
        for row in facts["not_correct"]:
            print("  not correct:", *row)


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    modes = parser.add_subparsers(dest="mode", required=True)
    one = modes.add_parser("rate")
    one.add_argument("--n", type=int, default=100_000)
    one.add_argument("--seed", type=int, default=1)
    two = modes.add_parser("sample")
    two.add_argument("--n", type=int, default=500)
    two.add_argument("--seed", type=int, default=20)
    two.add_argument("--scale", choices=("nano", "tiny"), default="nano")
    two.add_argument("--shapes", choices=("auto", "small", "large"), default="auto")
    two.add_argument("--heldout", action="store_true", help="only programs around held-out operators")
    two.add_argument("--flawed", action="store_true", help="only flawed pairs")
    two.add_argument("--out", type=Path, required=True)
    three = modes.add_parser("summary")
    three.add_argument("--pairs", type=Path, required=True)
    three.add_argument("--verdicts", type=Path, required=True)
    three.add_argument("--json", type=Path)
    args = parser.parse_args()
    if args.mode == "rate":
        rate(args.n, args.seed)
    elif args.mode == "sample":
        share = 1.0 if args.flawed else 0.0
        families = tuple(sorted(HELD_OUT)) if args.heldout else None
        config = SyntheticConfig(scale=args.scale, shapes=args.shapes, families=families, flawed_share=share)
        sample(config, args.seed, args.n, args.out)
    else:
        rows, _ = read_pairs(args.pairs)
        report = summary(rows, list(read_jsonl(args.verdicts, Verdict)))
        show(report)
        if args.json:
            args.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
