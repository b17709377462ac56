"""The report of `dice curate`: how many pairs of each source are in each set, and why the others are not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dice.config import to_spec
from dice.data.pair import Pair
from dice.data.selection import Drop, Rule, histogram, tries_made
from dice.kernels.api import Verdict

SCHEMA_VERSION = 1


@dataclass
class Row:
    """One pair on its way through the steps."""

    pair: Pair
    source: str
    """Format of the file it came from."""
    rule: Rule
    verdicts: dict[int, Verdict] = field(default_factory=dict)
    """By try."""
    drop: Drop | None = None
    """Why it is not in the set."""


def report_of(
    rows: Sequence[Row], correct: Sequence[Row], inside: Mapping[float, Sequence[Row]], threshold: float
) -> dict[str, Any]:
    """Counts per source, reason and threshold, and Table 12.

    `correct`: the rows that passed verification; `inside`: the rows in the set of each threshold. The rows' own `drop`
    belongs to the set of `threshold`.
    """
    sources = list(dict.fromkeys(row.source for row in rows))
    of = {name: [row for row in rows if row.source == name] for name in sources}
    correct_of = {name: [row for row in correct if row.source == name] for name in sources}
    return {
        "schema_version": SCHEMA_VERSION,
        "threshold": threshold,
        "size": sum(row.drop is None for row in rows),
        "sources": {name: _source(of[name]) for name in sources},
        "sizes_by_threshold": {
            f"{value:g}": {
                **dict.fromkeys(sources, 0),
                **Counter(row.source for row in members),
                "total": len(members),
            }
            for value, members in inside.items()
        },
        "speedups": {
            name: histogram(found, len(of[name])) for name in sources if (found := _measured(correct_of[name]))
        },
        "tries": {
            name: tries_made([row.verdicts for row in of[name]])
            for name in sources
            if any(row.rule.attempts > 1 for row in of[name])
        },
    }


def _source(rows: Sequence[Row]) -> dict[str, Any]:
    last = [max(row.verdicts.items())[1].status for row in rows if row.verdicts]
    return {
        "rows": len(rows),
        "rule": to_spec(rows[0].rule),
        "last_status": dict(Counter(last).most_common()),
        "kept": sum(row.drop is None for row in rows),
        "dropped": dict(Counter(row.drop.reason for row in rows if row.drop).most_common()),
    }


def _measured(rows: Sequence[Row]) -> list[float]:
    return [row.pair.speedup for row in rows if row.pair.speedup is not None]


def summary(report: Mapping[str, Any]) -> list[str]:
    """The report as lines of text: sizes by threshold, then what was kept and dropped of each source."""
    names = list(report["sources"])
    lines = ["threshold" + "".join(f"{name:>12}" for name in names) + "       total"]
    for threshold, counts in report["sizes_by_threshold"].items():
        lines.append(f"{threshold:>9}" + "".join(f"{counts[name]:12d}" for name in [*names, "total"]))
    for name, source in report["sources"].items():
        reasons = ", ".join(f"{reason} {n}" for reason, n in source["dropped"].items()) or "none"
        lines.append(f"{name}: {source['kept']} of {source['rows']} kept; dropped: {reasons}")
    return lines
