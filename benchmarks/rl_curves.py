"""How did runs of reinforcement learning go, and how long did each wait for verdicts?

    python benchmarks/rl_curves.py --histories MODEL/history.jsonl MODEL.run1/history.jsonl --steps 1-15 16-45

`--histories`: one for each run, as `dice rl` writes them and recorded studies keep them. Prints a table of Markdown: a line
for each range of steps, with the means of its steps for each run; what a run waits for is seconds over seconds.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean

from dice.errors import DiceError
from dice.jsonl import read_jsonl
from dice.training.rl_history import RlRow

COLUMNS: dict[str, Callable[[Sequence[RlRow]], str]] = {
    "operators or level": lambda rows: f"{fmean(row.level_mean for row in rows):.1f}",
    "reward": lambda rows: f"{fmean(row.reward or 0.0 for row in rows):.2f}",
    "pass@8": lambda rows: f"{fmean(row.pass_at_8 or 0.0 for row in rows):.2f}",
    "groups with a difference": lambda rows: f"{fmean(row.signal_share for row in rows):.0%}",
    "KL": lambda rows: f"{fmean(row.kl or 0.0 for row in rows):.1g}",
    "seconds a step": lambda rows: f"{fmean(row.seconds for row in rows):.1f}",
    "of which it waits": lambda rows: f"{sum(row.wait_s for row in rows) / sum(row.seconds for row in rows):.0%}",
}


def span(text: str) -> range:
    """`16-45` as the steps 16 to 45."""
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def table(runs: Sequence[Sequence[RlRow]], spans: Sequence[range]) -> list[str]:
    """Lines of Markdown. Raises DiceError where a run lacks a step."""
    lines = [f"| steps | {' | '.join(COLUMNS)} |", f"|{'---|' * (len(COLUMNS) + 1)}"]
    for steps in spans:
        chosen = [[row for row in run if row.step in steps] for run in runs]
        if short := [number for number, rows in enumerate(chosen) if len(rows) < len(steps)]:
            raise DiceError(
                f"run {short[0]} has {len(runs[short[0]])} steps; steps {steps[0]}-{steps[-1]} were asked for."
            )
        cells = (", ".join(map(column, chosen)) for column in COLUMNS.values())
        lines.append(f"| {steps[0]}-{steps[-1]} | {' | '.join(cells)} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--histories", type=Path, nargs="+", required=True, help="one for each run")
    parser.add_argument("--steps", type=span, nargs="+", help="ranges of steps (default: all that each run has)")
    args = parser.parse_args()
    runs = [list(read_jsonl(path, RlRow)) for path in args.histories]
    print("\n".join(table(runs, args.steps or [range(1, min(map(len, runs)) + 1)])))


if __name__ == "__main__":
    main()
