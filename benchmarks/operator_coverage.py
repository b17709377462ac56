"""How many exam problems and programs are made of operators that the generator has?

    python benchmarks/operator_coverage.py --benchmark mini --benchmark KernelBench --programs end_to_end_programs_4000.json

Operators are those that PyTorch dispatches while a program runs (`dice.data.leakage.trace`): the generator's are what
`--n` of its pairs apply, drawn evenly from its table without a check of leaks. A program is covered if the generator
has all of its operators. Held-out operators count as the generator's here; they are counted beside it, too.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable

from tqdm import tqdm

from dice.config import parse_config
from dice.data.leakage.heldout import applied
from dice.data.leakage.program import Failed
from dice.data.leakage.trace import Traced, trace
from dice.data.pair import from_published, read_pairs
from dice.data.synthetic.config import SyntheticConfig, with_changes
from dice.data.synthetic.generator import generate
from dice.data.synthetic.table import known
from dice.errors import DiceError
from dice.kernels.api import load_problems


def traced(code: str) -> Traced | None:
    """The program's graph; None where it cannot be traced."""
    try:
        return trace(code)
    except Failed:
        return None


def generators_operators(count: int, seed: int) -> set[str]:
    """Operators of `count` programs, as many around each entry of the table (of small shapes)."""
    config = parse_config(SyntheticConfig, {"scale": "nano", "shapes": "small"}, "here")
    found: set[str] = set()
    table = known()
    names = list(table)
    for number in tqdm(range(count), desc="generator", unit="program"):
        name = names[number % len(names)]
        levels = (0, 0, 1) if table[name].group == "architecture" else (1, 1, 0)
        own = with_changes(config, families=(name,), level_weights=levels)
        graph = traced(generate(own, seed, number).pytorch_code)
        if graph is not None:
            found |= graph.operators.keys()
    return found


def report(name: str, codes: Iterable[str], known: set[str], shown: int) -> None:
    """Print one line for a group of programs, and the operators that most of the others lack."""
    graphs = [traced(code) for code in codes]
    seen = [graph for graph in graphs if graph is not None]
    missing = Counter(one for graph in seen for one in graph.operators.keys() - known)
    covered = sum(graph.operators.keys() <= known for graph in seen)
    held = sum(bool(applied(graph)) for graph in seen)
    print(
        f"{name}: {covered} of {len(graphs)} covered ({100 * covered / len(graphs):.1f} %), "
        f"{len(graphs) - len(seen)} not traced, {held} with a held-out operator"
    )
    if missing:
        print("  lacking most: " + ", ".join(f"{one} {number}" for one, number in missing.most_common(shown)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--benchmark", action="append", default=[], help="`mini`, or a folder of problem files")
    parser.add_argument("--programs", action="append", default=[], help="file of pairs or programs")
    parser.add_argument("--n", type=int, default=2000, help="programs of the generator (default: 2000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=int, help="of a file, only every k-th program so that at most this many remain")
    parser.add_argument("--shown", type=int, default=12, help="operators that are named")
    args = parser.parse_args()
    if not args.benchmark and not args.programs:
        raise DiceError("operator_coverage: name a --benchmark or --programs.")
    operators = generators_operators(args.n, args.seed)
    print(f"the generator has {len(operators)} operators: {' '.join(sorted(operators))}")
    for place in args.benchmark:
        problems = load_problems(place, "cpu")
        for level in sorted({problem.level for problem in problems}):
            report(
                f"{place} level {level}", [one.code for one in problems if one.level == level], operators, args.shown
            )
    for place in args.programs:
        rows, _ = read_pairs(place, on_bad="skip", require_cuda=False, convert=from_published("programs"))
        step = -(-len(rows) // args.limit) if args.limit else 1
        report(place, [row.pytorch_code for row in tqdm(rows[::step], unit="program")], operators, args.shown)


if __name__ == "__main__":
    main()
