import itertools
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dice.cli import main
from dice.data.difficulty import Difficulty
from dice.data.schedule import PlannedStep, Schedule, by_difficulty, planned_steps
from dice.errors import DiceError
from dice.jsonl import read_jsonl, write_jsonl

ORDERS = ("paper", "released", "uniform")
PAPER_LEVELS = [0] + [1] * 590 + [2] * 3407 + [3] * 2
"""The levels of the published 4,000 programs."""

level_lists = st.lists(st.integers(1, 3), min_size=1, max_size=60)


def drawn(schedule):
    return [item for step in range(1, schedule.steps + 1) for item in schedule.items(step)]


@given(level_lists, st.sampled_from(ORDERS), st.integers(1, 12), st.integers(1, 20), st.integers(0, 9))
@settings(max_examples=60, deadline=None)
def test_a_plan_is_a_function_of_its_arguments(levels, order, steps, per_step, seed):
    first, second = (Schedule(levels, order, steps=steps, per_step=per_step, seed=seed) for _ in range(2))
    backwards = {step: second.items(step) for step in range(steps, 0, -1)}
    for step in range(1, steps + 1):
        assert first.items(step) == backwards[step]
        assert len(first.items(step)) == per_step
        assert all(0 <= item < len(levels) for item in first.items(step))


@given(level_lists, st.integers(1, 12), st.integers(1, 20), st.integers(0, 9))
@settings(max_examples=80, deadline=None)
def test_paper_order_is_one_pass_from_easy_to_hard(levels, steps, per_step, seed):
    schedule = Schedule(levels, "paper", steps=steps, per_step=per_step, seed=seed)
    taken = [[levels[item] for item in schedule.items(step)] for step in range(1, steps + 1)]
    if len(levels) >= per_step:
        for earlier, later in itertools.pairwise(taken):
            assert min(earlier) <= min(later)
            assert max(earlier) <= max(later)
            assert all(a <= b for a, b in zip(earlier, later, strict=True))
        assert all(len(set(schedule.items(step))) == per_step for step in range(1, steps + 1))
        counts = Counter(drawn(schedule))
        if steps > 1:
            stride = (len(levels) - per_step) / (steps - 1)
            assert max(counts.values()) <= (per_step / stride + 1 if stride else steps)
            assert stride > per_step or len(counts) == len(levels)
            assert stride < per_step or set(counts.values()) == {1}
            assert taken[0] == sorted(levels)[:per_step]
            assert taken[-1] == sorted(levels)[-per_step:]


def test_a_step_of_few_problems_has_all_of_them_and_the_easiest_again():
    assert Schedule([2, 1], "paper", steps=2, per_step=3).items(2) == [1, 1, 0]
    assert Schedule([3, 1, 2], "paper", steps=1, per_step=7).items(1) == [1, 1, 1, 2, 2, 0, 0]


@pytest.mark.parametrize("order", ORDERS)
def test_every_problem_is_taken_equally_often_when_the_passes_are_whole(order):
    passes = 1 if order == "paper" else 3
    schedule = Schedule([1, 2, 3, 1] * 16, order, steps=8 * passes, per_step=8, seed=4)
    assert set(Counter(drawn(schedule)).values()) == {passes}


@given(st.integers(1, 50), st.integers(1, 12), st.integers(1, 20), st.integers(0, 9))
@settings(max_examples=60, deadline=None)
def test_uniform_counts_never_differ_by_more_than_one(n, steps, per_step, seed):
    schedule = Schedule([1] * n, "uniform", steps=steps, per_step=per_step, seed=seed)
    counts = Counter(drawn(schedule))
    assert max(counts.values()) - min(counts.get(item, 0) for item in range(n)) <= 1


def test_uniform_passes_differ_and_follow_the_seed():
    passes = [Schedule([1] * 40, "uniform", steps=2, per_step=40, seed=seed) for seed in (0, 1)]
    assert passes[0].items(1) != passes[0].items(2)
    assert passes[0].items(1) != passes[1].items(1)


def test_released_order_of_the_published_file_starts_over_in_step_63():
    schedule = Schedule(PAPER_LEVELS, "released", steps=100, per_step=64, seed=7)
    assert schedule.epoch(63.5) == 1.0  # pyright: ignore[reportArgumentType] - one pass is 62.5 steps
    assert schedule.items(1) == list(range(64))
    assert schedule.items(63) == [*range(3968, 4000), *range(32)]
    assert schedule.items(64) == list(range(32, 96))
    levels = [{PAPER_LEVELS[item] for item in schedule.items(step)} for step in range(1, 101)]
    assert levels[70] == {1}  # easy again, after the hardest
    assert levels[80] == {2}


