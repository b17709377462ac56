"""The paper's claims: intervals against simulated studies, verdicts by hand, and what each row rests on."""

from __future__ import annotations

import csv
import dataclasses
import json
import random
import statistics
from pathlib import Path

import numpy as np
import pytest
from plans import EXPERIMENTS, copy_registry, plan
from verdicts import verdict

from dice.cli import main
from dice.config import to_spec
from dice.errors import DiceError
from dice.evaluation.score import Metric
from dice.jsonl import write_jsonl
from dice.kernels.records.verdict import Speedup
from dice.report.claims import (
    ClaimEvidence,
    ClaimRow,
    ClaimsConfig,
    Contrast,
    answers,
    effect_of_costs,
    effect_of_rates,
    make_claims,
    signed_sets,
    summary,
    verdict_of,
    verdict_of_all,
)
from dice.study.claims import claims_inputs, claims_spec
from dice.study.config import load_study
from dice.study.exams import exam_units
from dice.study.plan import Plan
from dice.study.registry import ClaimContrast, TableRow, load_registry

FEW = 400
"""Draws of the bootstrap in simulations."""


def study(rng: np.random.Generator, chances: list[tuple[float, float]], seeds: int) -> tuple[np.ndarray, np.ndarray]:
    """Two models on 100 problems; a problem of each kind is solved by the one and the other with these chances."""
    kinds = np.array(chances)[rng.integers(len(chances), size=100)]
    one, other = ((rng.random((seeds, 100)) < kinds[:, who]).astype(float) for who in (0, 1))
    return one, other


@pytest.mark.parametrize("seeds", [1, 3])
def test_the_interval_holds_the_true_effect(seeds):
    """Most problems are too hard for both or solved by both; the models differ on the others, by 10 points in all."""
    kinds = [(0.02, 0.02)] * 5 + [(0.95, 0.95)] * 3 + [(0.7, 0.2)] * 2
    rng, held = np.random.default_rng(seeds), 0
    for _ in range(300):
        one, other = study(rng, kinds, seeds)
        effect, low, high = effect_of_rates([one, -other], FEW)
        assert effect == pytest.approx(one.mean() - other.mean())
        held += low <= 0.1 <= high
    assert 0.91 < held / 300 < 0.995


def test_models_that_do_not_differ_seldom_show_anything():
    rng = np.random.default_rng(7)
    found = []
    for _ in range(300):
        one, other = study(rng, [(0.1, 0.1), (0.5, 0.5)], 1)
        found.append(verdict_of(*effect_of_rates([one, -other], FEW)[1:]))
    assert found.count("shown") / 300 < 0.05
    assert found.count("contradicted") / 300 < 0.05


def test_problems_are_the_same_for_all_rows():
    """Two models that solve the same problems do not differ, however different the problems are."""
    hits = np.array([[1.0, 0, 1, 0, 1, 1, 0, 0, 0, 1]])
    assert effect_of_rates([hits, -hits]) == (0, 0, 0)
    effect, low, high = effect_of_rates([hits])
    assert (effect, low, high) == (0.5, pytest.approx(0.2), pytest.approx(0.8))


def test_the_interval_of_one_seed_is_that_of_a_share():
    """900 problems, of which a third is solved: 1.96 standard errors of a mean of independent problems on either side."""
    hits = np.repeat([[1.0, 0.0, 0.0]], 300, axis=0).reshape(1, 900)
    _, low, high = effect_of_rates([hits])
    half = 1.96 * np.sqrt(1 / 3 * 2 / 3 / 900)
    assert (low, high) == (pytest.approx(1 / 3 - half, abs=0.002), pytest.approx(1 / 3 + half, abs=0.002))


def test_answers_of_one_problem_or_of_one_seed_count_as_alike():
    rng = np.random.default_rng(3)
    once = (rng.random((1, 60)) < 0.5).astype(float)

    def width(hits: np.ndarray) -> float:
        _, low, high = effect_of_rates([hits])
        return high - low

    assert width(np.repeat(once, 4, axis=0)) == pytest.approx(width(once)), "the same answers tell no more"
    assert width((rng.random((4, 60)) < 0.5).astype(float)) < 0.9 * width(once)
    torn = np.concatenate([np.ones((2, 60)), np.zeros((2, 60))])
    assert width(torn) > 0.8, "seeds that differ as a whole are four answers, not 240"


