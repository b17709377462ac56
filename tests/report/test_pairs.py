"""Rows compared on the same problems: against simulated studies, counts by hand, and refusals."""

from __future__ import annotations

import csv
import dataclasses
import functools
import math
import random

import pytest

from dice.errors import DiceError
from dice.evaluation.score import LevelScore, Metric, Rate, Score, rate
from dice.report.check import CheckConfig, check, difference_interval, judge, power
from dice.report.pairs import PairEvidence, compared, paired_interval


def answered(hits: list[int], seeds: int = 1) -> Rate:
    return rate([[(f"level1/{k}", bool(hit)) for k, hit in enumerate(hits)]] * seeds)


def study(draw: random.Random, kinds: list[tuple[float, float]], seeds: int) -> tuple[Rate, Rate]:
    """Two models on 100 problems; a problem of each kind is solved by the one and the other with these chances."""
    chances = draw.choices(kinds, k=100)
    both = (
        [[(str(k), draw.random() < chance[who]) for k, chance in enumerate(chances)] for _ in range(seeds)]
        for who in (0, 1)
    )
    one, other = map(rate, both)
    return one, other


@pytest.mark.parametrize("seeds", [1, 3])
def test_the_interval_holds_the_true_difference_and_is_shorter_than_that_of_two_studies(seeds):
    """Most problems are too hard for both or solved by both; the models differ on the others, by 10 points in all."""
    kinds = [(0.02, 0.02)] * 5 + [(0.95, 0.95)] * 3 + [(0.7, 0.2)] * 2
    draw, held, paired, apart = random.Random(seeds), 0, 0.0, 0.0
    for _ in range(400):
        one, other = study(draw, kinds, seeds)
        low, high = paired_interval(one, other)
        held += low <= 0.1 <= high
        paired += high - low
        if seeds == 1:
            least, most = difference_interval(one.value, one.low, one.high, other.value)
            apart += most - least
    assert 0.92 < held / 400 < 0.985
    assert seeds > 1 or paired < 0.8 * apart


def test_models_that_do_not_differ_are_seldom_told_apart():
    draw, told = random.Random(7), 0
    for _ in range(400):
        low, high = paired_interval(*study(draw, [(0.1, 0.1), (0.5, 0.5), (0.9, 0.9)], 1))
        told += low > 0 or high < 0
    assert told / 400 < 0.08


def test_the_same_answers_under_three_seeds_tell_no_more_than_under_one():
    mine, theirs = [1, 1, 1, 0, 0, 1, 0, 1], [1, 0, 0, 0, 0, 1, 0, 1]
    once = paired_interval(answered(mine), answered(theirs))
    assert paired_interval(answered(mine, 3), answered(theirs, 3)) == pytest.approx(once)
    assert once[0] < 0.25 < once[1]


def test_each_end_is_made_from_the_ends_that_face_it():
    """Nothing solved against a quarter: by hand, since the rows have no correlation where one is constant."""
    none, quarter = answered([0] * 20), answered([1] * 5 + [0] * 15)
    low, high = paired_interval(none, quarter)
    assert low == pytest.approx(-quarter.high)
    assert high == pytest.approx(-0.25 + (none.high**2 + (0.25 - quarter.low) ** 2) ** 0.5)
    assert paired_interval(quarter, none) == pytest.approx((-high, -low))
    assert paired_interval(none, none) == pytest.approx((-none.high, none.high))


def test_the_interval_by_hand():
    """Newcombe's method 8. Of ten problems the one solves the first six, the other the first three and the last: in units
    of 1/100 the covariance is 3/10 - 6/10 x 4/10 = 6, the variances are 24 each, so that the correlation is 1/4."""
    one, other = answered([1] * 6 + [0] * 4), answered([1] * 3 + [0] * 6 + [1])
    down, up = 0.6 - one.low, other.high - 0.4
    assert paired_interval(one, other)[0] == pytest.approx(0.2 - (down**2 - down * up / 2 + up**2) ** 0.5)
    down, up = one.high - 0.6, 0.4 - other.low
    assert paired_interval(one, other)[1] == pytest.approx(0.2 + (down**2 - down * up / 2 + up**2) ** 0.5)


def test_a_row_does_not_differ_from_itself():
    """Half of it is right, so that both ends of its interval are as far away; its correlation may be rounded to above 1."""
    for half in range(1, 120):
        mine = answered([1, 0] * half)
        assert paired_interval(mine, mine) == pytest.approx((0, 0), abs=1e-6)


def test_rows_about_other_problems_are_refused():
    with pytest.raises(DiceError, match="different problems"):
        paired_interval(answered([1, 0]), answered([1, 0, 0]))


def scored(path, hits: list[int], fast: list[int] | None = None) -> str:
    metrics: dict[Metric, Rate | None] = {
        "exec": answered(hits),
        "fast1": answered(fast) if fast else None,
        "fast2": None,
    }
    level = LevelScore(level=1, robust=True, metrics=metrics, statuses={})
    score = Score(backend="cpu", protocol="paper", seeds=1, problems=len(hits), levels=[level], failures={}, gpus=[])
    path.write_text(score.model_dump_json())
    return str(path)


