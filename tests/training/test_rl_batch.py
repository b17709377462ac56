"""The answers of a step: groups drawn anew, measured pools, answers drawn ahead; the same after any interruption."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from judge import Judge
from killed_at import kill_at
from rl_start import PROGRAMS, PYTORCH, curve, pair, settings

from dice.config import parse_config
from dice.errors import DiceError
from dice.jsonl import read_jsonl, write_jsonl
from dice.model.checkpoint import load_model
from dice.training.curriculum import Curriculum
from dice.training.history import read_history
from dice.training.rl import RlRun, rl
from dice.training.rl_config import PoolConfig, RlConfig
from dice.training.rl_data import RlProblem
from dice.training.rl_history import AnswerRow, RlRow
from dice.training.rl_pool import PoolRow, chosen, read_pool
from dice.training.rollout import Asked, PendingVerdicts, Verifier, draw

ALL = {
    "rollout": {"problems_per_step": 2, "samples": 2, "max_new_tokens": 160, "redraws": 2, "draw_ahead": True},
    "pool": {"answers": 8, "refresh_every": 2},
}
"""Every setting of this page at once; with two answers a group, half of the groups have no difference."""


@pytest.fixture(scope="module")
def problems(start, tmp_path_factory) -> str:
    """Two problems that the model is right on half of the time, and one that it never is right on."""
    never = pair("double").model_copy(update={"id": "never", "pytorch_code": PYTORCH.format(expression="x / 3")})
    path = tmp_path_factory.mktemp("problems") / "problems.jsonl"
    write_jsonl(path, [never, *(pair(name) for name in PROGRAMS)])
    return str(path)


def config(start: Path, out: Path, problems: str, steps: int = 3, **changes) -> RlConfig:
    phases = [{"task": "infilling", "problems": [problems], "steps": steps, "order": "uniform"}]
    return parse_config(RlConfig, settings(start, out, phases=phases, keep_checkpoints=9, **ALL | changes), "test")


def answers(out: Path, step: int) -> list[AnswerRow]:
    return list(read_jsonl(out / "rollouts" / f"step-{step:06d}.0.jsonl", AnswerRow))


def test_groups_without_a_difference_are_drawn_anew(start, problems, tmp_path, monkeypatch):
    Judge().install(monkeypatch)
    rollout = ALL["rollout"] | {"draw_ahead": False}
    rl(config(start, tmp_path / "anew", problems, pool={}, rollout=rollout, optimizer={"learning_rate": 1e-9}))
    rl(config(start, tmp_path / "off", problems, 1, pool={}, rollout=rollout | {"redraws": 0}))
    rows = list(read_history(tmp_path / "anew", RlRow))
    assert sum(row.redrawn for row in rows) > 0
    for row in rows:
        found = answers(tmp_path / "anew", row.step)
        groups = [[a.reward for a in found if a.group == n] for n in range(row.problems)]
        differ = [len(set(group)) == 2 for group in groups]
        assert row.problems == 2 + row.redrawn == len(groups)
        assert row.samples == len(found) == 2 * row.problems
        assert row.groups_with_signal == sum(differ) <= 2
        bound = 2 + 2 * 2  # two groups, and each drawn anew twice
        assert sum(differ) == 2 or row.problems >= bound - sum(differ) * 2
        names = {n: {a.problem_id for a in found if a.group == n} for n in range(row.problems)}
        assert all(len(ids) == 1 for ids in names.values())
        if row.redrawn:  # the third problem takes the place of one of the two
            assert names[2].isdisjoint(names[0] | names[1])
        assert len({a.seed for a in found}) == len(found)
    # what is drawn first is the same with and without; nothing is drawn anew when the switch is off
    assert [a.text for a in answers(tmp_path / "anew", 1)][:4] == [a.text for a in answers(tmp_path / "off", 1)]
    assert {(row.redrawn, row.problems) for row in read_history(tmp_path / "off", RlRow)} == {(0, 2)}


def test_a_pool_keeps_what_is_neither_always_right_nor_never(start, problems, tmp_path, monkeypatch):
    Judge().install(monkeypatch)
    still = {"learning_rate": 1e-9}  # or the second pool might be too small without the third problem
    rl(config(start, tmp_path, problems, rollout=ALL["rollout"] | {"redraws": 0}, optimizer=still))
    assert [path.name for path in sorted((tmp_path / "pool").iterdir())] == ["step-000001.jsonl", "step-000003.jsonl"]
    first = {row.problem_id: row for row in read_jsonl(tmp_path / "pool" / "step-000001.jsonl", PoolRow)}
    assert first.keys() == {"never", "double", "square"}
    assert {row.answers for row in first.values()} == {8}
    assert (first["never"].right, first["never"].kept) == (0, False)
    for name in PROGRAMS:
        assert 0 < first[name].right < 8
        assert first[name].pass_rate == first[name].right / 8
        assert first[name].kept
    rows = list(read_history(tmp_path, RlRow))
    assert [row.pool for row in rows] == [2] * 3
    assert {a.problem_id for row in rows for a in answers(tmp_path, row.step)} == set(PROGRAMS)
    assert rows[0].pass_at_8 is None  # groups of two
    (tmp_path / "pool" / "step-000003.jsonl").unlink()
    with pytest.raises(DiceError, match=r"step-000003.jsonl: the pool .* is gone"):
        read_pool(tmp_path, 3)


def test_answers_drawn_ahead_are_of_the_weights_before_the_last_update(start, tmp_path, monkeypatch):
    """Drawn again here: those of step 2 by the start, those of step 3 by the checkpoint after step 1."""
    Judge().install(monkeypatch)
    both = tmp_path / "problems.jsonl"  # with eight answers to each, every step has a group with a difference
    write_jsonl(both, [pair(name) for name in PROGRAMS])
    wanted = config(start, tmp_path, str(both), pool={}, rollout=ALL["rollout"] | {"samples": 8, "redraws": 0})
    rl(wanted)
    rows = list(read_history(tmp_path, RlRow))
    first, second = rows[0].mismatch, rows[1].mismatch
    assert first is not None
    assert second is not None
    assert first < 1e-4
    assert second > 1e-3  # the ratio starts from what the sampler wrote down, not from the weights of now
    fresh = RlRun(wanted)
    for step in (2, 3):
        if step == 3:
            fresh.engine.load(tmp_path / "checkpoints" / "step-00000001")
        asked = [Asked(p, group, n) for group, p in enumerate(fresh.curriculum.problems(step)) for n in range(8)]
        again = draw(
            fresh.decoder(),
            asked,
            purpose=step,
            seed=wanted.seed,
            new_tokens=wanted.rollout.max_new_tokens,
            to_text=fresh.tokenizer.decode,
            on_answer=lambda answer: None,
        )
        assert [answer.text for answer in again] == [row.text for row in answers(tmp_path, step)]


@pytest.mark.parametrize("redraws", [0, 2])
def test_the_next_steps_answers_go_to_the_verifier_while_they_are_drawn(start, tmp_path, monkeypatch, redraws):
    """Before a step waits for its own verdicts; where groups are drawn anew, after those."""
    Judge().install(monkeypatch)
    told = []

    def watch(kind, name):
        own = getattr(kind, name)

        def tell(of, *given):
            done = own(of, *given)
            told.append((name, of if done is None else done))
            return done

        monkeypatch.setattr(kind, name, tell)

    watch(Verifier, "begin")
    watch(PendingVerdicts, "submit")
    watch(PendingVerdicts, "finish")
    both = tmp_path / "problems.jsonl"
    write_jsonl(both, [pair(name) for name in PROGRAMS])
    rollout = ALL["rollout"] | {"redraws": redraws}
    rl(config(start, tmp_path, str(both), pool={}, rollout=rollout, optimizer={"learning_rate": 1e-9}))
    sets = list(dict.fromkeys(of for name, of in told if name == "begin"))
    events = [(name, sets.index(of)) for name, of in told]
    order = [key for key, _ in itertools.groupby(events)]
    if redraws:
        assert len(sets) > 3
        alone = [event for n in range(len(sets)) for event in (("begin", n), ("submit", n), ("finish", n))]
        assert [event for event in order if event[0] != "begin"] == [event for event in alone if event[0] != "begin"]
    else:
        assert order == [
            *[("begin", 0), ("submit", 0), ("begin", 1), ("submit", 1), ("finish", 0)],
            *[("begin", 2), ("submit", 2), ("finish", 1), ("finish", 2)],
        ]


@pytest.mark.parametrize("redraws", [0, 2])
def test_the_history_does_not_depend_on_the_verifiers_speed_or_on_pauses(
    start, problems, tmp_path, monkeypatch, redraws
):
    steady, broken = tmp_path / "steady", tmp_path / "broken"
    rollout = ALL["rollout"] | {"redraws": redraws}
    with monkeypatch.context() as patch:
        Judge().install(patch)
        rl(config(start, steady, problems, rollout=rollout))
    with monkeypatch.context() as patch:
        Judge(late=True).install(patch)
        turns = itertools.cycle([False, True])  # a pause after every step, with answers that are drawn and not judged
        patch.setattr(RlRun, "_out_of_time", lambda run, elapsed_s: next(turns))
        for done in (1, 2, 3):
            assert rl(config(start, broken, problems, rollout=rollout))["steps_done"] == done
    assert len(curve(steady)) == 3
    assert (sum(row["redrawn"] for row in curve(steady)) > 0) == bool(redraws)
    assert curve(broken) == curve(steady)
    states = [load_model(out / "model").state_dict() for out in (steady, broken)]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


@pytest.mark.slow
def test_kill_9_between_a_draw_and_its_verdicts(start, build_folder, problems, tmp_path):
    """Real kernels; killed while the answers of step 3, which step 2 drew, are on their way to the verifier."""
    phases = [{"task": "infilling", "problems": [problems], "steps": 3, "order": "uniform"}]
    for name in ("unbroken", "broken"):
        values = settings(start, tmp_path / name, build_folder, phases=phases, **ALL)
        (tmp_path / f"{name}.yaml").write_text(json.dumps(values))
    rl(parse_config(RlConfig, json.loads((tmp_path / "unbroken.yaml").read_text()), "test"))
    kill_at("dice.training.rl_update:Updater.update", 2, ["rl", "--config", tmp_path / "broken.yaml"])
    assert len(curve(tmp_path / "broken")) == 1
    rl(parse_config(RlConfig, json.loads((tmp_path / "broken.yaml").read_text()), "test"))
    assert curve(tmp_path / "broken") == curve(tmp_path / "unbroken")


def test_two_processes_agree(start, problems, tmp_path, monkeypatch):
    """Each draws its share, and all take the same groups anew and the same problems into the pool."""
    phases = [{"task": "infilling", "problems": [problems], "steps": 2, "order": "uniform"}]
    values = settings(start, tmp_path / "two", phases=phases, **ALL)
    (tmp_path / "two.json").write_text(json.dumps(values))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    script = Path(__file__).with_name("judged_rl.py")
    places = [str(script.parent), str(script.parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(places), "OMP_NUM_THREADS": "1"}
    subprocess.run([*command, script, tmp_path / "two.json"], check=True, env=environment)
    Judge().install(monkeypatch)
    rl(parse_config(RlConfig, values | {"out": str(tmp_path / "one")}, "test"))
    pools = [read_pool(tmp_path / name, 1) for name in ("one", "two")]
    assert pools[0] == pools[1] == [1, 2]
    fields = ("step", "problems", "redrawn", "pool", "samples", "reward", "statuses", "groups_with_signal", "entropy")
    for one, two in zip(curve(tmp_path / "one"), curve(tmp_path / "two"), strict=True):
        for name in fields:
            assert two[name] == (pytest.approx(one[name], abs=1e-4) if isinstance(one[name], float) else one[name])


# -- what is asked, by hand ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rates", "at_least", "kept"),
    [
        ([0.0, 0.125, 0.5, 0.875, 1.0], 2, "-+++-"),
        ([0.082, 0.083, 0.917, 0.918], 1, "-++-"),
        ([0.0, 1.0, None, 0.5], 1, "---+"),
        ([0.0, 1.0, None, 0.95], 2, "+--+"),  # too few: the nearest to one half, the earlier of two first
        ([0.0, None], 5, "++"),
    ],
)
def test_which_problems_are_kept(rates, at_least, kept):
    assert "".join("-+"[one] for one in chosen(rates, PoolConfig(), at_least)) == kept


def curriculum(steps=6, **pool) -> Curriculum:
    phases = [{"problems": ["a"], "steps": 2}, {"problems": ["b"], "steps": steps, "name": "b"}]
    values = {"model": "m", "out": "o", "phases": phases, "rollout": {"problems_per_step": 2}, "pool": pool}
    return Curriculum(
        parse_config(RlConfig, values, "test"),
        [[RlProblem(f"{phase}{number}", "", (1,), 1 + number % 3) for number in range(9)] for phase in "ab"],
    )


def test_when_pools_are_measured_and_used():
    assert {curriculum().measured_at(step) for step in range(1, 9)} == {None}
    once = curriculum(answers=4)
    assert [once.measured_at(step) for step in range(1, 9)] == [1, 1, 3, 3, 3, 3, 3, 3]
    often = curriculum(answers=4, refresh_every=4)
    assert [often.measured_at(step) for step in range(1, 9)] == [1, 1, 3, 3, 3, 3, 7, 7]
    with pytest.raises(KeyError):
        often.problems(3)
    often.use(3, [0, 4, 8])
    often.use(7, [1, 2, 3, 5])
    assert [{p.id for p in often.problems(step)} <= {"b0", "b4", "b8"} for step in (3, 4, 5, 6)] == [True] * 4
    assert [p.id for p in often.problems(8)] == ["b2", "b5"]  # the hardest of the second pool
    assert [p.id for p in often.replacements(8, 0, 5)] == ["b1", "b3", "b2", "b5", "b1"]
    assert [p.id for p in often.replacements(8, 1, 1)] == ["b3"]


def test_which_problems_are_measured():
    assert curriculum(answers=4).to_measure(3) == list(range(9))
    some = curriculum(answers=4, problems=4, refresh_every=2)
    draws = [some.to_measure(step) for step in (3, 5, 7)]
    assert all(len(set(draw)) == 4 and draw == sorted(draw) for draw in draws)
    assert len({tuple(draw) for draw in draws}) > 1
    assert draws[0] == curriculum(answers=4, problems=4, refresh_every=2).to_measure(3)