def test_a_gain_is_compared_with_a_gain():
    """Fine-tuning adds 3 of 4 to the one and 1 of 4 to the other."""
    none, one, three = (np.repeat(np.array([[1.0] * k + [0.0] * (4 - k)]), 1, axis=0) for k in (0, 1, 3))
    effect, low, high = effect_of_rates([three, none, -none, -one])
    assert effect == 0.5
    assert low <= 0.5 <= high


def drawn_by_hand(checked: np.ndarray, unchecked: np.ndarray, draws: int) -> tuple[float, float]:
    """Ends of the interval of `unchecked - checked` by loops: a run and a problem that are drawn, are drawn in both."""
    rng, found = random.Random(11), []
    for _ in range(draws):
        runs = rng.choices(range(len(checked)), k=len(checked))
        problems = rng.choices(range(checked.shape[1]), k=checked.shape[1])
        found.append(np.mean([unchecked[run][k] - checked[run][k] for run in runs for k in problems]))
    cuts = statistics.quantiles(found, n=40)
    return cuts[0], cuts[-1]


def test_what_the_check_takes_away_is_counted_on_the_same_draws():
    """Three runs that differ much, in each of which the check takes one or two answers of 20. The runs drawn apart, the
    interval would be that of their differences."""
    checked = np.array([[1.0] * right + [0.0] * (20 - right) for right in (2, 9, 16)])
    unchecked = checked.copy()
    unchecked[0, 18:] = unchecked[1, 18:] = unchecked[2, 19:] = 1
    row = ClaimRow(name="row", verdicts=("0", "1", "2"))
    contrast = Contrast(more=(dataclasses.replace(row, name="row:unchecked", robust=False),), less=(row,))
    sets = signed_sets(contrast, [unchecked, checked])
    assert len(sets) == 1
    effect, low, high = effect_of_rates(sets)
    assert effect == pytest.approx(5 / 60)
    one_answer = 1 / 60 + 1e-9
    assert (low, high) == pytest.approx(drawn_by_hand(checked, unchecked, 4000), abs=one_answer)
    _, low, high = effect_of_rates([unchecked, -checked])
    assert high - low > 0.6


def test_rows_of_other_verdicts_draw_their_seeds_apart():
    """Two models of two runs each, one run without and one with all answers right: a model's mean is 0, 1/2 or 1 in a
    quarter, a half and a quarter of the draws. So their difference is 1 in a sixteenth: more than 2.5 %."""
    runs = np.array([[0.0] * 10, [1.0] * 10])
    one, other = (ClaimRow(name=name, verdicts=(f"{name}0", f"{name}1")) for name in "ab")
    sets = signed_sets(Contrast(more=(one,), less=(other,)), [runs, runs])
    assert effect_of_rates(sets) == (0, -1, 1)
    again = dataclasses.replace(one, name="the same model by another name")
    assert effect_of_rates(signed_sets(Contrast(more=(one,), less=(again,)), [runs, runs])) == (0, 0, 0)


def test_losses_of_two_rows_are_compared_row_by_row():
    """The base loses one answer of four to the check, DICE none, whichever of its runs is drawn: what is left to draw is
    the problems of one answer, a share of 1/4 of 400."""
    base = np.repeat([[1.0, 0.0, 0.0, 0.0]], 100, axis=0).reshape(1, 400)
    unchecked = np.repeat([[1.0, 1.0, 0.0, 0.0]], 100, axis=0).reshape(1, 400)
    dice = np.array([[0.0] * 400, [1.0] * 400, [0.0] * 400])
    rows = {name: ClaimRow(name=name, verdicts=(name[:1],) * runs) for name, runs in (("base", 1), ("dice", 3))}
    contrast = Contrast(more=(rows["base"], rows["dice"]), less=(rows["base"], rows["dice"]))
    effect, low, high = effect_of_rates(signed_sets(contrast, [unchecked, dice, base, dice]))
    half = 1.96 * np.sqrt(1 / 4 * 3 / 4 / 400)
    assert (effect, low, high) == (0.25, pytest.approx(0.25 - half, abs=0.004), pytest.approx(0.25 + half, abs=0.004))


