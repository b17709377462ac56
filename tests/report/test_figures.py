"""Figures, LaTeX and the numbers of the prose."""

from __future__ import annotations

import csv

import pytest
from matplotlib.patches import Rectangle
from scored import table

from dice.jsonl import write_jsonl
from dice.report.figures import FigureConfig, draw, make_figure
from dice.report.latex import escape, table_tex
from dice.report.tex import TexConfig, write_tex


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
