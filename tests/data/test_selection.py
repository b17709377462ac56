import pytest

from dice.data.pair import Measured, Pair
from dice.data.selection import (
    RANGES,
    RULES,
    Drop,
    Rule,
    answer_of,
    best_try,
    histogram,
    passes,
    preference,
    with_best_try,
)
from dice.kernels.records.verdict import Host, Speedup, Status, Verdict

HOST = Host(gpu="G", driver=None, cuda=None, torch="2", cpu="c", isolation=[])


def verdict(status: Status = "correct", speedup=None, low=None, sample=0):
    return Verdict(
        problem_id="p",
        sample=sample,
        code_sha256="0",
        status=status,
        functional_status=status,
        stage="done",
        message=f"it is {status}",
        protocol="paper",
        backend="cuda",
        trials=5,
        speedup=None if speedup is None else Speedup(median=speedup, ci_low=low, ci_high=None),
        host=HOST,
    )


def pair(source="cudallm", answers=None, speedup=None):
    origin = {"row": 1} | ({"answers": answers} if answers else {})
    measured = None if speedup is None else Measured(speedup=speedup)
    return Pair(
        id="p", pytorch_code="x", cuda_code=(answers or ["c"])[0], source=source, origin=origin, measured=measured
    )


def reason(outcome: Pair | Drop | None) -> str:
    assert isinstance(outcome, Drop)
    return outcome.reason


def test_concur_is_kept_unseen():
    kept = with_best_try(pair("concur"), {}, RULES["concur"], "median")
    assert isinstance(kept, Pair)
    assert passes(kept, RULES["concur"], 99.0, keep_unmeasured=False) is None


def test_cudallm_needs_a_correct_verdict_and_the_threshold():
    rule = RULES["cudallm"]
    assert with_best_try(pair(), {}, rule, "median") == Drop("not_verified", "no verdict for it")
    assert reason(with_best_try(pair(), {0: verdict("wrong_value")}, rule, "median")) == "wrong_value"
    right = with_best_try(pair(), {0: verdict(speedup=2.0)}, rule, "median")
    assert isinstance(right, Pair)
    assert right.measured is not None
    assert (right.measured.speedup, right.measured.status) == (2.0, "correct")
    assert right.origin == {"row": 1}, "no number of a try where there is only one"
    assert passes(right, rule, 2.0, keep_unmeasured=False) is None
    assert reason(passes(right, rule, 2.01, keep_unmeasured=False)) == "below_threshold"


def test_a_threshold_in_numbers_holds_without_a_verdict_too():
    rule = Rule(verify=False, threshold=1.0)
    assert reason(passes(pair(speedup=1.0), rule, 2.0, False)) == "below_threshold"
    assert passes(pair(speedup=1.1), rule, 2.0, False) is None


def test_a_deceptive_kernel_is_dropped_however_fast():
    dropped = with_best_try(pair(), {0: verdict("deceptive", speedup=9.0)}, RULES["cudallm"], "median")
    assert reason(dropped) == "deceptive"


def test_structural_any_success_counts_and_the_fastest_stands_for_it():
    rule = RULES["structural"]
    tries = {0: verdict("compile_error"), 1: verdict(speedup=0.9), 2: verdict(speedup=1.3), 3: verdict(speedup=1.2)}
    kept = with_best_try(pair("structural", ["a", "b", "c"]), tries, rule, "median")
    assert isinstance(kept, Pair)
    assert (kept.cuda_code, kept.origin) == ("c", {"row": 1, "attempt": 2})
    slow = with_best_try(pair("structural"), {0: verdict(speedup=1.0), 1: verdict(speedup=0.7)}, rule, "median")
    assert slow == Drop("below_threshold", "speed-up 1.000 in 2 tries, more than 1 asked")
    assert passes(kept, rule, 2.5, keep_unmeasured=False) is None  # the set's threshold is not its own


def test_equally_fast_tries_give_the_first():
    assert best_try({4: verdict(speedup=2.0), 1: verdict(speedup=2.0)}, "median") == (1, verdict(speedup=2.0))


def test_of_wrong_tries_the_last_one_says_why():
    tries = {0: verdict("compile_error"), 3: verdict("wrong_value"), 1: verdict("timeout")}
    assert best_try(tries, "median") == (3, tries[3])
    dropped = with_best_try(pair("structural"), tries, RULES["structural"], "median")
    assert dropped == Drop("wrong_value", "3 tried: it is wrong_value")


def test_answers_take_turns():
    three = pair("structural", ["a", "b", "c"])
    assert [answer_of(three, attempt) for attempt in range(5)] == ["a", "b", "c", "a", "b"]
    assert [answer_of(pair(), attempt) for attempt in range(2)] == ["c", "c"]


def test_a_pair_without_a_speedup_is_kept_only_on_request():
    rule = RULES["cudallm"]
    right = with_best_try(pair(), {0: verdict()}, rule, "median")
    assert isinstance(right, Pair)
    assert reason(passes(right, rule, 2.0, keep_unmeasured=False)) == "no_speedup"
    assert passes(right, rule, 2.0, keep_unmeasured=True) is None
    tried = with_best_try(pair("structural"), {0: verdict()}, RULES["structural"], "median")
    assert isinstance(tried, Pair)
    assert passes(tried, RULES["structural"], 2.0, keep_unmeasured=False) is not None


def test_the_lower_bound_can_be_asked_for():
    rule = RULES["cudallm"]
    lower = with_best_try(pair(), {0: verdict(speedup=2.1, low=1.9)}, rule, "ci_low")
    assert isinstance(lower, Pair)
    assert lower.speedup == 1.9


def test_preference_nests_the_thresholds():
    entries = [(pair(speedup=s), Rule()) for s in (1.2, 3.0, None, 2.0)] + [(pair("concur"), Rule(threshold=None))]
    ordered = [one for one, _ in sorted(entries, key=lambda entry: preference(*entry))]
    assert [one.source for one in ordered] == ["concur", *["cudallm"] * 4]
    assert [one.speedup for one in ordered] == [None, None, 3.0, 2.0, 1.2]  # kept unmeasured, it is in every set


def test_histogram_bins_and_edges():
    rows = histogram([0.5, 0.999, 1.0, 1.49, 1.5, 2.0, 2.5, 3.0, 8.0], rows=12)
    assert [row["range"] for row in rows] == list(RANGES)
    assert [row["n"] for row in rows] == [2, 2, 1, 1, 1, 2]
    assert sum(float(row["percent"]) for row in rows) == pytest.approx(100, abs=0.3)
    assert rows[0]["percent_of_rows"] == pytest.approx(100 * 5 / 12, abs=0.06)
    assert rows[5]["percent_of_rows"] == pytest.approx(100 * 2 / 12, abs=0.06)
    assert all(row["n"] == 0 for row in histogram([], rows=0))