def test_a_cost_is_a_ratio_of_sums():
    effect, low, high = effect_of_costs([np.full(20, 1.0), np.full(100, 10.0)], [np.full(100, 10.0)])
    assert (effect, low, high) == (pytest.approx(0.02),) * 3
    rng = np.random.default_rng(1)
    _, low, high = effect_of_costs([rng.uniform(5, 15, 100)], [rng.uniform(5, 15, 100)])
    assert -0.2 < low < 0 < high < 0.25


@pytest.mark.parametrize(
    ("low", "high", "at_most", "word"),
    [
        (0.1, 9, None, "shown"),
        (-9, -0.1, None, "contradicted"),
        (-1, 1, None, "not shown"),
        (0, 0, None, "not shown"),
        (-5, 24, 25, "shown"),
        (26, 30, 25, "contradicted"),
        (20, 30, 25, "not shown"),
        (5, 25, 25, "not shown"),
        (25, 30, 25, "not shown"),
    ],
)
def test_the_verdict_follows_from_the_interval(low, high, at_most, word):
    assert verdict_of(low, high, at_most) == word


@pytest.mark.parametrize(
    ("contrasts", "word"),
    [
        (["shown", "shown"], "shown"),
        (["shown", "not measured"], "shown"),
        (["shown", "not shown"], "not shown"),
        (["shown", "not shown", "contradicted"], "contradicted"),
        (["not measured", "not measured"], "not measured"),
        (["not shown", "not measured"], "not shown"),
        (["not testable", "not measured"], "not testable"),
        (["shown", "not testable"], "not shown"),
        (["contradicted", "not testable"], "contradicted"),
    ],
)
def test_a_claim_is_as_good_as_its_worst_measured_contrast(contrasts, word):
    assert verdict_of_all(contrasts) == word


def answered(path: Path, right: int, n: int = 30, deceptive: int = 0) -> str:
    """Verdicts of n problems: the first are right, the next ones right only without the check."""
    cheat = {"status": "deceptive", "functional_status": "correct"}
    found = (
        [{"status": "correct"}] * right + [cheat] * deceptive + [{"status": "wrong_value"}] * (n - right - deceptive)
    )
    write_jsonl(path, [verdict(f"level1/{k}", **one) for k, one in enumerate(found)])
    return str(path)


def claim(name: str, more: list[ClaimRow], less: list[ClaimRow], **changes) -> ClaimEvidence:
    return ClaimEvidence(
        name=name,
        text=f"{name} holds",
        where="Table 1",
        contrasts=(Contrast(more=tuple(more), less=tuple(less)),),
        **{"benchmark": "mini-2-cpu", **changes},
    )


def config(place: Path, *claims: ClaimEvidence, **changes) -> ClaimsConfig:
    return ClaimsConfig(claims=claims, scale="tiny", out=str(place / "claims.csv"), **changes)


