"""How many generated programs of two, three and four operators does each model of a recorded study have right?

    dice synth --config '{"n": 400, "seed": 9015, "generator": GENERATOR, "out": "composites.jsonl"}'
    python benchmarks/composites_by_operators.py --pairs composites.jsonl --results build/recorded/nano/results/nano

`--pairs`: the exam's pairs as `dice synth` drew them, which say of what operators each program is. Programs are matched by
their text; one of the exam that is not among the pairs is an error. Prints a line for each model: the share of its answers
that are right, by the number of operators, with the 95 % interval of `dice.evaluation.score.rate`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from dice.data.pair import Pair
from dice.errors import DiceError
from dice.evaluation.score import rate
from dice.jsonl import read_jsonl


def rows(path: Path) -> Iterator[dict[str, Any]]:
    """Rows of a file of JSON lines."""
    return map(from_json, path.read_bytes().splitlines())


def operators_of(pairs: Path, exam: Path) -> dict[str, int]:
    """Problem id -> number of operators of its program. Raises DiceError for a program that is not among the pairs."""
    counts = {pair.pytorch_code: len(pair.origin["families"]) for pair in read_jsonl(pairs, Pair)}
    found: dict[str, int] = {}
    for problem in rows(exam):
        if problem["code"] not in counts:
            raise DiceError(f"{problem['id']} of {exam} is not in {pairs}: draw the pairs with the exam's settings.")
        found[problem["id"]] = counts[problem["code"]]
    return found


def table(results: Path, exam: str, operators: Mapping[str, int]) -> Iterator[str]:
    """A line for each model."""
    for folder in sorted((results / "verdicts").glob(f"*@{exam}")):
        runs = [[(v["problem_id"], v["status"] == "correct") for v in rows(f)] for f in sorted(folder.glob("*.jsonl"))]
        cells = []
        for count in sorted(set(operators.values())):
            found = rate([[outcome for outcome in run if operators[outcome[0]] == count] for run in runs])
            cells.append(f"{count} operators: {found.value:.1%} [{found.low:.1%}, {found.high:.1%}] of {found.n}")
        yield f"{folder.name.split('@')[0]}  " + "  ".join(cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=Path, required=True, help="the exam's pairs")
    parser.add_argument("--results", type=Path, required=True, help="folder of a study's results")
    parser.add_argument("--exam", default="composites", help="its name (default: composites)")
    args = parser.parse_args()
    exam = args.results / "data" / "exams" / args.exam / "problems.jsonl"
    for line in table(args.results, args.exam, operators_of(args.pairs, exam)):
        print(line)


if __name__ == "__main__":
    main()
