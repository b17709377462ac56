"""`dice figure`: one figure of the paper as CSV, PDF and PNG, drawn from results alone.

Every figure is drawn from the CSV beside it, in one style that is readable in print and in grey. What cannot be measured
at a scale is left out and named in the CSV's `note`, never filled in.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from dice.config import add_options, config_from, stage_config, to_spec
from dice.data.pair import rows_with_lines
from dice.errors import DiceError
from dice.evaluation.score import read_score
from dice.jsonl import atomic_writer, read_objects
from dice.manifest import Stopwatch, read_manifest, write_manifest
from dice.report.rows import NOT_AVAILABLE, Row, label, read_csv, write_csv
from dice.study.registry import FigureKind

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLE: dict[str, Any] = {
    "font.family": "serif", "font.size": 8, "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.6,
    "legend.frameon": False, "lines.linewidth": 1.2, "pdf.fonttype": 42, "savefig.dpi": 200, "svg.hashsalt": "dice",
}  # fmt: skip
COLOURS = ("#1b4f72", "#c0562b", "#5b7f3a", "#6c4675", "#888888")
MARKERS = ("o", "s", "^", "D", "v")


@stage_config
class FigureConfig:
    """What `dice figure` draws."""

    number: int
    """Number in the paper."""
    title: str
    """Caption."""
    kind: FigureKind
    """What is drawn."""
    tables: tuple[str, ...] = ()
    """CSV files of tables."""
    scores: dict[str, str] = Field(default_factory=dict)
    """Unit -> score.json."""
    histories: dict[str, str] = Field(default_factory=dict)
    """Unit -> history.jsonl of its training."""
    generations: str | None = None
    """Generations of one model."""
    pairs: str | None = None
    """Pairs that are split into prefix, middle and suffix."""
    files: dict[str, str] = Field(default_factory=dict)
    """For the pipeline: box -> file whose rows are counted, JSON lines or an array."""
    scale: str
    """Name of the scale."""
    out: str
    """CSV to write; PDF and PNG go beside it."""


def overview_rows(config: FigureConfig) -> list[Row]:
    """Figure 1: Exec and fast_1, means over the levels that are there (left), reward by RL step (right)."""
    rows: list[Row] = []
    for table in config.tables:
        for row in read_csv(table):
            for kind in ("measured", "reported"):
                suffix = "" if kind == "measured" else "_reported"
                cells = [(row[f"l{level}_exec{suffix}"], row[f"l{level}_fast1{suffix}"]) for level in (1, 2, 3)]
                levels = [cell for cell in cells if cell[0] not in ("", NOT_AVAILABLE)]
                if not levels:
                    continue
                correct, fast = (_mean(values) for values in zip(*levels, strict=True))
                name = label(row) if kind == "measured" else row["row"]
                rows.append(_row("left", name, kind, correct, fast, _levels_note(len(levels))))
    for unit, path in config.histories.items():
        for _, step in read_objects(path):
            if step["reward"] is not None:
                rows.append(_row("right", unit, "measured", str(step["step"]), f"{step['reward']:.4f}"))
    return rows


def _mean(cells: Sequence[str]) -> str:
    """Mean of a metric; `n/a` where one of the cells has no value."""
    missing = any(cell in ("", NOT_AVAILABLE) for cell in cells)
    return NOT_AVAILABLE if missing else f"{sum(map(float, cells)) / len(cells):.2f}"


def _levels_note(there: int) -> str:
    return "" if there == 3 else f"{there} of 3 levels"


def _row(panel: str, series: str, status: str, x: str, y: str, note: str = "") -> Row:
    """A point of a figure; `make_figure` fills in the scale."""
    return {"panel": panel, "series": series, "status": status, "x": x, "y": y, "scale": "", "note": note}


def _no_point(panel: str, note: str) -> list[Row]:
    """The CSV of a figure for which nothing was measured; `note` says why."""
    return [_row(panel, "none", "reported", "", "", note)]


def order_rows(config: FigureConfig) -> list[Row]:
    """Figure 2: for the tokens of one answer, the forward in which each was fixed."""
    if config.generations is None:
        return _no_point("order", "no generations at this scale")
    longest: dict[str, Any] = {}
    for _, generation in read_objects(config.generations):
        if len(generation.get("order") or ()) > len(longest.get("order", ())):
            longest = generation
    if not longest:
        return _no_point("order", "no answer says in which order its tokens were fixed")
    name = longest["problem_id"]
    return [_row("order", name, "measured", str(k), str(step)) for k, step in enumerate(longest["order"][:96])]


def pipeline_rows(config: FigureConfig) -> list[Row]:
    """Figure 3: the boxes of the pipeline with the number of rows that went through them."""
    rows = []
    for box, path in config.files.items():
        n = sum(1 for _ in rows_with_lines(path))
        rows.append(_row("pipeline", box, "measured", str(len(rows)), str(n)))
    return rows


def component_rows(config: FigureConfig) -> list[Row]:
    """Figure 4: mean lines of prefix, middle and suffix, and the first pair's."""
    if config.pairs is None:
        return _no_point("mean", "no split pairs at this scale")
    pairs = [pair for _, pair in read_objects(config.pairs)]
    rows = []
    for place, part in enumerate(("prefix", "middle", "suffix")):
        lengths = [len(pair[part].splitlines()) for pair in pairs]
        rows.append(_row("mean", part, "measured", str(place), f"{sum(lengths) / len(lengths):.2f}"))
        rows.append(_row("first", part, "measured", str(place), str(lengths[0]), pairs[0]["id"]))
    return rows


