"""One file of candidates from many, shuffled: what `stock_pass.py` and `against_stock.py` are given.

    python tests/kernels/problems/test_mini_solutions.py DIR
    python benchmarks/synthetic_pairs.py sample --n 100 --seed 20 --out synthetic.jsonl
    python benchmarks/mixed_candidates.py --out mixed.jsonl infilling.json cuda_l1.jsonl DIR/mistakes.jsonl synthetic.jsonl

Only candidates that ask for an extension are taken, each code once. A row without a problem of its own is one of the
mini benchmark's, at its CPU size.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
from pathlib import Path

from verify_command import Row, read_pairs

from dice.kernels.api import load_mini


def read_mini(path: Path) -> list[Row]:
    """Candidates of the mini benchmark, with their problems."""
    problems = {problem.id: problem.code for problem in load_mini("cpu")}
    rows = []
    for row in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
        digest = hashlib.sha256(row["code"].encode()).hexdigest()
        name = f"{row['problem_id']}-{row['sample']}"
        rows.append({"id": name, "problem_code": problems[row["problem_id"]], "code": row["code"], "sha256": digest})
    return rows


def main() -> None:
    """Read, choose, shuffle, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("candidates", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chosen: dict[str, Row] = {}
    for path in options.candidates:
        rows = [row for row in read_pairs(path) or read_mini(path) if "cpp_extension" in row["code"]]
        chosen.update((row["sha256"], row) for row in rows)
        print(f"{path.name}: {len(rows)}")
    rows = list(chosen.values())
    random.Random(options.seed).shuffle(rows)
    options.out.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    print(f"{options.out}: {len(rows)}")


if __name__ == "__main__":
    main()
