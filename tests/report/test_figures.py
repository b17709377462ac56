"""Figures, LaTeX and the numbers of the prose."""

from __future__ import annotations

import csv
from typing import get_args

import pytest
from matplotlib.patches import Rectangle
from scored import table

from dice.config import parse_config
from dice.errors import DiceError
from dice.jsonl import write_jsonl
from dice.report.figures import ROWS, FigureConfig, draw, make_figure
from dice.report.latex import escape, table_tex
from dice.report.rows import write_csv
from dice.report.tex import TexConfig, write_tex
from dice.study.registry import FigureKind


def test_latex_escapes_and_marks():
    assert escape("a_b & 5 % {x}") == r"a\_b \& 5 \% \{x\}"
    row = {"row": "r", "l1_exec": "", "l1_exec_reported": "3.0", "status": "reported", "scale": "tiny"}
    text = table_tex(1, "T", [row])
    assert r"\reported{3.0}" in text
    assert r"\measured" not in text


def test_numbers_of_the_prose_come_from_the_tables(place):
    table(place)
    config = TexConfig(tables=(str(place / "table1.csv"),), figures=(), out=str(place / "numbers.tex"))
    assert write_tex(config) == 5
    text = (place / "numbers.tex").read_text()
    assert r"dice@table1@DICE-8B@l1_exec\endcsname{50.0}" in text
    assert r"dice@table1@other@l1_exec\endcsname{1.0\reportedmark{}}" in text


@pytest.mark.parametrize(
    ("kind", "extra"),
    [
        ("overview", {"tables": ()}),
        ("decoding_order", {"generations": "generations/8B-dice/seed0.jsonl"}),
        ("failures", {"scores": {"8B-dice": "scores/8B-dice.json"}}),
        ("pipeline", {"files": {"problems": "problems.jsonl"}}),
    ],
)
def test_figures_are_csv_pdf_and_png(place, monkeypatch, kind, extra):
    monkeypatch.chdir(place)
    make_figure(FigureConfig(number=1, title="F", kind=kind, scale="tiny", out="figure1.csv", **extra))
    assert (place / "figure1.pdf").read_bytes().startswith(b"%PDF")
    assert (place / "figure1.png").read_bytes().startswith(b"\x89PNG")
    assert list(csv.DictReader((place / "figure1.csv").open()))


def test_the_gain_of_fine_tuning_is_a_difference_of_rows(place):
    text = "model,params,sft," + ",".join(f"l{k}_exec,l{k}_exec_reported" for k in (1, 2, 3))
    (place / "t7.csv").write_text(f"{text}\nS,8B,no,1,2,1,2,1,2\nS,8B,yes,4,3,4,3,4,3\n")
    config = FigureConfig(
        number=5, title="F", kind="sft_gain", scale="tiny", tables=(str(place / "t7.csv"),), out=str(place / "f.csv")
    )
    rows = make_figure(config)
    assert {row["status"]: row["y"] for row in rows} == {"measured": "3.00", "reported": "1.00"}


def test_a_model_with_some_levels_has_a_point_that_says_so(place):
    """A scale with levels 1 and 2 alone, on a back end that times and on one that does not; the paper has all three."""
    names = [f"l{level}_{metric}" for level in (1, 2, 3) for metric in ("exec", "fast1")]
    timed = dict(zip(names, ("40.0", "20.0", "20.0", "10.0", "n/a", "n/a"), strict=True))
    untimed = timed | {"l1_fast1": "n/a", "l2_fast1": "n/a"}
    papers = {f"{name}_reported": "30.0" for name in names}
    rows = [{"row": name, **cells, **papers} for name, cells in (("timed", timed), ("untimed", untimed))]
    write_csv(place / "t1.csv", rows)
    tables, out = (str(place / "t1.csv"),), str(place / "f.csv")
    config = FigureConfig(number=1, title="F", kind="overview", scale="nano", tables=tables, out=out)
    assert [(row["series"], row["status"], row["x"], row["y"], row["note"]) for row in make_figure(config)] == [
        ("timed", "measured", "30.00", "15.00", "2 of 3 levels"),
        ("timed", "reported", "30.00", "30.00", ""),
        ("untimed", "measured", "30.00", "n/a", "2 of 3 levels"),
        ("untimed", "reported", "30.00", "30.00", ""),
    ]


def test_every_kind_of_figure_is_drawn_and_no_other_is_taken():
    assert {*ROWS} == {*get_args(FigureKind)}
    with pytest.raises(DiceError, match="kind"):
        parse_config(FigureConfig, {"number": 1, "title": "F", "kind": "pie", "scale": "tiny", "out": "f.csv"}, "test")


def test_a_gain_stands_above_the_name_of_its_model():
    """One model was measured, and it is not the first: its bar is not where the first one's would be."""
    points = [("S", "1.7B", "reported", "1.00"), ("S", "8B", "measured", "3.00"), ("S", "8B", "reported", "2.00")]
    names = ("series", "x", "status", "y")
    rows = [dict(zip(names, point, strict=True)) | {"panel": "gain", "scale": "tiny", "note": ""} for point in points]
    axis = draw(FigureConfig(number=5, title="F", kind="sft_gain", scale="tiny", out="f.csv"), rows).axes[0]
    ticks = [label.get_text() for label in axis.get_xticklabels()]
    assert ticks == ["S\n1.7B", "S\n8B"]
    found = {}
    for bar in axis.patches:
        assert isinstance(bar, Rectangle)
        found[bar.get_height()] = ticks[round(bar.get_x() + bar.get_width() / 2)]
    assert found == {1.0: "S\n1.7B", 3.0: "S\n8B", 2.0: "S\n8B"}


@pytest.mark.parametrize("rows", [[], [{"problem_id": "level1/1_A", "text": "a"}]])
def test_answers_without_an_order_are_a_note(place, rows):
    """A server, and a model that writes from left to right, give no order."""
    write_jsonl(place / "answers.jsonl", rows)
    answers, out = str(place / "answers.jsonl"), str(place / "f.csv")
    config = FigureConfig(number=2, title="F", kind="decoding_order", scale="tiny", generations=answers, out=out)
    found = make_figure(config)
    assert [row["note"] for row in found] == ["no answer says in which order its tokens were fixed"]