def test_every_contrast_is_a_row_with_effect_interval_and_verdict(tmp_path):
    good = ClaimRow(name="good", verdicts=(answered(tmp_path / "good.jsonl", 20),))
    bad = ClaimRow(name="bad", verdicts=(answered(tmp_path / "bad.jsonl", 2, deceptive=10),))
    unchecked = ClaimRow(name="bad:unchecked", verdicts=bad.verdicts, robust=False)
    sampled = ClaimRow(name="sampled", verdicts=good.verdicts * 2, greedy=False)
    enough = ClaimRow(name="enough", verdicts=good.verdicts * 3, greedy=False)
    absent = ClaimRow(name="absent", reason="not part of the scale tiny")
    for name, seconds in (("one", 1.0), ("two", 1.1)):
        write_jsonl(tmp_path / f"{name}.history.jsonl", [{"step": k, "seconds": seconds} for k in range(10)])
    one, two = (ClaimRow(name=name, history=str(tmp_path / f"{name}.history.jsonl")) for name in ("one", "two"))
    lines = make_claims(
        config(
            tmp_path,
            claim("better", [good], [bad]),
            claim("worse", [bad], [good]),
            claim("check", [unchecked], [bad]),
            claim("few seeds", [sampled], [bad]),
            claim("seeds", [enough], [bad]),
            claim("missing", [good], [absent]),
            claim("cost", [two], [one], statistic="cost", at_most=25),
        )
    )
    found = {line["claim"]: (line["effect"], line["verdict"], line["claim_verdict"]) for line in lines}
    assert found == {
        "better": ("60.0", "shown", "shown"),
        "worse": ("-60.0", "contradicted", "contradicted"),
        "check": ("33.3", "shown", "shown"),
        "few seeds": ("60.0", "not testable", "not testable"),
        "seeds": ("60.0", "shown", "shown"),
        "missing": ("", "not measured", "not measured"),
        "cost": ("10.0", "shown", "shown"),
    }
    assert list(csv.DictReader((tmp_path / "claims.csv").open())) == lines
    assert (lines[0]["contrast"], lines[0]["problems"], lines[0]["seeds"]) == ("good - bad", "30", "1/1")
    assert (lines[6]["contrast"], lines[0]["scale"], lines[0]["benchmark"]) == ("two over one", "tiny", "mini-2-cpu")
    assert lines[3]["reason"] == "sampled has answers of fewer than 3 seeds"
    assert lines[5]["reason"] == "absent: not part of the scale tiny"
    assert lines[5]["measured"] == "0 of 1"
    assert 0 < float(lines[0]["low"]) < 60 < float(lines[0]["high"]) < 100
    assert summary(lines)[1] == "contradicted  worse holds (Table 1; mini-2-cpu: 1 of 1 contrasts measured)"
    assert (tmp_path / "claims.pdf").read_bytes().startswith(b"%PDF")
    assert (tmp_path / "claims.png").read_bytes().startswith(b"\x89PNG")
    assert good.verdicts[0] in (tmp_path / "claims.csv.manifest.json").read_text()


@pytest.mark.parametrize(
    ("greedy", "seeds", "word"),
    [
        (True, 1, "shown"),  # one model: another seed gives the same
        (True, 2, "not testable"),  # two runs, whatever the plan said of them
        (True, 3, "shown"),
        (False, 1, "not testable"),  # one run of a model that is trained again for each seed
        (False, 2, "not testable"),
        (False, 3, "shown"),
    ],
)
@pytest.mark.parametrize("side", ["more", "less"])
def test_runs_need_three_seeds_and_one_greedy_model_does_not(tmp_path, greedy, seeds, word, side):
    none, right = answered(tmp_path / "none.jsonl", 0), answered(tmp_path / "right.jsonl", 20)
    bad, good = ClaimRow(name="bad", verdicts=(none,)), ClaimRow(name="good", verdicts=(right,))
    if side == "more":
        good = ClaimRow(name="runs", verdicts=(right,) * seeds, greedy=greedy)
    else:
        bad = ClaimRow(name="runs", verdicts=(none,) * seeds, greedy=greedy)
    (line,) = make_claims(config(tmp_path, claim("c", [good], [bad])))
    assert (line["verdict"], line["claim_verdict"], line["effect"]) == (word, word, "66.7")
    assert line["reason"] == ("" if word == "shown" else "runs has answers of fewer than 3 seeds")
    assert summary([line])[0].startswith(f"{word:<13} c holds")


def test_a_claim_is_judged_in_each_benchmark_by_itself(tmp_path):
    few, many = (ClaimRow(name=f"{n}", verdicts=(answered(tmp_path / f"{n}.jsonl", n),)) for n in (2, 20))
    fits = claim("c", [many], [few])
    fails = claim("c", [few], [many], benchmark="composites-1")
    lines = make_claims(config(tmp_path, fits, fails))
    said = {line["benchmark"]: line["claim_verdict"] for line in lines}
    assert said == {"mini-2-cpu": "shown", "composites-1": "contradicted"}
    assert len(summary(lines)) == 2


