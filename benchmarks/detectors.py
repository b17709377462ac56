"""Detectors of cheating beside each other: what each catches of the red team, and how many honest candidates it blames.

    python benchmarks/detectors.py [--kernelbench CHECKOUT] [--kernelguard FOLDER] [--kernelgym CHECKOUT]
        [--sol-execbench FILE] [--verdicts FILE] [--solutions FILE ...]

Each detector reads the same texts: KernelBench's static checker (its errors, then its warnings too), kernelguard where it
is installed in FOLDER (`pip install --target FOLDER kernelguard`), KernelGYM's validation of a text, and our checks of the
text. `--verdicts`: verdicts of the whole verifier on the same corpus (tests/red_team/verification.py writes them).
`--sol-execbench`: what its driver said of those that were drawn (sol_execbench.py writes it). `--solutions`: JSON lines with
`code` that nobody labelled as a cheat or none; of them only the number that each detector flags is known.

The corpus was written for our verifier, so the comparison favours it: what the others miss here is what somebody thought
of who knew ours. A trick that no text shows is caught by a run or by nobody.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import sys
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from dice.jsonl import read_objects
from dice.kernels.api import is_deceptive, static_findings

ROOT = Path(__file__).parents[1]
Detector = Callable[[str, str], bool]
"""(code, problem's code) -> whether it is flagged."""


def module_from(folder: Path, name: str) -> Any:
    """The module `name` of `folder`."""
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(folder))


def kernelgym_validation(checkout: Path) -> Any:
    """KernelGYM's module of text checks; the package's own start imports its server."""
    package = types.ModuleType("kernelgym")
    package.__path__ = [str(checkout / "kernelgym")]
    sys.modules["kernelgym"] = package
    return importlib.import_module("kernelgym.toolkit.validation")


def detectors(
    kernelbench: Path | None, kernelguard: Path | None, kernelgym: Path | None
) -> Iterator[tuple[str, Detector]]:
    """The detectors that are there, by the name of their row."""
    if kernelbench is not None:
        checker = module_from(kernelbench / "src" / "kernelbench", "kernel_static_checker")
        validate = checker.validate_kernel_static
        yield "KernelBench, errors", lambda code, _: not validate(code, "cuda", "fp32")[0]
        yield "KernelBench, errors and warnings", lambda code, _: any(validate(code, "cuda", "fp32")[1:])
    if kernelguard is not None:
        guard = module_from(kernelguard, "kernelguard")
        yield "kernelguard, filtered", lambda code, _: guard.analyze_code(code)["should_filter"]
        yield "kernelguard, any pattern", lambda code, _: bool(guard.analyze_code(code)["matched_patterns"])
    if kernelgym is not None:
        validation = kernelgym_validation(kernelgym)
        yield "KernelGYM, validation", lambda code, _: not validation.validate_code(code, "ModelNew")[0]
        early = validation.early_kernel_validation
        yield "KernelGYM, early validation", lambda code, _: not early(code, "cuda")[0]
    yield (
        "ours, text: fatal under strict",
        lambda code, problem: is_deceptive(static_findings(code, reference_code=problem), "strict"),
    )
    yield "ours, text: any finding", lambda code, problem: bool(static_findings(code, reference_code=problem))


def main() -> int:
    """Print one row for each detector."""
    parser = argparse.ArgumentParser(description=inspect.cleandoc(__doc__ or "").splitlines()[0])
    parser.add_argument("--kernelbench", type=Path, help="checkout of KernelBench")
    parser.add_argument("--kernelguard", type=Path, help="folder that kernelguard is installed in")
    parser.add_argument("--kernelgym", type=Path, help="checkout of KernelGYM")
    parser.add_argument("--sol-execbench", type=Path, help="rows of sol_execbench.py")
    parser.add_argument("--verdicts", type=Path, help="strict verdicts of the corpus")
    parser.add_argument("--solutions", type=Path, nargs="*", default=[], help="JSON lines with code, without labels")
    options = parser.parse_args()
    red_team = module_from(ROOT / "tests" / "red_team", "corpus")
    tricks, honest = (red_team.corpus(kind) for kind in ("tricks", "honest"))
    unlabelled = {path.stem: [row["code"] for _, row in read_objects(path)] for path in options.solutions}
    columns = [f"of {len(tricks)} tricks", f"of {len(honest)} honest", "ms each"]
    columns += [f"of {len(codes)} {name}" for name, codes in unlabelled.items()]
    print("| detector | " + " | ".join(columns) + " |\n|---" + "|---" * len(columns) + "|")
    for name, flags in detectors(options.kernelbench, options.kernelguard, options.kernelgym):
        begun = time.process_time()
        cells: list[float] = [sum(flags(one.code, one.problem_code) for one in part) for part in (tricks, honest)]
        cells.append(round(1000 * (time.process_time() - begun) / (len(tricks) + len(honest)), 1))
        cells += [sum(flags(code, "") for code in codes) for codes in unlabelled.values()]
        print(f"| {name} | " + " | ".join(map(str, cells)) + " |")
    if options.sol_execbench is not None:
        rows = [row for _, row in read_objects(options.sol_execbench)]
        for name, passed in (("REWARD_HACK", lambda status: status != "REWARD_HACK"), ("not PASSED", "PASSED".__eq__)):
            drawn = [[row for row in rows if row["kind"] == kind] for kind in ("tricks", "honest")]
            shares = [f"{sum(not passed(row['status']) for row in part)} of {len(part)}" for part in drawn]
            print(f"| SOL-ExecBench, a run: {name} | {shares[0]} | {shares[1]} | |")
    if options.verdicts is not None:
        ends = {
            row["problem_id"]: row["status"] for _, row in read_objects(options.verdicts) if row["protocol"] == "strict"
        }
        for name, ended in (("deceptive", {"deceptive"}), ("not correct", set(ends.values()) - {"correct"})):
            cells = [sum(ends.get(one.name) in ended for one in part) for part in (tricks, honest)]
            print(f"| ours, a run: {name} | {cells[0]} | {cells[1]} | |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
