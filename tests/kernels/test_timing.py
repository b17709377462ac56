"""Statistics of timings, against values worked out by hand."""

from __future__ import annotations

import random

import pytest

from dice.kernels.timing import (
    RESOLUTION_MS,
    SYSTEMATIC,
    abba,
    is_faster,
    paired_speedup,
    ratio_of_means,
    summary,
)
from dice.kernels.verdict import Speedup


def test_summary_by_hand() -> None:
    timing = summary([1.0, 2.0, 3.0, 10.0])
    assert (timing.median, timing.mean, timing.n) == (2.5, 4.0, 4)
    assert timing.std == pytest.approx((50 / 3) ** 0.5)  # squares: 9 + 4 + 1 + 36, over n - 1
    assert summary([5.0]).std == 0.0


def test_the_papers_speedup_is_the_ratio_of_means() -> None:
    speedup = ratio_of_means([1.0, 3.0], [4.0, 8.0])
    assert speedup is not None
    assert (speedup.median, speedup.ci_low, speedup.ci_high) == (3.0, None, None)


def test_times_that_no_clock_gives_make_no_statement() -> None:
    assert ratio_of_means([0.0], [1.0]) is None
    assert ratio_of_means([1.0], [-1.0]) is None
    assert paired_speedup([(0.0, 0.0)], [(1.0, 1.0)], random.Random(0)) is None
    assert paired_speedup([], [], random.Random(0)) is None
    with pytest.raises(ValueError, match="rounds"):
        paired_speedup([(1.0, 1.0)], [], random.Random(0))


def test_the_order_is_abba_or_baab_and_both_occur() -> None:
    orders = abba(200, random.Random(1))
    assert set(orders) == {
        ("candidate", "reference", "reference", "candidate"),
        ("reference", "candidate", "candidate", "reference"),
    }
    assert 60 < sum(order[0] == "candidate" for order in orders) < 140


def test_equal_rounds_give_the_ratio_and_only_the_stated_slack() -> None:
    speedup = paired_speedup([(1.0, 1.0)] * 10, [(2.0, 2.0)] * 10, random.Random(0))
    assert speedup is not None
    slack = 1 + SYSTEMATIC + RESOLUTION_MS / 1.0 + RESOLUTION_MS / 2.0
    assert speedup.median == 2.0
    assert speedup.ci_low == pytest.approx(2.0 / slack)
    assert speedup.ci_high == pytest.approx(2.0 * slack)


def test_the_resolution_of_events_dominates_tiny_kernels() -> None:
    speedup = paired_speedup([(0.002, 0.002)] * 10, [(0.0025, 0.0025)] * 10, random.Random(0))
    assert speedup is not None
    assert speedup.ci_low is not None
    assert speedup.median == pytest.approx(1.25)
    assert speedup.ci_low < 1.0 < speedup.median


def test_a_linear_drift_cancels_within_rounds() -> None:
    """Both programs take the same time, and the machine slows down by 1 % per call."""
    mine, theirs = [], []
    time = 1.0
    for order in abba(40, random.Random(2)):
        times: dict[str, list[float]] = {"candidate": [], "reference": []}
        for turn in order:
            times[turn].append(time)
            time *= 1.01
        mine.append((times["candidate"][0], times["candidate"][1]))
        theirs.append((times["reference"][0], times["reference"][1]))
    speedup = paired_speedup(mine, theirs, random.Random(0))
    assert speedup is not None
    assert speedup.median == pytest.approx(1.0, abs=2e-4)


def test_one_outlier_moves_the_mean_but_not_the_median() -> None:
    mine = [(1.0, 1.0)] * 39 + [(100.0, 100.0)]
    theirs = [(1.5, 1.5)] * 40
    speedup = paired_speedup(mine, theirs, random.Random(0))
    assert speedup is not None
    assert speedup.median == 1.5


def test_equal_programs_are_hardly_ever_faster_and_different_ones_are() -> None:
    """10 % noise per call, 40 rounds, 300 experiments each. `faster` on equal programs is an error."""
    generator = random.Random(3)

    def experiment(ratio: float) -> bool:
        def pair(mean: float) -> tuple[float, float]:
            return (mean * generator.lognormvariate(0, 0.1), mean * generator.lognormvariate(0, 0.1))

        mine, theirs = [pair(1.0) for _ in range(40)], [pair(ratio) for _ in range(40)]
        return is_faster(paired_speedup(mine, theirs, random.Random(0)), 1.0)

    assert sum(experiment(1.0) for _ in range(150)) <= 6
    assert sum(experiment(1.2) for _ in range(30)) == 30


def test_faster_means_strictly_and_by_the_lower_bound() -> None:
    assert is_faster(Speedup(median=1.01, ci_low=None, ci_high=None), 1.0)
    assert not is_faster(Speedup(median=1.0, ci_low=None, ci_high=None), 1.0)
    assert not is_faster(Speedup(median=1.5, ci_low=1.0, ci_high=2.0), 1.0)
    assert is_faster(Speedup(median=1.5, ci_low=1.1, ci_high=2.0), 1.0)
    assert not is_faster(None, 1.0)


def noisy_run(generator: random.Random, ratio: float, noise: float) -> Speedup:
    """A run of 40 rounds of two programs of about 1 ms; noise per round, as a standard deviation of the logarithm."""
    theirs = [(time := ratio * generator.lognormvariate(0, noise), time) for _ in range(40)]
    speedup = paired_speedup([(1.0, 1.0)] * 40, theirs, random.Random(0))
    assert speedup is not None
    return speedup


def inside(value: float, speedup: Speedup) -> bool:
    assert speedup.ci_low is not None
    assert speedup.ci_high is not None
    return speedup.ci_low <= value <= speedup.ci_high


def test_the_interval_holds_the_truth_and_a_repetition() -> None:
    """95 % nominal for the median of a second run, also where noise is far above the stated slack."""
    generator = random.Random(4)
    truth, repeated = 0, 0
    for _ in range(150):
        first, second = (noisy_run(generator, 1.3, 0.15) for _ in range(2))
        truth += inside(1.3, first)
        repeated += inside(second.median, first)
    assert truth >= 144
    assert repeated >= 138


def test_the_interval_does_not_hold_another_speedup() -> None:
    generator = random.Random(5)
    assert not any(inside(1.5, noisy_run(generator, 1.3, 0.05)) for _ in range(30))