def test_the_same_verdicts_give_the_same_bytes(tmp_path):
    rows = [
        ClaimRow(name=name, verdicts=(answered(tmp_path / f"{name}.jsonl", right),))
        for name, right in (("a", 9), ("b", 4))
    ]
    spec = config(tmp_path, claim("c", [rows[0]], [rows[1]]))
    make_claims(spec)
    first = (tmp_path / "claims.csv").read_bytes()
    make_claims(spec)
    assert (tmp_path / "claims.csv").read_bytes() == first


def test_a_scale_that_measures_nothing_says_so(tmp_path):
    absent = ClaimRow(name="absent", reason="not here")
    (line,) = make_claims(config(tmp_path, claim("missing", [absent], [absent])))
    assert line["claim_verdict"] == "not measured"
    assert (tmp_path / "claims.png").is_file()


def test_rows_that_cannot_be_compared_are_refused(tmp_path):
    whole = ClaimRow(name="whole", verdicts=(answered(tmp_path / "whole.jsonl", 3),))
    fewer = ClaimRow(name="fewer", verdicts=(answered(tmp_path / "fewer.jsonl", 3, n=29),))
    with pytest.raises(DiceError, match="fewer was asked other problems than whole"):
        make_claims(config(tmp_path, claim("c", [whole], [fewer])))
    torn = ClaimRow(name="torn", verdicts=(*whole.verdicts, *fewer.verdicts))
    with pytest.raises(DiceError, match="torn: seed 1, sample 0 has not answered all problems"):
        make_claims(config(tmp_path, claim("c", [torn], [whole])))
    with pytest.raises(DiceError, match="measures no speed"):
        make_claims(config(tmp_path, claim("c", [whole], [whole], statistic="fast1")))
    with pytest.raises(DiceError, match="no verdicts under the protocol strict"):
        make_claims(config(tmp_path, claim("c", [whole], [whole]), protocol="strict"))


