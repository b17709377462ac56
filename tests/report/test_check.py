"""What was measured against what the paper reports."""

from __future__ import annotations

import math
import random

import pytest
from scored import table

from dice.cli import main
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
        # 3,031 answers: 2.5 points above, and the interval reaches from 0.02 below 0 to 5.02, just too far
        ({"l1_exec_low": "48.22", "l1_exec_high": "51.78", "l1_exec_reported": "47.5"}, "cannot be told"),
        ({"l1_exec": ""}, "not measured"),
        ({"status": "reported"}, "not measured"),
        ({"l1_exec_reported": ""}, "not comparable"),
        ({"l1_exec": "10.0", "l1_exec_low": "", "l1_exec_high": "", "l1_exec_reported": "10.0"}, "agrees"),
        (
            {"l1_exec": "21.0", "l1_exec_low": "", "l1_exec_high": "", "l1_exec_reported": "20.0"},
            "agrees",
        ),  # 5 % of 20 is 1
        ({"l1_exec": "19.0", "l1_exec_low": "", "l1_exec_high": "", "l1_exec_reported": "20.0"}, "agrees"),
        ({"l1_exec": "18.9", "l1_exec_low": "", "l1_exec_high": "", "l1_exec_reported": "20.0"}, "differs"),
        ({"l1_exec": "-18.9", "l1_exec_low": "", "l1_exec_high": "", "l1_exec_reported": "-19.0"}, "agrees"),
    ],
)
def test_check_says_what_agrees(change, word):
    row = {"l1_exec": "50.0", "l1_exec_low": "40.0", "l1_exec_high": "60.0", "l1_exec_reported": "47.0"}
    assert judge(row | {"status": "measured", "scale": "paper"} | change, "l1_exec") == word


@pytest.mark.parametrize(("hits", "n"), [(0, 40), (7, 100), (50, 100), (100, 100), (4.5, 12.25)])
def test_the_number_of_answers_is_read_off_the_interval(hits, n):
    assert answers_behind(*wilson(hits, n)) == pytest.approx(n)


@pytest.mark.parametrize(
    ("n", "mine", "theirs", "least", "most"), [(10, 9, 3, 0.1705, 0.8090), (7, 6, 2, 0.0582, 0.8062)]
)
def test_the_interval_of_a_difference_is_that_of_the_publication(n, mine, theirs, least, most):
    """Examples of R. G. Newcombe 1998 (Statistics in Medicine 17), Table II, method 10."""
    found = difference_interval(mine / n, *wilson(mine, n), theirs / n)
    assert found == (pytest.approx(least, abs=5e-5), pytest.approx(most, abs=5e-5))
    turned = difference_interval(theirs / n, *wilson(theirs, n), mine / n)
    assert turned == (pytest.approx(-most, abs=5e-5), pytest.approx(-least, abs=5e-5))


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


def test_the_command_counts_cells_and_the_page_lists_them_by_table(tmp_path, capsys):
    """Two tables: one cell differs, one has another power, one is not measured."""

    def cells(name: str, hits: int, n: int, reported: str, **changes: str) -> dict[str, str]:
        low, high = wilson(hits, n)
        row = {"row": name, "l1_exec": f"{100 * hits / n:.1f}", "l1_exec_low": f"{100 * low:.6f}"}
        row |= {"l1_exec_high": f"{100 * high:.6f}", "l1_exec_reported": reported}
        return row | {"status": "measured", "scale": "paper", "reason": ""} | changes

    write_csv(tmp_path / "table1.csv", [cells("a", 30, 60, "90.0"), cells("b", 60, 100, "60.0")])
    write_csv(tmp_path / "table2.csv", [cells("c", 1, 2, "1.0", l1_exec="", status="reported", reason="gone")])
    tables = [str(tmp_path / f"table{k}.csv") for k in (1, 2)]
    assert main(["check", "--tables", *tables, "--out", str(tmp_path / "check.csv")]) == 0
    assert "1 differs, 1 cannot be told, 1 not measured" in capsys.readouterr().out
    rows = read_csv(tmp_path / "check.csv")
    assert [(row["table"], row["row"], row["metric"], row["result"], row["reason"]) for row in rows] == [
        ("table1", "a", "l1_exec", "differs", ""),
        ("table1", "b", "l1_exec", "cannot be told", ""),
        ("table2", "c", "l1_exec", "not measured", "gone"),
    ]
    assert rows[0]["interval"] == f"{100 * wilson(30, 60)[0]:.6f}/{100 * wilson(30, 60)[1]:.6f}"
    powers = [100 * power(0.9, 60), 100 * power(0.6, 100)]
    page = (tmp_path / "check.md").read_text()
    assert page.startswith(
        "# Measured against reported\n\n"
        "| table | agrees | differs | cannot be told | not comparable | not measured |\n|---|---|---|---|---|---|\n"
        "| table1 | 0 | 1 | 1 | 0 | 0 |\n| table2 | 0 | 0 | 0 | 0 | 1 |\n\n"
    )
    assert f"between {min(powers):.0f} and {max(powers):.0f} % of studies of this size" in page
    assert f"{sum(powers) / 2:.0f} % on average" in page
    assert "## Cells that differ: 1\n\n- table1, a, l1_exec" in page
    assert "0 of 0 differences can be told" in page


def test_more_than_the_whole_is_less_than_it():
    """Five points above 96 % there is nothing: the power is that of a model five points below."""
    expected = 0.0
    for right in range(21):
        least, most = difference_interval(right / 20, *wilson(right, 20), 0.96)
        expected += math.comb(20, right) * 0.91**right * 0.09 ** (20 - right) * (least > 0 or most < 0)
    assert power(0.96, 20) == pytest.approx(expected, rel=1e-9)
    assert power(0.95, 20) > 0, "at 95 % five points more would be certain"