def gain_rows(config: FigureConfig) -> list[Row]:
    """Figure 5: gain of fine-tuning in points, mean over levels of Exec, measured and reported."""
    rows: list[Row] = []
    for table in config.tables:
        by_key = {(row["model"], row["params"], row["sft"]): row for row in read_csv(table)}
        for (model, params, sft), before in by_key.items():
            if sft == "yes":
                continue
            after = by_key[model, params, "yes"]
            for kind, suffix in (("measured", ""), ("reported", "_reported")):
                names = [f"l{level}_exec{suffix}" for level in (1, 2, 3)]
                pairs = [(after[name], before[name]) for name in names]
                levels = [pair for pair in pairs if not {"", NOT_AVAILABLE} & set(pair)]
                if levels:
                    gain = sum(float(a) - float(b) for a, b in levels) / len(levels)
                    rows.append(_row("gain", model, kind, params, f"{gain:.2f}", _levels_note(len(levels))))
    return rows


def failure_rows(config: FigureConfig) -> list[Row]:
    """Figure 6: answers by failure class."""
    rows: list[Row] = []
    for unit, path in config.scores.items():
        failures = read_score(path).failures
        total = sum(failures.values())
        for name, n in failures.items():
            group, _, detail = name.partition("/")
            share = f"{100 * n / total:.2f}"
            rows.append(_row(group, detail, "measured", unit, share, f"{n} of {total}"))
    return rows or _no_point("none", "no scores at this scale")


ROWS: dict[FigureKind, Callable[[FigureConfig], list[Row]]] = {
    "overview": overview_rows,
    "decoding_order": order_rows,
    "pipeline": pipeline_rows,
    "components": component_rows,
    "sft_gain": gain_rows,
    "failures": failure_rows,
}


def _scatter(axis: Any, rows: list[Row]) -> None:
    """Exec against fast_1: filled is measured, hollow is the paper's."""
    for row in rows:
        if row["panel"] != "left" or row["y"] == NOT_AVAILABLE:
            continue
        measured = row["status"] == "measured"
        axis.scatter(
            float(row["x"]), float(row["y"]), s=18, edgecolors=COLOURS[0], linewidths=0.8,
            facecolors=COLOURS[0] if measured else "none",
        )  # fmt: skip
        if not measured and float(row["x"]) < 10:
            continue  # the crowd in the corner is in the CSV by name
        axis.annotate(row["series"], (float(row["x"]), float(row["y"])), fontsize=4.5, xytext=(2, 2),
                      textcoords="offset points")  # fmt: skip
    axis.set_xlabel("Exec, mean of levels (%)")
    axis.set_ylabel("fast$_1$, mean of levels (%)")
    axis.set_title("filled: measured, hollow: the paper", fontsize=7)


def empty_figure(width: float, height: float) -> Figure:
    """A figure in our style; inches."""
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.rcParams.update(STYLE)  # pyright: ignore
    return Figure(figsize=(width, height), layout="constrained")


def save_figure(figure: Figure, out: Path) -> None:
    """Write PDF and PNG beside `out`, without a date: the same figure has the same bytes."""
    for kind, facts in (("pdf", {"CreationDate": None}), ("png", None)):
        with atomic_writer(out.with_suffix(f".{kind}"), "wb") as stream:
            figure.savefig(stream, format=kind, metadata=facts)


