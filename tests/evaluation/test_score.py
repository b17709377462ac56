"""Scores: counts against hand-made verdicts, intervals against their definition, refusals."""

from __future__ import annotations

import json
import math
import random

import pytest
import verdicts

from dice.cli import main
from dice.errors import DiceError, HarnessError
from dice.evaluation.failures import GROUP_OF, failure_class
from dice.evaluation.gather import GatherConfig, gather
from dice.evaluation.score import (
    LevelScore,
    ScoreConfig,
    count,
    effective_answers,
    is_hit,
    pass_rate,
    rate,
    read_score,
    score,
    wilson,
)
from dice.jsonl import write_jsonl
from dice.kernels.api import VerifyConfig, verify
from dice.kernels.problems.problem import Problem
from dice.kernels.records.verdict import Finding, Speedup, Verdict


def verdict(problem="level1/1_A", status="correct", speedup=None, low=None, **changes) -> Verdict:
    """A verdict of a GPU, timed where there is a speed-up."""
    timed = Speedup(median=speedup, ci_low=low, ci_high=None) if speedup else None
    return verdicts.verdict(problem, status, **{"backend": "cuda", "speedup": timed, **changes})


def problems(path, names):
    rows = [
        Problem(id=name, level=int(name[5]), number=k, name=name.split("_")[1], code="", version="test")
        for k, name in enumerate(names)
    ]
    write_jsonl(path, rows)
    return str(path)


@pytest.mark.parametrize(("hits", "n"), [(0, 10), (3, 10), (50, 100), (100, 100), (1, 1)])
def test_wilson_ends_solve_the_score_equation(hits, n):
    z = 1.959963984540054
    low, high = wilson(hits, n)
    share = hits / n
    for end in (low, high):
        if end not in (0.0, 1.0):
            assert abs(share - end) == pytest.approx(z * math.sqrt(end * (1 - end) / n), rel=1e-9)
    assert 0 <= low <= share <= high <= 1


def test_fast_is_strict_and_needs_correctness():
    assert is_hit(verdict(speedup=1.01), "fast1", True)
    assert not is_hit(verdict(speedup=1.0), "fast1", True)
    assert not is_hit(verdict(status="wrong_value", speedup=9.0), "fast1", True)
    assert not is_hit(verdict(speedup=2.0), "fast2", True)
    assert is_hit(verdict(speedup=None), "exec", True)
    assert not is_hit(verdict(speedup=None), "fast1", True), "nobody timed it"


def test_strict_protocol_counts_the_lower_end():
    assert not is_hit(verdict(speedup=1.2, low=0.9, protocol="strict"), "fast1", True)
    assert is_hit(verdict(speedup=1.2, low=1.1, protocol="strict"), "fast1", True)
    assert is_hit(verdict(speedup=1.2, low=0.9, protocol="paper"), "fast1", True), "the paper counts the median"


def value(level: LevelScore | None) -> float:
    assert level is not None
    rate = level.metrics["exec"]
    assert rate is not None
    return rate.value


def test_robust_check_drops_deceptive_answers_only():
    rows = [verdict(status="deceptive", functional_status="correct"), verdict("level1/2_B")]
    levels = {"level1/1_A": 1, "level1/2_B": 1}
    robust, plain = count([rows], levels)
    assert robust.robust
    assert value(robust) == 0.5
    assert value(plain) == 1.0
    assert (robust.statuses, plain.statuses) == ({"deceptive": 1, "correct": 1}, {"correct": 2})


def test_cpu_has_no_speed():
    (robust, _) = count([[verdict(backend="cpu")]], {"level1/1_A": 1})
    assert value(robust) == 1.0
    assert robust.metrics["fast1"] is None


def answers(*hits):
    return [(f"level1/{k}", bool(hit)) for k, hit in enumerate(hits)]


def test_one_seed_is_wilsons_interval():
    found = rate([answers(1, 0, 0, 1, 1)])
    assert (found.low, found.high) == pytest.approx(wilson(3, 5))
    assert (found.hits, found.n, found.independent, found.by_seed) == (3, 5, pytest.approx(5), [0.6])


