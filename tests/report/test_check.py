"""What was measured against what the paper reports."""

from __future__ import annotations

import random

import pytest
from scored import table

from dice.evaluation.score import wilson
from dice.report.check import CheckConfig, answers_behind, check, difference_interval, judge, power
from dice.report.rows import percent, read_csv, write_csv


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({}, "cannot be told"),
        ({"l1_exec_reported": "61.0"}, "cannot be told"),  # outside the interval, but the paper's number has one too
        ({"l1_exec_reported": "70.0"}, "differs"),
        ({"l1_exec_reported": "29.0"}, "differs"),
        ({"l1_exec_low": "49.0", "l1_exec_high": "51.0"}, "differs"),
        ({"l1_exec_low": "49.0", "l1_exec_high": "51.0", "l1_exec_reported": "49.0"}, "agrees"),
        ({"l1_exec_low": "", "l1_exec_high": "", "l1_exec_reported": "47.7"}, "agrees"),  # within 5 % of it
        ({"l1_exec_low": "", "l1_exec_high": "", "l1_exec_reported": "47.5"}, "differs"),
        ({"l1_exec_low": "", "l1_exec_high": "", "l1_exec_reported": "52.8"}, "differs"),
        ({"scale": "tiny"}, "not comparable"),
        ({"l1_exec": "n/a"}, "not comparable"),
        ({"status": "reported", "l1_exec": ""}, "not measured"),
    ],
)
def test_check_says_what_agrees(change, word):
    row = {"l1_exec": "50.0", "l1_exec_low": "40.0", "l1_exec_high": "60.0", "l1_exec_reported": "47.0"}
    assert judge(row | {"status": "measured", "scale": "paper"} | change, "l1_exec") == word


@pytest.mark.parametrize(("hits", "n"), [(0, 40), (7, 100), (50, 100), (100, 100), (4.5, 12.25)])
def test_the_number_of_answers_is_read_off_the_interval(hits, n):
    assert answers_behind(*wilson(hits, n)) == pytest.approx(n)


def test_two_equal_models_seldom_differ():
    draw = random.Random(1)
    differ = 0
    for _ in range(500):
        mine, theirs = (sum(draw.random() < 0.3 for _ in range(100)) / 100 for _ in range(2))
        least, most = difference_interval(mine, *wilson(100 * mine, 100), theirs)
        differ += least > 0 or most < 0
    assert differ / 500 < 0.08


def test_the_power_of_a_cell_is_that_of_the_answers_behind_its_interval(tmp_path):
    low, high = wilson(30, 60)
    cells = {"row": "x", "l1_exec": "50.0", "l1_exec_low": f"{100 * low:.6f}", "l1_exec_high": f"{100 * high:.6f}"}
    cells |= {"l1_exec_reported": "80.0", "status": "measured", "scale": "paper", "reason": ""}
    write_csv(tmp_path / "table1.csv", [cells])
    (found,) = check(CheckConfig(tables=(str(tmp_path / "table1.csv"),), out=str(tmp_path / "check.csv")))
    assert found["result"] == "differs"
    assert found["power_5_points"] == percent(power(0.8, 60))
    assert "## Cells that differ: 1\n\n- table1, x, l1_exec: measured 50.0" in (tmp_path / "check.md").read_text()


def test_check_writes_every_cell(place):
    table(place)
    cells = check(CheckConfig(tables=(str(place / "table1.csv"),), out=str(place / "check.csv")))
    assert [cell["result"] for cell in cells] == ["not comparable", "not comparable", "not measured", "not measured"]
    assert "| table1 | 0 | 0 | 0 | 2 | 2 |" in (place / "check.md").read_text()
    assert {cell["power_5_points"] for cell in cells} == {""}
    compared = [row | {"scale": "paper"} for row in read_csv(place / "table1.csv")]
    write_csv(place / "table1.csv", compared)
    told = check(CheckConfig(tables=(str(place / "table1.csv"),), out=str(place / "check.csv")))
    assert [(cell["result"], bool(cell["power_5_points"])) for cell in told][:2] == [
        ("cannot be told", True),
        ("not comparable", False),
    ]
    assert "A model 5 points above the paper's number would be said to differ in" in (place / "check.md").read_text()