def draw(config: FigureConfig, rows: list[Row]) -> Figure:
    """The figure of the rows."""
    if config.kind == "overview":
        figure = empty_figure(6.5, 2.8)
        left, right = figure.subplots(1, 2)
        _scatter(left, rows)
        units = dict.fromkeys(row["series"] for row in rows if row["panel"] == "right")
        for place, unit in enumerate(units):
            points = [row for row in rows if row["panel"] == "right" and row["series"] == unit]
            xs, ys = [int(p["x"]) for p in points], [float(p["y"]) for p in points]
            right.plot(xs, ys, marker=MARKERS[place % 5], markersize=3, color=COLOURS[place % 5], label=unit)
        right.set_xlabel("RL step")
        right.set_ylabel("mean reward")
        if units:
            right.legend(fontsize=6)
        return figure
    figure = empty_figure(4.5, 2.6)
    axis = figure.subplots()
    shown = [row for row in rows if row["y"] not in ("", NOT_AVAILABLE)]
    if config.kind == "decoding_order":
        axis.bar([int(row["x"]) for row in shown], [int(row["y"]) for row in shown], color=COLOURS[0], width=0.9)
        axis.set_xlabel("token")
        axis.set_ylabel("forward in which it was fixed")
    elif config.kind == "sft_gain":
        names = list(dict.fromkeys(f"{row['series']}\n{row['x']}" for row in shown))
        for status, colour, shift in (("measured", COLOURS[0], -0.2), ("reported", COLOURS[4], 0.2)):
            points = [row for row in shown if row["status"] == status]
            places = [names.index(f"{row['series']}\n{row['x']}") + shift for row in points]
            axis.bar(places, [float(p["y"]) for p in points], width=0.38, color=colour, label=status)
        axis.set_xticks(range(len(names)), names, fontsize=6)
        axis.set_ylabel("gain in Exec (points)")
        axis.legend(fontsize=6)
    elif config.kind == "failures":
        units = list(dict.fromkeys(row["x"] for row in shown))
        bottoms = dict.fromkeys(units, 0.0)
        groups = list(dict.fromkeys(row["panel"] for row in shown))
        for place, group in enumerate(groups):
            heights = [sum(float(r["y"]) for r in shown if r["panel"] == group and r["x"] == u) for u in units]
            axis.bar(
                units, heights, bottom=[bottoms[u] for u in units], color=COLOURS[place % 5], label=group, width=0.5
            )
            for unit, height in zip(units, heights, strict=True):
                bottoms[unit] += height
        axis.set_ylabel("answers (%)")
        axis.set_xlim(-0.6, len(units) - 0.4)
        axis.legend(fontsize=6, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    else:
        points = [row for row in shown if row["panel"] in ("mean", "pipeline")]
        axis.barh([row["series"] for row in points][::-1], [float(row["y"]) for row in points][::-1], color=COLOURS[0])
        for place, row in enumerate(points[::-1]):
            axis.annotate(row["y"], (float(row["y"]), place), xytext=(2, -2), textcoords="offset points", fontsize=6)
        axis.set_xlabel("rows" if config.kind == "pipeline" else "lines, mean")
    return figure


def make_figure(config: FigureConfig) -> list[Row]:
    """Run the stage: PDF, PNG, CSV, manifest; returns the CSV's rows."""
    watch = Stopwatch()
    found = ROWS[config.kind](config) or _no_point("none", "nothing measured")
    rows = [row | {"scale": config.scale} for row in found]
    out = Path(config.out)
    save_figure(draw(config, rows), out)
    write_csv(out, rows)
    inputs = [*config.tables, *config.scores.values(), *config.histories.values(), *config.files.values()]
    inputs += filter(None, (config.generations, config.pairs))
    write_manifest(out, stage="figure", spec=to_spec(config), watch=watch, inputs=inputs)
    return rows


def caption_of(csv_path: str | Path) -> str:
    """Title that the figure was made with, from its manifest. Raises DiceError where it has none."""
    manifest = read_manifest(csv_path)
    if manifest is None or manifest.stage != "figure":
        raise DiceError(f"{csv_path}: not a figure by `dice figure`.")
    return f"{manifest.spec['title']} (scale {manifest.spec['scale']})"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `dice figure`."""
    add_options(parser, FigureConfig)


def run(args: argparse.Namespace) -> int:
    """Entry point of `dice figure`."""
    config = config_from(args, FigureConfig)
    rows = make_figure(config)
    print(f"figure {config.number}: {len(rows)} points, written to {config.out} and beside it as PDF and PNG")
    return 0