def test_the_command_prints_what_was_found(tmp_path, capsys):
    good, bad = (ClaimRow(name=f"{n}", verdicts=(answered(tmp_path / f"{n}.jsonl", n),)) for n in (20, 2))
    spec = {"scale": "tiny", "out": str(tmp_path / "claims.csv"), "claims": [to_spec(claim("c", [good], [bad]))]}
    (tmp_path / "claims.json").write_text(json.dumps(spec))
    assert main(["claims", "--config", str(tmp_path / "claims.json")]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert "shown         c holds (Table 1; mini-2-cpu: 1 of 1 contrasts measured)" in shown
    assert f"effects and intervals: {tmp_path / 'claims.csv'}, and beside it as PDF and PNG" in shown


def test_samples_of_a_seed_are_no_seeds_and_speed_is_counted_where_it_was_measured(tmp_path):
    """Two files of two samples each are two seeds, each with the mean of its samples; of another protocol nothing is read."""

    def one(problem: str, sample: int, speed: float, **changes):
        timed = Speedup(median=speed, ci_low=None, ci_high=None)
        return verdict(problem, sample=sample, backend="cuda", speedup=timed, **changes)

    for seed in (0, 1):
        rows = [one(name, sample, 1.5 + max(seed, sample)) for sample in (0, 1) for name in ("level1/b", "level1/a")]
        write_jsonl(tmp_path / f"{seed}.jsonl", [one("level1/c", 0, 9.0, protocol="strict"), *rows])
    row = ClaimRow(name="x", verdicts=tuple(str(tmp_path / f"{seed}.jsonl") for seed in (0, 1)))
    shares: dict[Metric, list[float]] = {"exec": [1, 1], "fast1": [1, 1], "fast2": [0.5, 1]}
    for metric, hits in shares.items():
        asked, found = answers(row, metric, "paper")
        assert asked == ["level1/a", "level1/b"]
        assert found.tolist() == [[hit, hit] for hit in hits]
    sampled = ClaimRow(name="sampled", verdicts=row.verdicts, greedy=False)
    (line,) = make_claims(config(tmp_path, claim("few seeds", [sampled], [row])))
    assert (line["seeds"], line["reason"]) == ("2/2", "sampled has answers of fewer than 3 seeds")
    strict, found = answers(row, "exec", "strict")
    assert (strict, found.tolist()) == (["level1/c"], [[1], [1]])


def test_a_cost_of_several_runs_is_that_of_their_sums(tmp_path):
    """40 + 20 seconds over 20 are three times as much, 200 percent more; a run without a history measures nothing."""
    for name, steps in (("a", [10.0] * 4), ("b", [10.0] * 2), ("c", [5.0] * 4)):
        write_jsonl(tmp_path / f"{name}.jsonl", [{"step": k, "seconds": s} for k, s in enumerate(steps)])
    a, b, c = (ClaimRow(name=name, history=str(tmp_path / f"{name}.jsonl")) for name in "abc")
    cost = {"statistic": "cost", "at_most": 25}
    whole, absent = make_claims(
        config(
            tmp_path, claim("sum", [a, b], [c], **cost), claim("none", [a], [ClaimRow(name="d", reason="gone")], **cost)
        )
    )
    assert (whole["effect"], whole["low"], whole["high"]) == ("200.0", "200.0", "200.0")
    assert (whole["contrast"], whole["verdict"], whole["seeds"]) == ("a + b over c", "contradicted", "")
    assert (absent["verdict"], absent["reason"]) == ("not measured", "d: gone")
    manifest = json.loads((tmp_path / "claims.csv.manifest.json").read_text())
    assert manifest["inputs"].keys() == {str(tmp_path / f"{name}.jsonl") for name in "abc"}


def test_costs_that_vary_have_the_interval_of_their_steps():
    """100 steps of 5 or 15 s over the same: the mean has a standard error of 5 %, the ratio of two 7.07 %."""
    run = np.array([5.0, 15.0] * 50)
    effect, low, high = effect_of_costs([run], [run])
    assert effect == 0
    assert (low, high) == (pytest.approx(-0.1296, abs=0.012), pytest.approx(0.149, abs=0.012))


def rows_of(one: Plan) -> dict[str, dict]:
    """Row of a claim about the suite -> what it rests on; of a cost, `cost <row>`."""
    return {
        f"{'cost ' if claim['statistic'] == 'cost' else ''}{row['name']}": row
        for claim in claims_spec(one)["claims"]
        if claim["benchmark"] == one.study.suite.version
        for contrast in claim["contrasts"]
        for row in (*contrast["more"], *contrast["less"])
    }


def test_a_claim_rests_on_what_a_scale_has():
    paper, tiny, released = rows_of(plan("paper")), rows_of(plan("tiny")), rows_of(plan("released"))
    assert paper.keys() == tiny.keys() == released.keys(), "the same claims at every scale"
    controls = {f"{size}-{name}" for size in ("8B", "4B", "1.7B") for name in ("sft_longer", "sft_repeated")}
    trained = {name for name in paper if "cudaLLM" not in name} - controls
    assert all(paper[name].get("verdicts") or paper[name].get("history") for name in trained), "the paper scale has all"
    assert paper["8B-sft_longer"].get("verdicts") is None, "published programs come without answers to learn from"
    assert paper["8B-sft_repeated"].get("verdicts") is None, "a control of the scale nano"
    assert plan("nano").evidence(TableRow(row="control", unit="8B-sft_longer")).unit == "8B-sft_longer"
    assert tiny["8B-dice"]["verdicts"] == ["results/verdicts/8B-dice/seed0.jsonl"]
    assert (tiny["4B-dice"].get("verdicts"), tiny["4B-dice"]["reason"]) == (
        None,
        "the repository embeds base models of one size",
    )
    assert released["8B-dice"]["verdicts"] == ["results/released/verdicts/hub-DICE-8B/seed0.jsonl"]
    assert released["cost 8B-rl1"]["reason"] == "not part of the scale released"
    assert released["cost 8B-dice"]["reason"] == "not trained at the scale released"
    assert (paper["8B-qwen3"]["greedy"], len(paper["8B-qwen3"]["verdicts"])) == (False, 3)
    assert (tiny["8B-base:unchecked"]["robust"], tiny["8B-base"]["robust"]) == (False, True)
    assert tiny["cost 8B-rl1"]["history"] == "results/models/8B-rl1/history.jsonl"


def test_a_row_that_is_trained_for_each_seed_is_not_the_same_each_seed():
    """nano decodes greedily and trains what follows the bases three times; tiny trains it once."""
    nano, tiny = rows_of(plan("nano")), rows_of(plan("tiny"))
    said = {name: (nano[name]["greedy"], len(nano[name]["verdicts"])) for name in ("8B-base", "8B-qwen3", "8B-dice")}
    assert said == {"8B-base": (True, 1), "8B-qwen3": (True, 1), "8B-dice": (False, 3)}
    assert tiny["8B-dice"]["greedy"]
    two = rows_of(plan("nano", seeds=[0, 1]))
    assert (two["8B-rl_baseline"]["greedy"], len(two["8B-rl_baseline"]["verdicts"])) == (False, 2)
    exam = [one for one in claims_spec(plan("nano"))["claims"] if one["benchmark"] == "composites-9017"]
    row = next(one for one in exam if one["name"] == "dice_over_its_base")["contrasts"][0]
    assert (row["more"][0]["greedy"], row["less"][0]["greedy"]) == (False, True)
    file = rows_of(plan("tiny", supplied={"DICE-8B": "answers.jsonl"}))["DICE-8B"]
    assert (file["greedy"], len(file["verdicts"])) == (True, 1)


def test_each_exam_of_a_study_has_the_claims_but_those_about_costs():
    nano = plan("nano")
    spec = claims_spec(nano)["claims"]
    whole, exam = (
        [one for one in spec if one["benchmark"] == name]
        for name in ("mini-2-gpu", nano.suite_of("composites").version)
    )
    assert len(whole) + len(exam) == len(spec)
    assert {one["name"] for one in whole} - {one["name"] for one in exam} == {"cost_of_two_stages"}
    rows = {row["name"]: row for one in exam for contrast in one["contrasts"] for row in contrast["more"]}
    assert rows["8B-dice"]["verdicts"] == [
        f"results/nano/verdicts/8B-dice@composites/seed{seed}.jsonl" for seed in (0, 1, 2)
    ]
    assert rows["DICE-8B"].get("verdicts") == rows["8B-dice"]["verdicts"]
    assert "results/nano/verdicts/8B-dice@composites/seed0.jsonl" in claims_inputs(plan("nano"))


def test_what_the_claims_read_is_made_before_them():
    inputs = claims_inputs(plan("tiny"))
    assert {"results/models/8B-rl1", "results/models/8B-rl_baseline", "results/verdicts/8B-sft/seed0.jsonl"} < set(
        inputs
    )
    assert len(inputs) == len(set(inputs))


def test_every_claim_names_rows_that_there_are(tmp_path):
    copy_registry(tmp_path)
    text = (tmp_path / "claims.yaml").read_text()
    for old, new in (("8B-rl1", "8B-rl9"), ("DICE-8B]", "DICE-9B]"), ("8B-base:unchecked", "8B-base:unchekced")):
        (tmp_path / "claims.yaml").write_text(text.replace(old, new))
        wrong = Plan(load_study(EXPERIMENTS / "config", "tiny"), load_registry(tmp_path))
        with pytest.raises(DiceError, match=rf"claims.yaml: '{new.rstrip(']')}' is neither a model"):
            claims_spec(wrong)


def test_speed_is_asked_of_the_back_end_of_the_benchmark():
    """nano: kernels of the suite run on a GPU, those of its exam on the CPU, where a speed would be refused."""
    one = plan("nano")
    name, unit = next(iter(one.registry.claims)), exam_units(one)[0]
    contrast = ClaimContrast(more=(unit,), less=(unit,))
    one.registry.claims[name] = dataclasses.replace(one.registry.claims[name], statistic="fast1", contrasts=(contrast,))
    found = [entry for entry in claims_spec(one)["claims"] if entry["name"] == name]
    rows = {entry["benchmark"]: entry["contrasts"][0]["more"][0] for entry in found}
    assert rows[one.measured_on]["verdicts"]
    assert rows[one.suite_of("composites").version]["reason"] == "the CPU back end measures no speed"
