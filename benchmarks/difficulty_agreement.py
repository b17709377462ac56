"""How far does the difficulty rule agree with labels that somebody else gave?

    python benchmarks/difficulty_agreement.py --labelled end_to_end_kernel_generation_4000.json
    python benchmarks/difficulty_agreement.py --labelled KernelBench/KernelBench

`--labelled`: a file of DICE's RL programs (labels by Mercury Coder), pairs.jsonl with levels, or a folder or JSON lines
of benchmark problems (the level is the label). Prints accuracy beside that of always answering the commonest label,
Cohen's kappa with a 95 % bootstrap interval, recall and precision per level, and the confusion table. All of it on three
sets: every row, and the two halves that sha256 of the id gives. Which permuting and copying operators count was chosen on
half `a` of the RL programs and the bounds of level 3 on KernelBench; half `b` of the RL programs is the test.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dice.data.difficulty import Difficulty, difficulties
from dice.data.pair import Pair
from dice.data.sources import label_of, read_source
from dice.jsonl import atomic_writer, read_jsonl, read_objects
from dice.kernels.api import Problem, load_problem_folder

Labels = Sequence[tuple[int, int]]
"""(label of the data, level of the rule) per program."""


def load(path: Path) -> list[Pair]:
    """Labelled programs of any of the accepted kinds; rows without a label are left out."""
    if path.is_dir():
        return [as_pair(problem) for problem in load_problem_folder(path)]
    if path.suffix == ".jsonl":
        first = next(read_objects(path))[1]
        if "pytorch_code" not in first:
            return [as_pair(problem) for problem in read_jsonl(path, Problem)]
        pairs = read_source("pairs", path, on_bad="skip", require_cuda=False)[0]
    else:
        pairs = read_source("end_to_end", path, on_bad="skip")[0]
    return [pair for pair in pairs if label_of(pair) is not None]


def as_pair(problem: Problem) -> Pair:
    """A problem as a program with a label."""
    return Pair(id=problem.id, pytorch_code=problem.code, cuda_code="", source=problem.version, level=problem.level)


def half_of(name: str) -> str:
    """`a` or `b`, by the last part of the id alone."""
    return "ab"[hashlib.sha256(name.rpartition("/")[2].encode()).digest()[-1] & 1]


def kappa(labels: Labels) -> float:
    """Cohen's kappa; 0 where chance alone explains everything."""
    n = len(labels)
    given, ruled = Counter(a for a, _ in labels), Counter(b for _, b in labels)
    observed = sum(a == b for a, b in labels) / n
    expected = sum(given[level] * ruled[level] for level in given) / n**2
    return 0.0 if expected == 1 else (observed - expected) / (1 - expected)


def interval(labels: Labels, rounds: int = 1000) -> tuple[float, float]:
    """95 % percentile bootstrap of kappa."""
    draw = random.Random(0)
    found = sorted(kappa(draw.choices(labels, k=len(labels))) for _ in range(rounds))
    return found[rounds // 40], found[-rounds // 40 - 1]


def measure(labels: Labels) -> dict[str, Any]:
    """All figures of one set."""
    n = len(labels)
    given, ruled, both = Counter(a for a, _ in labels), Counter(b for _, b in labels), Counter(labels)
    low, high = interval(labels)
    return {
        "n": n,
        "accuracy": round(sum(a == b for a, b in labels) / n, 4),
        "commonest_label": round(max(given.values()) / n, 4),
        "kappa": round(kappa(labels), 3),
        "kappa_95": [round(low, 3), round(high, 3)],
        "per_level": {
            str(level): {
                "n": given[level],
                "recall": round(both[level, level] / given[level], 3) if given[level] else None,
                "precision": round(both[level, level] / ruled[level], 3) if ruled[level] else None,
            }
            for level in sorted({*given, *ruled})
        },
        "confusion": {f"label {a}, rule {b}": count for (a, b), count in sorted(both.items())},
    }


def sets(pairs: Sequence[Pair], rows: Sequence[Difficulty]) -> dict[str, Any]:
    """Figures of every row and of the two halves; a program without a Model is left out."""
    labelled = [
        (half_of(pair.id), label_of(pair) or 0, row.level)
        for pair, row in zip(pairs, rows, strict=True)
        if row.level is not None
    ]
    chosen = {"all": "ab", "a": "a", "b": "b"}
    return {
        name: measure([(label, level) for half, label, level in labelled if half in halves])
        for name, halves in chosen.items()
        if any(half in halves for half, _, _ in labelled)
    }


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labelled", type=Path, required=True)
    parser.add_argument("--out", type=Path, help="also write the figures as JSON")
    args = parser.parse_args()
    pairs = load(args.labelled)
    rows = list(difficulties(pairs, use_labels=False))
    result = {"programs": len(pairs), **sets(pairs, rows)}
    print(json.dumps(result, indent=2))
    if args.out:
        with atomic_writer(args.out) as stream:
            stream.write(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