def test_the_same_answers_under_three_seeds_tell_no_more_than_under_one():
    once = rate([answers(1, 0, 0, 1, 1)])
    thrice = rate([answers(1, 0, 0, 1, 1)] * 3)
    assert (thrice.low, thrice.high) == pytest.approx((once.low, once.high))
    assert (thrice.hits, thrice.n, thrice.independent) == (9, 15, pytest.approx(5))


@pytest.mark.parametrize("hit", [0, 1])
def test_where_all_agree_each_problem_counts_once(hit):
    assert rate([answers(*[hit] * 8)] * 3).independent == 8


def test_answers_that_partly_agree_count_as_some():
    """Three problems, of whose four answers 4, 2 and 1 are right: p = 7/12, and the sum of squares about 4 p is 42/9. So
    p (1 - p) = 35/144 over (42/9)/144 makes 7.5 of 12 answers; over k = 1 the mean of the problems' shares has the same."""
    answers = [
        (f"level1/{name}", number < hits) for name, hits in (("A", 4), ("B", 2), ("C", 1)) for number in range(4)
    ]
    found, passed = rate([answers[::2], answers[1::2]]), pass_rate(answers, 1)
    assert (found.independent, found.value) == pytest.approx((7.5, 7 / 12))
    assert (found.low, found.high) == pytest.approx(wilson(7.5 * 7 / 12, 7.5))
    assert passed is not None
    assert (passed.independent, passed.low, passed.high) == pytest.approx((7.5, found.low, found.high))


def test_the_seeds_rates_stand_beside():
    assert rate([answers(1, 0, 0, 0), answers(1, 1, 1, 0)]).by_seed == [0.25, 0.75]
    with pytest.raises(ValueError, match="no answers"):
        rate([[]])


def test_the_interval_holds_the_rate_as_often_as_it_says():
    """Against simulated studies: 3 seeds on 80 problems, of which some are always solved, some never, some at times."""
    draw = random.Random(3)
    solved = [0.0] * 30 + [1.0] * 20 + [0.5] * 30
    truth, held, naive = 35 / 80, 0, 0
    for _ in range(600):
        chances = draw.choices(solved, k=80)  # the benchmark's problems are a sample too
        found = rate([answers(*(draw.random() < chance for chance in chances)) for _ in range(3)])
        held += found.low <= truth <= found.high
        low, high = wilson(found.hits, found.n)
        naive += low <= truth <= high
    assert held / 600 > 0.93
    assert naive / 600 < 0.90


def test_every_status_has_a_group():
    from typing import get_args

    from dice.kernels.records.verdict import Status

    assert set(get_args(Status)) == set(GROUP_OF)


def test_deceptive_answers_are_named_by_their_finding():
    finding = Finding(name="never_launched", rule="paper_3", source="dynamic", evidence="0", fatal={"paper": True})
    assert failure_class(verdict(status="deceptive", deception=[finding])) == "generation failure/never_launched"


def test_stage_writes_what_it_counts(tmp_path):
    names = ["level1/1_A", "level2/1_B"]
    write_jsonl(tmp_path / "v.jsonl", [verdict(names[0]), verdict(names[1], status="compile_error")])
    out = tmp_path / "score.json"
    config = ScoreConfig(
        verdicts=(str(tmp_path / "v.jsonl"),), problems=problems(tmp_path / "p.jsonl", names), out=str(out)
    )
    result = score(config)
    assert value(result.level(1)) == 1.0
    assert value(result.level(2)) == 0.0
    assert result.failures == {"correct/correct": 1, "execution failure/compile_error": 1}
    assert (tmp_path / "score.json.manifest.json").is_file()
    robust, plain = result.level(1), result.level(1, robust=False)
    assert robust is not None
    assert plain is not None
    assert (robust.robust, plain.robust) == (True, False)


