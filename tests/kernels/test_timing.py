"""Statistics of timings, against values worked out by hand."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from dice.kernels.records.verdict import Speedup
from dice.kernels.timing import (
    HOST_RATIO,
    RESOLUTION_MS,
    STEP_MS,
    SYSTEMATIC,
    Side,
    abba,
    disagree,
    is_host_bound,
    paired_speedup,
    parts,
    ratio_of_means,
    summary,
)


def is_faster(speedup: Speedup | None) -> bool:
    """Whether the interval lies above 1: what the strict protocol counts as faster."""
    return speedup is not None and speedup.ci_low is not None and speedup.ci_low > 1.0


def test_summary_by_hand() -> None:
    timing = summary([1.0, 2.0, 3.0, 10.0])
    assert (timing.median, timing.mean, timing.n) == (2.5, 4.0, 4)
    assert timing.std == pytest.approx((50 / 3) ** 0.5)  # squares: 9 + 4 + 1 + 36, over n - 1
    assert summary([5.0]).std == 0.0


def test_the_papers_speedup_is_the_ratio_of_means() -> None:
    speedup = ratio_of_means([1.0, 3.0], [4.0, 8.0])
    assert speedup is not None
    assert (speedup.median, speedup.ci_low, speedup.ci_high) == (3.0, None, None)
    skewed = ratio_of_means([1.0, 1.0, 4.0], [2.0, 2.0, 2.0])  # the medians' ratio is 2
    assert skewed is not None
    assert skewed.median == 1.0


def test_times_that_no_clock_gives_make_no_statement() -> None:
    assert ratio_of_means([0.0], [1.0]) is None
    assert ratio_of_means([1.0], [-1.0]) is None
    assert paired_speedup(Side([(0.0, 0.0)]), Side([(1.0, 1.0)]), random.Random(0)) is None
    assert paired_speedup(Side([]), Side([]), random.Random(0)) is None
    with pytest.raises(ValueError, match="rounds"):
        paired_speedup(Side([(1.0, 1.0)]), Side([]), random.Random(0))


def test_the_order_is_abba_or_baab_and_both_occur() -> None:
    orders = abba(200, random.Random(1))
    assert set(orders) == {
        ("candidate", "reference", "reference", "candidate"),
        ("reference", "candidate", "candidate", "reference"),
    }
    assert 60 < sum(order[0] == "candidate" for order in orders) < 140


def test_equal_rounds_give_the_ratio_and_only_the_stated_slack() -> None:
    speedup = paired_speedup(Side([(1.0, 1.0)] * 10), Side([(2.0, 2.0)] * 10), random.Random(0))
    assert speedup is not None
    slack = 1 + SYSTEMATIC + RESOLUTION_MS / 1.0 + RESOLUTION_MS / 2.0
    assert speedup.median == 2.0
    assert speedup.ci_low == pytest.approx(2.0 / slack)
    assert speedup.ci_high == pytest.approx(2.0 * slack)


def test_the_resolution_of_events_dominates_tiny_kernels() -> None:
    speedup = paired_speedup(Side([(0.002, 0.002)] * 10), Side([(0.0025, 0.0025)] * 10), random.Random(0))
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
    speedup = paired_speedup(Side(mine), Side(theirs), random.Random(0))
    assert speedup is not None
    assert speedup.median == pytest.approx(1.0, abs=2e-4)


def test_one_outlier_moves_the_mean_but_not_the_median() -> None:
    mine = [(1.0, 1.0)] * 39 + [(100.0, 100.0)]
    theirs = [(1.5, 1.5)] * 40
    speedup = paired_speedup(Side(mine), Side(theirs), random.Random(0))
    assert speedup is not None
    assert speedup.median == 1.5


def test_equal_programs_are_hardly_ever_faster_and_different_ones_are() -> None:
    """10 % noise per call, 40 rounds, 300 experiments each. `faster` on equal programs is an error."""
    generator = random.Random(3)

    def experiment(ratio: float) -> bool:
        def pair(mean: float) -> tuple[float, float]:
            return (mean * generator.lognormvariate(0, 0.1), mean * generator.lognormvariate(0, 0.1))

        mine, theirs = [pair(1.0) for _ in range(40)], [pair(ratio) for _ in range(40)]
        return is_faster(paired_speedup(Side(mine), Side(theirs), random.Random(0)))

    assert sum(experiment(1.0) for _ in range(150)) <= 6
    assert sum(experiment(1.3) for _ in range(30)) == 30


def noisy_run(generator: random.Random, ratio: float, noise: float) -> Speedup:
    """A run of 40 rounds of two programs of about 1 ms; noise per round, as a standard deviation of the logarithm."""
    theirs = [(time := ratio * generator.lognormvariate(0, noise), time) for _ in range(40)]
    speedup = paired_speedup(Side([(1.0, 1.0)] * 40), Side(theirs), random.Random(0))
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


def test_a_ratio_the_other_way_round_has_the_inverse_interval() -> None:
    """Both ends of the bootstrap are equally far out. 41 rounds, so that a median is a value."""
    generator = random.Random(8)
    for _ in range(5):
        mine, theirs = (simulated(generator, ratio, noise=0.1) for ratio in (1.0, 1.3))
        mine, theirs = (Side([*side.rounds, side.rounds[0]]) for side in (mine, theirs))
        there, back = (paired_speedup(*sides, random.Random(0)) for sides in ((mine, theirs), (theirs, mine)))
        assert there is not None
        assert back is not None
        assert there.median * back.median == pytest.approx(1)
        assert there.ci_low is not None
        assert there.ci_high is not None
        assert there.ci_low * back.ci_high == pytest.approx(1, rel=0.01)
        assert there.ci_high * back.ci_low == pytest.approx(1, rel=0.01)


@pytest.mark.parametrize(
    ("shorter", "longer", "apart"),
    [
        (1.0, 1.0, False),
        (1.0, 1.4, False),
        (1.0, 1.6, True),
        (0.01, 0.09, False),
        (0.05, 0.09, False),
        (0.01, 0.12, True),
        (2.0, 1.0, False),
    ],
)
def test_clocks_disagree_beyond_a_ratio_and_beyond_jitter(shorter: float, longer: float, apart: bool) -> None:
    assert disagree(shorter, longer) is apart


def test_the_interval_does_not_hold_another_speedup() -> None:
    generator = random.Random(5)
    assert not any(inside(1.5, noisy_run(generator, 1.3, 0.05)) for _ in range(30))


# ---- simulated machines: what one try adds to both programs, to one of them, or to a few rounds ----

Rounds = list[tuple[float, float]]


def simulated(
    generator: random.Random, ratio: float, bias: float = 0.0, noise: float = 0.03, burst: float = 1.0
) -> Side:
    """40 rounds of a program of `ratio` ms on one try of a machine.

    bias: standard deviation of the logarithm of a factor on all its times in this try. noise: the same per call.
    burst: factor on five rounds in a row, somewhere.
    """
    factor = ratio * generator.lognormvariate(0, bias)
    first = generator.randrange(35)
    slow = [burst if first <= number < first + 5 else 1.0 for number in range(40)]
    return Side([tuple(factor * s * generator.lognormvariate(0, noise) for _ in range(2)) for s in slow])  # pyright: ignore[reportArgumentType]


def called_faster(generator: random.Random, ratio: float, tries: int, **machine: float) -> int:
    """How often a program that takes 1 ms is called faster than one that takes `ratio` ms."""
    pairs = [(simulated(generator, 1.0, **machine), simulated(generator, ratio, **machine)) for _ in range(tries)]
    return sum(is_faster(paired_speedup(mine, theirs, random.Random(0))) for mine, theirs in pairs)


@pytest.mark.parametrize(
    "machine", [{}, {"bias": 0.01}, {"noise": 0.2}, {"burst": 2.0}, {"bias": 0.01, "noise": 0.1, "burst": 1.5}], ids=str
)
def test_on_a_busy_machine_the_same_program_is_never_faster_and_a_double_speed_always(
    machine: dict[str, float],
) -> None:
    generator = random.Random(6)
    assert called_faster(generator, 1.0, 60, **machine) == 0
    assert called_faster(generator, 2.0, 15, **machine) == 15


def test_bursts_are_no_independent_rounds() -> None:
    """15 slow rounds in a row widen the interval, since the next run may have more or fewer of them."""

    def low(slow: Sequence[int]) -> float:
        mine = Side([(1.3, 1.3) if number in slow else (1.0, 1.0) for number in range(40)])
        speedup = paired_speedup(mine, Side([(1.2, 1.2)] * 40), random.Random(0))
        assert speedup is not None
        assert speedup.ci_low is not None
        assert speedup.median == pytest.approx(1.2)
        return speedup.ci_low

    assert low(range(10, 25)) < 1.0 < low(range(0, 36, 3))


def test_launches_within_the_times_make_them_uncertain() -> None:
    """What was seen on a shared host: 50 us of launches, a factor of 1.4 (one standard deviation) between tries."""
    generator = random.Random(7)

    def tries(host_ms: float, ratio: float) -> int:
        faster = 0
        for _ in range(40):
            mine, theirs = (simulated(generator, 0.05 * part, bias=0.25) for part in (1.0, ratio))
            mine, theirs = (Side(side.rounds, host_ms=host_ms) for side in (mine, theirs))
            faster += is_faster(paired_speedup(mine, theirs, random.Random(0)))
        return faster

    assert tries(0.0, 1.0) > 5  # so it was
    assert tries(4 * STEP_MS, 1.0) == 0
    assert tries(4 * STEP_MS, 10.0) == 40


def test_the_control_speaks_against_a_program_that_differs_from_itself() -> None:
    mine, theirs = Side([(1.0, 1.0)] * 40), Side([(1.5, 1.1)] * 40)
    speedup = paired_speedup(mine, theirs, random.Random(0))
    assert theirs.drift == pytest.approx(1.5 / 1.1)
    assert speedup is not None
    assert speedup.median == pytest.approx(1.3)
    assert not is_faster(speedup)
    assert is_faster(paired_speedup(mine, Side([(1.3, 1.3)] * 40), random.Random(0)))


def test_a_short_gpu_time_behind_long_launches_is_no_speed() -> None:
    theirs = Side([(0.05, 0.05)] * 10, [0.04] * 20)
    host_bound = Side([(0.01, 0.01)] * 10, [1.0] * 20)
    assert is_host_bound(host_bound, theirs)
    speedup = paired_speedup(host_bound, theirs, random.Random(0))
    assert speedup is not None
    assert speedup.median == pytest.approx(0.05)
    assert speedup.ci_high == pytest.approx(0.05 * HOST_RATIO)
    busy_at_times = Side([(0.01, 0.01)] * 10, [0.04] * 5 + [1.0] * 15)
    assert not is_host_bound(busy_at_times, theirs)
    assert is_faster(paired_speedup(busy_at_times, theirs, random.Random(0)))
    slow_on_the_gpu = Side([(10.0, 10.0)] * 10, [0.04] * 20)
    assert not is_host_bound(slow_on_the_gpu, theirs)


def test_parts_of_a_series_cannot_be_foreseen() -> None:
    seen = set()
    for seed in range(200):
        found = parts(100, 4, random.Random(seed))
        assert sum(found) == 100
        assert len(found) == 4
        assert min(found) >= 1
        assert max(found) >= 50
        seen.add(tuple(found))
    assert len(seen) > 150
    assert len({found.index(max(found)) for found in seen}) == 4
    assert parts(1, 4, random.Random(0)) == [1]
    assert sum(parts(3, 4, random.Random(0))) == 3
    assert parts(10, 1, random.Random(0)) == [10]
