"""What the check of leaks found in one set of programs: the file `<data>.leaks.json` beside the data."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter

from dice.errors import DiceError
from dice.jsonl import write_text

SUFFIX = ".leaks.json"
Policy = Literal["drop", "report"]
"""What is done with programs that must not be in a data set."""
DONE: Mapping[Policy, str] = {"drop": "dropped", "report": "reported"}
"""Policy -> what a report says was done."""


@dataclass
class Counts:
    """Counted while programs are checked. Counts of parts of a data set can be added."""

    checked: int = 0
    """Programs that were compared, those drawn anew included."""
    found: dict[str, Counter[str]] = field(default_factory=dict)
    """Exam problem, or `heldout/<operator>` -> rule -> programs that leaked."""
    unjudged: Counter[str] = field(default_factory=Counter)
    """Why a program could only be compared by its text -> programs."""
    operators: Counter[str] = field(default_factory=Counter)
    """PyTorch's operators -> programs without a leak that apply them."""

    def add(self, other: Counts) -> None:
        """Count what `other` counted, too."""
        self.checked += other.checked
        self.unjudged += other.unjudged
        self.operators += other.operators
        for problem, rules in other.found.items():
            self.found[problem] = self.found.get(problem, Counter()) + rules

    @property
    def leaks(self) -> int:
        """Programs that leaked."""
        return sum(rules.total() for rules in self.found.values())

    @property
    def rules(self) -> Counter[str]:
        """Rule -> programs."""
        return sum(self.found.values(), Counter())


@dataclass(frozen=True)
class Applied:
    """What an exam problem's forward applies."""

    operators: dict[str, int]
    """PyTorch's operators -> how often."""
    heldout: tuple[str, ...]
    """Held-out operators (`heldout.yaml`), whatever their spelling."""


@dataclass
class LeakReport:
    """One data set's report."""

    data: str
    """Name of the data set's file."""
    done: str
    """What was done with programs that leak: `drawn anew`, `dropped` or `reported`."""
    benchmarks: list[str]
    problems: int
    """Exam problems that programs were compared with."""
    counts: Counts
    dropped: list[dict[str, str]] = field(default_factory=list)
    """Rows that leak: id, kind, problem_id, evidence. None of a generator, which draws others."""
    not_traced: dict[str, str] = field(default_factory=dict)
    """Exam problem -> why its graph was not compared."""
    not_run: dict[str, str] = field(default_factory=dict)
    """Exam problem -> why its outputs were not compared."""
    applied: dict[str, Applied | None] = field(default_factory=dict)
    """sha256 of an exam problem's code -> what it applies, so that nobody need trace it again; None: it was not traced."""

    def write(self, data: str | Path) -> None:
        """Write the file beside `data`."""
        write_text(f"{data}{SUFFIX}", json.dumps(vars(self), default=vars, indent=2, sort_keys=True) + "\n")


def read_report(path: str | Path) -> LeakReport:
    """A report. Raises DiceError for anything else."""
    try:
        return TypeAdapter(LeakReport).validate_json(Path(path).read_bytes())
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise DiceError(f"{path}: not a report of leaks ({type(error).__name__}: {reason}).") from error


def reports_below(places: Iterable[str]) -> list[LeakReport]:
    """The reports among files and below folders, in order of their names. Raises DiceError where a place has none."""
    found: list[Path] = []
    for place in map(Path, places):
        here = sorted(place.rglob(f"*{SUFFIX}")) if place.is_dir() else [place]
        if not here:
            raise DiceError(f"{place}: no *{SUFFIX} below this folder.")
        found += here
    return [read_report(path) for path in found]


def lines_of(report: LeakReport) -> list[str]:
    """The report as text: how many programs leak by which rule, then each problem with its counts."""
    counts = report.counts
    by_rule = _rules(counts.rules)
    lines = [
        f"{report.data}: {counts.leaks} of {counts.checked} programs leak, {report.done}"
        + f" ({by_rule})" * bool(by_rule)
    ]
    ordered = sorted(counts.found.items(), key=lambda item: (-item[1].total(), item[0]))
    lines += [f"  {rules.total():6d}  {problem}: {_rules(rules)}" for problem, rules in ordered]
    if counts.unjudged:
        lines.append(f"  {counts.unjudged.total():6d}  compared by text alone (first: {next(iter(counts.unjudged))})")
    for name, why in (("graph", report.not_traced), ("outputs", report.not_run)):
        lines += [f"  {name} of {problem} not compared: {reason}" for problem, reason in why.items()]
    return lines


def _rules(rules: Counter[str]) -> str:
    return ", ".join(f"{rule} {number}" for rule, number in rules.most_common())