def test_the_command_prints_a_line_for_each_level_with_the_robust_check(tmp_path, capsys):
    names = ["level1/1_A", "level1/2_B"]
    cheat = verdict(names[1], status="deceptive", functional_status="correct")
    write_jsonl(tmp_path / "v.jsonl", [verdict(names[0]), cheat])
    files = ["--verdicts", str(tmp_path / "v.jsonl"), "--problems", problems(tmp_path / "p.jsonl", names)]
    assert main(["score", *files, "--out", str(tmp_path / "score.json")]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("level")]
    assert line == "level 1: Exec 50.0 % (9.5 to 90.5) of 2"


def test_a_missing_verdict_is_refused(tmp_path):
    write_jsonl(tmp_path / "v.jsonl", [verdict("level1/1_A")])
    place = problems(tmp_path / "p.jsonl", ["level1/1_A", "level1/2_B"])
    with pytest.raises(DiceError, match="level1/2_B"):
        score(ScoreConfig(verdicts=(str(tmp_path / "v.jsonl"),), problems=place, out=str(tmp_path / "s.json")))


def test_a_host_error_is_never_scored(tmp_path):
    write_jsonl(tmp_path / "v.jsonl", [verdict("level1/1_A", status="host_error")])
    place = problems(tmp_path / "p.jsonl", ["level1/1_A"])
    with pytest.raises(HarnessError, match="host errors"):
        score(ScoreConfig(verdicts=(str(tmp_path / "v.jsonl"),), problems=place, out=str(tmp_path / "s.json")))
    assert not (tmp_path / "s.json").exists()


