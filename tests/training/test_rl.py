"""`dice rl` as a whole: real kernels as reward, interruption, and what the world does to a run."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from killed_at import kill_at
from rl_start import PREFIX, PYTORCH, SUFFIX, curve, pair, settings

from dice.cli import main
from dice.config import parse_config
from dice.errors import DiceError, HarnessError
from dice.jsonl import read_jsonl, write_jsonl
from dice.manifest import manifest_path
from dice.model.checkpoint import load_model
from dice.training.checkpoints import Checkpoint, resume
from dice.training.history import read_history
from dice.training.rl import RlRun, rl
from dice.training.rl_config import RlConfig
from dice.training.rl_history import AnswerRow, RlRow


def config(*args, **changes) -> RlConfig:
    return parse_config(RlConfig, settings(*args, **changes), "test")


def test_two_steps_with_real_kernels_and_a_pause_between(start, build_folder, tmp_path, capsys, monkeypatch):
    """Infilling, then end to end; stopped after the first step and taken up again; the same as in one go."""
    one, two = tmp_path / "one", tmp_path / "two"
    values = settings(start, one, build_folder, tensorboard=True, save_every=5)
    (tmp_path / "rl.yaml").write_text(json.dumps(values))
    command = ["rl", "--config", str(tmp_path / "rl.yaml")]
    assert main(command) == 0
    assert "2 steps, reward" in capsys.readouterr().out
    rows = list(read_history(one, RlRow))
    assert [(row.phase, row.samples, row.problems) for row in rows] == [("infilling", 12, 2), ("end_to_end", 12, 2)]
    for row in rows:
        assert row.reward is not None
        assert row.mismatch is not None
        assert 0 < row.reward < 1
        assert row.statuses["correct"] > 0
        assert row.left_out == row.host_errors == 0
        assert row.groups_with_signal > 0
        assert row.updates == 2
        assert row.mismatch < 1e-4
    answers = list(read_jsonl(one / "rollouts" / "step-000001.0.jsonl", AnswerRow))
    assert {answer.reward for answer in answers} == {0.0, 1.0}
    for answer in answers:
        assert answer.code is None or (answer.code.startswith(PREFIX) and answer.code.endswith(SUFFIX))
    before, after = (load_model(path) for path in (values["model"], one / "model"))
    assert any(not torch.equal(a, b) for a, b in zip(before.parameters(), after.parameters(), strict=True))
    assert load_model(one / "phases" / "1-infilling").config == before.config
    manifest = json.loads(manifest_path(one / "model").read_text())
    assert manifest["extra"]["steps_done"] == 2
    assert list((one / "tensorboard").iterdir())

    # a pause: the limit is over when the first step ends; the same command goes on
    saved, save = [], RlRun.save
    with monkeypatch.context() as patch:
        patch.setattr(RlRun, "save", lambda run, step, *also: (saved.append(step), save(run, step, *also)))
        assert main([*command, "--out", str(two), "--max-minutes", "0.001"]) == 0
    assert saved == [1], "the end of its phase saved it; once more would delete that checkpoint first"
    assert "paused after step 1 of 2" in capsys.readouterr().out
    assert not (two / "model").exists()
    assert load_model(two / "paused").config == before.config
    assert main([*command, "--out", str(two)]) == 0
    assert not (two / "paused").exists()
    assert curve(two) == curve(one)


@pytest.mark.gpu
def test_two_steps_on_a_gpu(start, build_folder, tmp_path):
    """CUDA graphs decode with the weights that are trained: trainer and sampler agree after an update as before."""
    values = settings(start, tmp_path, build_folder, device="cuda")
    values["reward"] |= {"backend": "cuda"}
    values["objective"] |= {"kl_reference": "start_model"}
    assert rl(parse_config(RlConfig, values, "test"))["steps_done"] == 2
    for row in read_history(tmp_path, RlRow):
        assert row.statuses.get("correct", 0) > 0
        assert row.left_out == 0
        assert row.mismatch is None or row.mismatch < 0.05  # bfloat16, other shapes of products


@pytest.mark.slow
def test_kill_9_anywhere_resumes_to_the_same_curve(start, build_folder, tmp_path):
    problems = [str(start / "problems.jsonl")]
    phases = [{"task": "infilling", "problems": problems, "steps": 2}, {"problems": problems, "steps": 2}]
    command = [sys.executable, "-m", "dice.cli", "rl", "--config"]
    for name in ("unbroken", "broken"):
        values = settings(start, tmp_path / name, build_folder, phases=phases, optimizer={"learning_rate": 3e-3})
        (tmp_path / f"{name}.yaml").write_text(json.dumps(values))
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    subprocess.run([*command, tmp_path / "unbroken.yaml"], check=True, env=environment)
    wanted = curve(tmp_path / "unbroken")
    assert len(wanted) == 4
    out = tmp_path / "broken"
    for place, count in [
        ("dice.training.rl:RlRun.train", 1),
        ("dice.training.rollout:PendingVerdicts.submit", 7),  # among the answers of the first step
        ("dice.training.rollout:PendingVerdicts.finish", 1),  # while the verifier works
        ("dice.training.rl_update:Updater.update", 1),
        ("dice.training.history:History.append", 1),  # the answers are written, their row is not
        ("dice.training.local_engine:LocalEngine.save", 1),
        ("shutil:rmtree", 2),  # the checkpoint is written and has not its name yet
        ("dice.training.rollout:PendingVerdicts.finish", 2),
    ]:
        kill_at(place, count, ["rl", "--config", tmp_path / "broken.yaml"])
    subprocess.run([*command, tmp_path / "broken.yaml"], check=True, env=environment)
    assert curve(out) == wanted
    states = [load_model(tmp_path / name / "model").state_dict() for name in ("unbroken", "broken")]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


def test_a_full_disk_and_a_damaged_checkpoint_are_one_sentence(start, tmp_path):
    run = RlRun(config(start, tmp_path / "run"))
    run.save(1)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))  # no file may grow beyond: writing fails as on a full disk
    try:
        with pytest.raises(HarnessError, match=r"checkpoint of step 2 .*step-00000001 is intact"):
            run.save(2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    folder = tmp_path / "run" / "checkpoints"
    assert [path.name for path in folder.iterdir()] == ["step-00000001"]
    run.save(2)
    state = folder / "step-00000002" / "state.pt"
    state.write_bytes(state.read_bytes()[: state.stat().st_size // 2])
    fresh = RlRun(config(start, tmp_path / "run"))
    with pytest.raises(DiceError, match="step-00000002: the checkpoint"):
        fresh.train()
    assert (folder / "step-00000001" / "state.pt").is_file()
    (folder / "step-00000002" / "checkpoint.json").write_text("{")
    with pytest.raises(DiceError, match=r"checkpoint\.json is damaged"):
        fresh.train()


def test_whenever_a_save_ends_the_newest_checkpoint_is_whole(start, tmp_path, monkeypatch):
    def killed(*_, **__):
        raise KeyboardInterrupt

    run, folder = RlRun(config(start, tmp_path / "run", keep_checkpoints=1)), tmp_path / "run" / "checkpoints"
    run.save(1)
    with monkeypatch.context() as patch, contextlib.suppress(KeyboardInterrupt):
        patch.setattr(Path, "rename", killed)
        run.save(1)
    assert resume(tmp_path / "run", run.engine, run.identity) == Checkpoint(folder / "step-00000001", 1)
    run.save(1)
    assert [path.name for path in folder.iterdir()] == ["step-00000001"]

    def half_gone(path: Path, ignore_errors: bool = False) -> None:
        if path.name == "step-00000001":
            (path / "state.pt").unlink()
            killed()

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", half_gone)
        with pytest.raises(KeyboardInterrupt):
            run.save(2)
    shutil.rmtree(folder / "step-00000002")
    assert resume(tmp_path / "run", run.engine, run.identity) is None


def test_other_settings_do_not_resume(start, tmp_path):
    RlRun(config(start, tmp_path / "run")).save(1)
    with pytest.raises(DiceError, match="other settings"):
        RlRun(config(start, tmp_path / "run", seed=1)).train()
    assert RlRun(config(start, tmp_path / "run", max_minutes=3)).identity == RlRun(config(start, tmp_path)).identity


def test_variants_differ_by_their_phases_alone(start, tmp_path):
    """Table 6: what each variant asks in each step."""
    problems = [str(start / "problems.jsonl")]
    rollout = settings(start, tmp_path)["rollout"] | {"problems_per_step": 1}

    def asked(*phases) -> list[tuple[str, str]]:
        run = RlRun(config(start, tmp_path, rollout=rollout, phases=list(phases)))
        steps, asked = range(1, run.config.steps + 1), run.curriculum
        return [(asked.place(step)[1].task, asked.problems(step)[0].id) for step in steps]

    middle = {"task": "infilling", "problems": problems, "steps": 2}
    whole = {"task": "end_to_end", "problems": problems, "steps": 2}
    assert [task for task, _ in asked(middle, whole)] == ["infilling"] * 2 + ["end_to_end"] * 2
    assert [task for task, _ in asked(whole | {"steps": 4})] == ["end_to_end"] * 4
    for order in ("paper", "uniform", "released"):
        assert {name for _, name in asked(whole | {"order": order})} == {"double", "square"}


@pytest.mark.parametrize(("difficulty", "first"), [("level", "two"), ("operators", "one")])
def test_the_schedule_goes_up_by_level_or_by_operators(start, tmp_path, difficulty, first):
    of = {"one": ("x * 2", 2), "two": ("torch.exp(x * 2)", 1)}
    rows = [
        pair("double").model_copy(update={"id": name, "pytorch_code": PYTORCH.format(expression=text), "level": level})
        for name, (text, level) in of.items()
    ]
    write_jsonl(tmp_path / "labelled.jsonl", rows)
    phase = {"problems": [str(tmp_path / "labelled.jsonl")], "steps": 2, "order": "paper"}
    rollout = settings(start, tmp_path)["rollout"] | {"problems_per_step": 1}
    run = RlRun(config(start, tmp_path, rollout=rollout, phases=[phase], difficulty=difficulty))
    assert run.curriculum.problems(1)[0].id == first


def test_whole_file_infilling_is_a_switch(start, tmp_path):
    kept = RlRun(config(start, tmp_path)).curriculum.problems(1)[0]
    released = {"whole_file_infilling": True}
    moved = RlRun(config(start, tmp_path, released_behaviour=released)).curriculum.problems(1)[0]
    assert kept.prefix == PREFIX
    assert moved.prefix is None
    assert moved.prompt != kept.prompt  # it asks for the whole file


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"rollout": {"max_new_tokens": 10**6}}, "max_prompt_tokens"),
        ({"rollout": {"max_prompt_tokens": 3}}, "no problem is left"),
        ({"rollout": {"decoding": {"block_size": 8}}}, "make them equal"),
        ({"phases": [{"problems": ["missing.jsonl"]}]}, "missing.jsonl"),
        ({"rollout": {"draw_ahead": True}, "objective": {"old_log_probs": "recomputed"}}, "old_log_probs: sampler"),
        ({"rollout": {"draw_ahead": True}, "released_behaviour": {"text_round_trip": True}}, "old_log_probs: sampler"),
        ({"pool": {"lowest": 0.8, "highest": 0.2}}, "above pool.highest"),
        ({"engine": "zero2", "released_behaviour": {"weights_16bit": True}}, "engine: local"),
        ({"model": "nowhere"}, "nowhere"),
    ],
)
def test_what_cannot_be_used_is_refused(start, tmp_path, changes, text):
    with pytest.raises(DiceError, match=text):
        RlRun(config(start, tmp_path, **changes))


def test_two_phases_of_one_name_are_refused(start, tmp_path):
    phase = {"problems": [str(start / "problems.jsonl")]}
    with pytest.raises(DiceError, match="give them names"):
        RlRun(config(start, tmp_path, phases=[phase, phase]))
    assert RlRun(config(start, tmp_path, phases=[phase, phase | {"name": "again"}])).config.steps == 200


def test_history_refuses_what_it_does_not_know():
    with pytest.raises(ValueError, match="step"):
        RlRow.model_validate({"surprise": 1})