def test_paper_order_of_the_published_file_ends_with_the_hardest():
    schedule = Schedule(PAPER_LEVELS, "paper", steps=100, per_step=64)
    assert {PAPER_LEVELS[item] for item in schedule.items(1)} == {0, 1}
    assert PAPER_LEVELS[schedule.items(100)[-1]] == 3
    counts = Counter(drawn(schedule))
    assert set(counts.values()) == {1, 2}
    assert len(counts) == 4000


def test_the_order_within_a_level_follows_the_seed_only_where_one_is_given():
    levels = [2, 1, 2, 1, 2]
    assert by_difficulty(levels, None) == [1, 3, 0, 2, 4]
    orders = {tuple(by_difficulty(levels, seed)) for seed in range(20)}
    assert len(orders) > 3
    assert all(sorted(order[:2]) == [1, 3] for order in orders)


@pytest.mark.parametrize(("levels", "steps", "per_step"), [([], 1, 1), ([1], 0, 1), ([1], 1, 0)])
def test_an_empty_plan_is_refused(levels, steps, per_step):
    with pytest.raises(DiceError, match="make no plan"):
        Schedule(levels, "paper", steps=steps, per_step=per_step)


def test_a_step_outside_the_plan_is_an_error():
    with pytest.raises(ValueError, match="step 3 is not one of 1 to 2"):
        Schedule([1], "paper", steps=2, per_step=1).items(3)


def test_the_stage_writes_the_plan(tmp_path, capsys):
    labels = [Difficulty(id=f"p{n}", level=1 + n % 3, by="source") for n in range(12)]
    write_jsonl(tmp_path / "labels.jsonl", labels)
    arguments = ["schedule", "--labels", str(tmp_path / "labels.jsonl"), "--steps", "3", "--per-step", "4"]
    assert main([*arguments, "--out", str(tmp_path / "plan.jsonl")]) == 0
    rows = list(read_jsonl(tmp_path / "plan.jsonl", PlannedStep))
    assert [row.level_mean for row in rows] == [1, 2, 3]
    assert sorted(name for row in rows for name in row.ids) == sorted(label.id for label in labels)
    assert (tmp_path / "plan.jsonl.manifest.json").is_file()
    assert "step    3" in capsys.readouterr().out


def test_a_planned_step_says_how_far_its_levels_reach():
    plan = list(planned_steps(Schedule([3, 1, 2, 3], "released", steps=2, per_step=3), list("abcd")))
    assert [(one.step, one.epoch, one.items, one.ids) for one in plan] == [
        (1, 0, [1, 2, 0], ["b", "c", "a"]),
        (2, 0.75, [3, 1, 2], ["d", "b", "c"]),
    ]
    assert [(one.level_min, one.level_mean, one.level_max) for one in plan] == [(1, 2, 3), (1, 2, 3)]
    (uneven,) = planned_steps(Schedule([1, 1, 3], "paper", steps=1, per_step=3), list("abc"))
    assert (uneven.level_min, uneven.level_mean, uneven.level_max) == (1, 1.6667, 3)


def test_rows_without_a_level_are_refused_where_the_order_needs_one(tmp_path, capsys):
    write_jsonl(tmp_path / "labels.jsonl", [Difficulty(id="odd", level=None, by="source")])
    arguments = ["schedule", "--labels", str(tmp_path / "labels.jsonl"), "--steps", "1", "--per-step", "1"]
    assert main(arguments) == 2
    assert "'odd' has no level" in capsys.readouterr().err
    assert main([*arguments, "--order", "uniform"]) == 0


def test_replacements_by_hand():
    levels = [1, 2, 3, 4, 5, 6]
    paper = Schedule(levels, "paper", steps=3, per_step=2)
    assert [paper.items(step) for step in (1, 2, 3)] == [[0, 1], [2, 3], [4, 5]]
    assert paper.replacements(1) == [2, 3, 4, 5, 0, 1]
    assert paper.replacements(2) == [4, 5, 1, 0, 2, 3]  # harder first, then the easier ones next to the window
    assert paper.replacements(3) == [3, 2, 1, 0, 4, 5]
    released = Schedule(levels, "released", steps=3, per_step=4)
    assert released.items(2) == [4, 5, 0, 1]
    assert released.replacements(2) == [2, 3, 4, 5, 0, 1]
    uniform = Schedule(levels, "uniform", steps=3, per_step=2, seed=5)
    orders = [uniform.replacements(step) for step in (1, 2, 3)]
    for step, order in enumerate(orders, 1):
        assert sorted(order) == list(range(6))
        assert order[-2:] == uniform.items(step)
        assert order == Schedule(levels, "uniform", steps=3, per_step=2, seed=5).replacements(step)
    assert Schedule([1], "paper", steps=2, per_step=3).replacements(1) == [0]
    assert (
        Schedule(list(range(40)), "uniform", steps=3, per_step=2).replacements(1)[:-2]
        != Schedule(list(range(40)), "uniform", steps=3, per_step=2).replacements(2)[:-2]
    )