@pytest.fixture
def without_code(tmp_path):
    """Seven candidates without code, which are judged without a machine."""
    rows = [{"problem_id": f"p{k}", "problem_code": "x", "sample": 0, "code": None} for k in range(7)]
    (tmp_path / "answers.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return str(tmp_path / "answers.jsonl")


def test_shards_are_the_whole_and_gather_sorts(tmp_path, without_code):
    whole = verify(VerifyConfig(candidates=without_code, out=str(tmp_path / "whole.jsonl"), backend="cpu"))
    parts = [str(tmp_path / f"{k}.jsonl") for k in (2, 0, 1)]
    sizes = [
        len(verify(VerifyConfig(candidates=without_code, out=out, backend="cpu", shards=3, shard=shard)))
        for out, shard in zip(parts, (2, 0, 1), strict=True)
    ]
    assert sizes == [2, 3, 2]
    gather(GatherConfig(shards=tuple(parts), out=str(tmp_path / "out.jsonl")))
    assert (tmp_path / "out.jsonl").read_text() == (tmp_path / "whole.jsonl").read_text()
    assert len(whole) == 7


@pytest.mark.parametrize(("shards", "shard", "sentence"), [(3, 3, "count from 0"), (8, 0, "fewer candidates than 8")])
def test_a_shard_that_is_not_there_is_refused(tmp_path, without_code, shards, shard, sentence):
    out = str(tmp_path / "out.jsonl")
    with pytest.raises(DiceError, match=sentence):
        verify(VerifyConfig(candidates=without_code, out=out, backend="cpu", shards=shards, shard=shard))


def test_gather_refuses_a_verdict_given_twice(tmp_path):
    write_jsonl(tmp_path / "a.jsonl", [verdict()])
    with pytest.raises(DiceError, match="already"):
        gather(GatherConfig(shards=(str(tmp_path / "a.jsonl"),) * 2, out=str(tmp_path / "out.jsonl")))


def test_no_answer_counts_twice(tmp_path):
    asked = problems(tmp_path / "problems.jsonl", ["level1/1_A"])
    write_jsonl(tmp_path / "one.jsonl", [verdict()])
    write_jsonl(tmp_path / "twice.jsonl", [verdict(), verdict()])
    out = str(tmp_path / "score.json")
    for names, sentence in ((["one", "one"], "is named twice"), (["twice"], "two verdicts of level1/1_A, sample 0")):
        files = tuple(str(tmp_path / f"{name}.jsonl") for name in names)
        with pytest.raises(DiceError, match=sentence):
            score(ScoreConfig(verdicts=files, problems=asked, out=out))


def test_pass_at_k_by_hand():
    """One problem right always, one never, one in one of eight answers, over two seeds of four answers."""
    right = {"level1/1_A": 8, "level1/2_B": 0, "level1/3_C": 1}
    answers = [
        verdict(
            name,
            "correct" if number < hits else "deceptive",
            functional_status="correct" if number < hits + 1 else "deceptive",
        )
        for name, hits in right.items()
        for number in range(8)
    ]
    seeds = [answers[::2], answers[1::2]]
    robust, plain = count(seeds, dict.fromkeys(right, 1))
    assert robust.pass_at.keys() == {1, 8}  # not 64: nothing has so many answers
    assert robust.pass_at[1].value == pytest.approx((1 + 0 + 1 / 8) / 3)
    assert robust.pass_at[8].value == pytest.approx(2 / 3)
    assert plain.pass_at[8].value == pytest.approx(1.0)
    assert count([answers[:8] * 8], dict.fromkeys(["level1/1_A"], 1))[0].pass_at.keys() == {1, 8, 64}
    exec_rate = robust.metrics["exec"]
    assert exec_rate is not None
    assert robust.pass_at[1].value == pytest.approx(exec_rate.value)
    one = [verdict(name) for name in right]
    assert count([one], dict.fromkeys(right, 1))[0].pass_at.keys() == {1}
    assert count([[*answers, verdict("level1/4_D")]], dict.fromkeys([*right, "level1/4_D"], 1))[0].pass_at.keys() == {1}


def test_the_interval_of_pass_at_k_counts_problems():
    sure = [(f"p{n}", n % 2 == 0) for n in range(20) for _ in range(8)]  # a problem's answers agree
    found = pass_rate(sure, 8)
    assert found is not None
    assert found.independent == 20
    assert (found.low, found.high) == wilson(10, 20)
    mixed = [(f"p{n}", k < 4) for n in range(20) for k in range(8)]  # each problem half of the time: 160 coins
    coins = pass_rate(mixed, 1)
    assert coins is not None
    assert (coins.value, coins.independent) == (0.5, 160)
    assert (coins.low, coins.high) == wilson(80, 160)
    never = pass_rate([(f"p{n}", False) for n in range(20) for _ in range(8)], 8)
    assert never is not None
    assert (never.value, never.independent, never.low) == (0.0, 20, 0.0)
    assert never.high == wilson(0, 20)[1]
    always = pass_rate([(f"p{n}", True) for n in range(20) for _ in range(8)], 1)
    assert always is not None
    assert (always.value, always.independent, always.low, always.high) == (1.0, 20, wilson(20, 20)[0], 1.0)
    assert pass_rate(sure[:-1], 8) is None


def groups(*kinds: tuple[int, int]) -> list[tuple[str, bool]]:
    """Answers of problems, each with (answers, right ones)."""
    return [(f"p{k}", number < right) for k, (n, right) in enumerate(kinds) for number in range(n)]


@pytest.mark.parametrize(
    ("kinds", "independent"),
    [
        (((2, 1),) * 3, 6),  # every problem half: answers are coins
        (((8, 4), (8, 4), (8, 5)), 24),  # 0.2483 over (2/3)/576 would be 214, more than there are
        (((10, 10), (10, 0), *((1, 1),) * 8), 10),  # large problems that disagree would make it 3.3 of ten
        (((2, 0), (3, 0)), 2),
        (((2, 2), (3, 3)), 2),
    ],
)
def test_independent_answers_lie_between_problems_and_answers(kinds, independent):
    assert effective_answers(groups(*kinds)) == pytest.approx(independent)


def test_the_effective_number_of_problems_lies_between_problems_and_groups_of_k():
    def of(k, *kinds):
        found = pass_rate(groups(*kinds), k)
        assert found is not None
        assert (found.low, found.high) == pytest.approx(wilson(found.value * found.independent, found.independent))
        return found

    coins = of(2, *((8, 4),) * 20)  # 1 - 6 of 28 pairs, the same for each problem
    assert (coins.value, coins.independent) == (pytest.approx(22 / 28), 80)
    uneven = of(2, (9, 4), (8, 4))  # 17 answers are 8 pairs; the variance is nearly 0
    assert uneven.independent == 8
    sure = of(1, (1, 1), (1, 0), (1, 0))  # p (1 - p) over the variance of the mean is 3
    assert (sure.value, sure.independent) == (pytest.approx(1 / 3), pytest.approx(3))
    one = of(8, (8, 4))
    assert (one.value, one.independent) == (1.0, 1)
    half = pass_rate(groups((8, 4), (2, 1)), 2)
    assert half is not None
    assert pass_rate(groups((8, 4), (1, 1)), 2) is None
    assert pass_rate([], 1) is None


def test_the_file_says_what_was_counted(tmp_path):
    """Two seeds of two levels on two kinds of GPU; verdicts of another protocol are not read."""
    names = ["level1/1_A", "level2/1_B"]
    host = verdicts.HOST
    first = [verdict(name, speedup=1.5, host=host.model_copy(update={"gpu": "G2"})) for name in names]
    strict = [verdict(name, status="wrong_value", protocol="strict") for name in names]
    second = [
        verdict(names[0], speedup=2.5, host=host.model_copy(update={"gpu": "G1"})),
        verdict(names[1], status="compile_error"),
    ]
    write_jsonl(tmp_path / "0.jsonl", first + strict)
    write_jsonl(tmp_path / "1.jsonl", second)
    files = tuple(str(tmp_path / f"{k}.jsonl") for k in (0, 1))
    place, out = problems(tmp_path / "p.jsonl", names), str(tmp_path / "score.json")
    score(ScoreConfig(verdicts=files, problems=place, out=out))
    found = read_score(out)
    assert (found.schema_version, found.backend, found.protocol, found.seeds, found.problems) == (
        1,
        "cuda",
        "paper",
        2,
        2,
    )
    assert found.gpus == ["G1", "G2"]
    assert [(row.level, row.robust) for row in found.levels] == [(1, True), (1, False), (2, True), (2, False)]
    shares = {name: rate.value for name, rate in found.levels[0].metrics.items() if rate}
    assert shares == {"exec": 1.0, "fast1": 1.0, "fast2": 0.5}
    two = found.level(2)
    assert two is not None
    assert two.metrics["fast1"] is not None
    assert two.metrics["fast1"].by_seed == [1.0, 0.0]
    assert two.metrics["fast1"].by_problem == {"level2/1_B": 0.5}
    assert two.statuses == {"correct": 1, "compile_error": 1}
    assert found.level(3) is None
    manifest = json.loads((tmp_path / "score.json.manifest.json").read_text())
    assert manifest["inputs"].keys() == {place, *files}


def test_a_verdict_of_no_problem_is_refused(tmp_path):
    write_jsonl(tmp_path / "v.jsonl", [verdict("level1/1_A"), verdict("level1/2_B")])
    place = problems(tmp_path / "p.jsonl", ["level1/1_A"])
    with pytest.raises(DiceError, match="level1/2_B is not a problem of"):
        score(ScoreConfig(verdicts=(str(tmp_path / "v.jsonl"),), problems=place, out=str(tmp_path / "s.json")))


def test_the_command_prints_pass_at_k_where_there_are_k_answers(tmp_path, capsys):
    """Four of eight answers are right: pass@8 is certain, pass@1 is the rate itself and not said twice."""
    write_jsonl(
        tmp_path / "v.jsonl", [verdict(status="correct" if k < 4 else "wrong_value", sample=k) for k in range(8)]
    )
    files = ["--verdicts", str(tmp_path / "v.jsonl"), "--problems", problems(tmp_path / "p.jsonl", ["level1/1_A"])]
    assert main(["score", *files, "--out", str(tmp_path / "score.json")]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("level")]
    assert line == "level 1: Exec 50.0 % (21.5 to 78.5) of 8, pass@8 100.0 % (20.7 to 100.0)"


def test_the_interval_does_not_depend_on_the_order_of_the_answers():
    outcomes = [(f"p{i}", (i * 7 + j) % 3 == 0) for i in range(49) for j in range(3)]
    assert len({effective_answers(outcomes[k:] + outcomes[:k]) for k in range(0, 147, 5)}) == 1
