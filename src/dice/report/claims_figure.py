"""The figure of `dice claims`: every measured contrast's effect with its interval, by claim."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dice.report.figures import COLOURS, empty_figure, save_figure
from dice.report.rows import Row

LOOKS = {
    "shown": (COLOURS[2], "o"),
    "not shown": (COLOURS[4], "s"),
    "not testable": (COLOURS[3], "x"),
    "contradicted": (COLOURS[1], "^"),
}
"""Colour and marker of a contrast, also told apart in grey."""


def draw_claims(lines: Sequence[Row], out: Path) -> None:
    """Write PDF and PNG beside `out`. What was not measured is in the CSV alone."""
    shown = [line for line in lines if line["verdict"] in LOOKS]
    figure = empty_figure(6.5, 1.2 + 0.24 * len(shown))
    axis = figure.subplots()
    for place, line in enumerate(shown):
        colour, marker = LOOKS[line["verdict"]]
        effect, low, high = (float(line[name]) for name in ("effect", "low", "high"))
        axis.hlines(-place, low, high, color=colour)
        axis.plot([effect], [-place], marker=marker, markersize=4, color=colour)
    axis.axvline(0, color="#888888", linewidth=0.6)
    benchmarks = {line["benchmark"] for line in shown}
    names = [_name(line) + (f" ({line['benchmark']})" if len(benchmarks) > 1 else "") for line in shown]
    axis.set_yticks([-place for place in range(len(shown))], names, fontsize=6)
    for verdict, (colour, marker) in LOOKS.items():
        axis.plot([], [], marker=marker, markersize=4, color=colour, label=verdict)
    axis.legend(fontsize=6)
    axis.set_xlabel("effect (points of all problems; of a cost, percent), 95 % interval")
    titles = {line["scale"] + ", " + line["benchmark"] for line in lines}
    axis.set_title("; ".join(sorted(titles)) if shown else "nothing was measured", fontsize=7)
    save_figure(figure, out)


def _name(line: Row) -> str:
    return f"{line['claim'].replace('_', ' ')}: {line['contrast']}"