def test_check_writes_who_is_better_on_which_problems(tmp_path):
    better = [1] * 30 + [0] * 10
    mine = scored(tmp_path / "dice.json", better)
    pair = functools.partial(PairEvidence, table="table6", row="8B-dice", against="8B-sft", score=mine)
    weaker = scored(tmp_path / "sft.json", [0] * 12 + [1] * 18 + [0] * 9 + [1])
    (told,) = compared(pair(score_against=weaker))
    assert (told["measured"], told["measured_against"], told["difference"]) == ("75.0", "47.5", "27.5")
    assert (told["problems"], told["better_on"], told["worse_on"], told["result"]) == ("40", "12", "1", "better")
    assert float(told["low"]) > 0
    (worse,) = compared(pair(row="8B-sft", against="8B-dice", score=weaker, score_against=mine))
    assert (worse["difference"], worse["result"]) == ("-27.5", "worse")
    timed = scored(tmp_path / "timed.json", better, fast=better)
    assert [line["metric"] for line in compared(pair(score_against=timed))] == ["exec"]
    same = scored(tmp_path / "same.json", better[::-1])
    (tmp_path / "table6.csv").write_text("row,l1_exec,l1_exec_reported,status,scale,reason\nx,,1.0,reported,tiny,\n")
    config = CheckConfig(
        tables=(str(tmp_path / "table6.csv"),),
        pairs=tuple(pair(score_against=other) for other in (weaker, same)),
        out=str(tmp_path / "check.csv"),
    )  # fmt: skip
    check(config)
    rows = list(csv.DictReader((tmp_path / "pairs.csv").open()))
    assert [row["result"] for row in rows] == ["better", "cannot be told"]
    page = (tmp_path / "check.md").read_text()
    assert "8B-dice is better than 8B-sft, level 1, exec: 27.5 points" in page
    assert "1 of 2 differences can be told" in page
    assert str(tmp_path / "sft.json") in (tmp_path / "check.csv.manifest.json").read_text()
    check(CheckConfig(tables=config.tables, out=config.out))
    assert (tmp_path / "pairs.csv").read_text().startswith("table,row,against,level")


@pytest.mark.parametrize(("reported", "answers"), [(0.0, 100), (0.08, 50), (0.47, 100), (0.5, 1500), (0.98, 200)])
def test_the_power_is_how_often_simulated_studies_differ(reported, answers):
    """A model 5 points better (worse, above 95 %) is measured 300 times and judged as a table's cell is."""
    draw, differ = random.Random(answers), 0
    true = reported + 0.05 if reported < 0.95 else reported - 0.05
    for _ in range(300):
        found = answered([draw.random() < true for _ in range(answers)])
        cells = {"x": found.value, "x_low": found.low, "x_high": found.high, "x_reported": reported}
        row = {name: f"{100 * value:.4f}" for name, value in cells.items()} | {"status": "measured", "scale": "paper"}
        differ += judge(row, "x") == "differs"
    assert power(reported, answers) == pytest.approx(differ / 300, abs=0.08)


@pytest.mark.parametrize(("reported", "answers"), [(0.0, 5), (0.3, 12), (0.9, 8)])
def test_the_power_is_a_sum_of_binomial_chances(reported, answers):
    expected = 0.0
    for right in range(answers + 1):
        found = answered([1] * right + [0] * (answers - right))
        least, most = difference_interval(found.value, found.low, found.high, reported)
        chance = math.comb(answers, right) * (reported + 0.05) ** right * (0.95 - reported) ** (answers - right)
        expected += chance * (least > 0 or most < 0)
    assert power(reported, answers) == pytest.approx(expected, rel=1e-9)
    assert expected > 0


def test_more_answers_have_more_power():
    assert power(0.47, 100) < 0.2 < 0.8 < power(0.47, 4000)


def test_each_level_and_reading_is_compared_with_its_own(tmp_path):
    """Level 2 is missing in the other row, and without the check the answers are turned round."""

    def level(number: int, robust: bool, hits: list[int]) -> LevelScore:
        return LevelScore(level=number, robust=robust, metrics={"exec": answered(hits), "fast1": None}, statuses={})

    def write(name: str, levels: list[LevelScore]) -> str:
        common = {"backend": "cpu", "protocol": "paper", "seeds": 1, "problems": 40, "failures": {}, "gpus": []}
        (tmp_path / name).write_text(Score(levels=levels, **common).model_dump_json())
        return str(tmp_path / name)

    good, bad = [1] * 30 + [0] * 10, [0] * 30 + [1] * 10
    mine = write("mine.json", [level(1, True, good), level(1, False, bad), level(2, True, good), level(3, True, bad)])
    theirs = write("theirs.json", [level(1, True, bad), level(1, False, good), level(3, True, bad)])
    pair = PairEvidence(table="t", row="a", against="b", score=mine, score_against=theirs)
    lines = compared(pair)
    assert [(line["level"], line["metric"], line["result"]) for line in lines] == [
        ("1", "exec", "better"),
        ("3", "exec", "cannot be told"),
    ]
    assert (lines[1]["better_on"], lines[1]["worse_on"]) == ("0", "0")
    (plain,) = compared(dataclasses.replace(pair, robust=False))
    assert (plain["result"], plain["difference"], plain["better_on"], plain["worse_on"]) == (
        "worse",
        "-50.0",
        "10",
        "30",
    )
    other = write("other.json", [level(1, True, [1, 0])])
    with pytest.raises(DiceError, match="t, a against b: two rows that were asked different problems"):
        compared(dataclasses.replace(pair, score_against=other))
