"""The stages `dice sft` and `dice generate`: learning, accumulation, processes, kill -9 and resume, refusals."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from killed_at import kill_at
from sft_start import REFERENCE, free_port, losses, make_data, settings
from waiting import PATIENCE_S

from dice.cli import main
from dice.config import parse_config
from dice.data.pair import Pair
from dice.errors import DiceError
from dice.evaluation.generate import Generation
from dice.evaluation.prompts import PromptConfig, Task, make_prompts, prompt_sha256
from dice.evaluation.prompts.stage import PromptRow
from dice.jsonl import read_jsonl, write_jsonl
from dice.model.checkpoint import load_model, read_config
from dice.training.history import HistoryRow, read_history
from dice.training.sft import Trainer, sft
from dice.training.sft_config import SftConfig, learning_rate


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    return make_data(tmp_path_factory.mktemp("data"))


def run(data: Path, out: Path, **changes) -> list[float]:
    sft(parse_config(SftConfig, settings(data, out, **changes), "test"))
    return losses(out)


@pytest.mark.parametrize("objective", ["block_diffusion", "autoregressive"])
def test_learns_and_answers(data, tmp_path, objective, capsys):
    """From scratch to an answer through the command line: what was trained is what generates."""
    config = settings(
        data,
        tmp_path / "run",
        objective=objective,
        max_steps=400 if objective == "block_diffusion" else 150,
        noise_per="block",
        schedule="cosine",
        optimizer={"learning_rate": 1e-2},
        tensorboard=True,
    )
    (tmp_path / "sft.yaml").write_text(json.dumps(config))
    assert main(["sft", "--config", str(tmp_path / "sft.yaml")]) == 0
    curve = losses(tmp_path / "run")
    assert len(curve) in (400, 150)
    assert sum(curve[-5:]) < 0.3 * sum(curve[:5])
    assert list((tmp_path / "run" / "tensorboard").iterdir())
    assert (tmp_path / "run" / "model.manifest.json").is_file()
    assert read_config(tmp_path / "run" / "model").model_type == ("sdar" if objective == "block_diffusion" else "qwen3")
    task = Task(REFERENCE.format(op="+", n=3))
    prompt = make_prompts([task], PromptConfig(style="compact"))[0]
    row = PromptRow(id="level1/1_add", task="end_to_end", prompt_sha256=prompt_sha256(prompt), prompt=prompt)
    write_jsonl(tmp_path / "prompts.jsonl", [row])
    command = ["generate", "--model", str(tmp_path / "run" / "model"), "--prompts", str(tmp_path / "prompts.jsonl")]
    command += ["--out", str(tmp_path / "g.jsonl"), "--samples", "2", "--max-new-tokens", "80", "--device", "cpu"]
    assert main(command) == 0
    rows = list(read_jsonl(tmp_path / "g.jsonl", Generation))
    assert [row.sample for row in rows] == [0, 1]
    assert rows[0].text == rows[1].text  # greedy
    assert rows[0].finish_reason == "stop"
    assert rows[0].code is not None
    assert "class ModelNew" in rows[0].code
    assert rows[0].n_tokens == len(rows[0].order)
    assert "2 answers written" in capsys.readouterr().out


def test_accumulation_and_processes_give_one_curve(data, tmp_path):
    """Two processes with two packs each, and one process with four, are the same run; another seed is not."""
    alone = run(data, tmp_path / "one")
    config = settings(data, tmp_path / "two")
    (tmp_path / "sft.json").write_text(json.dumps(config))
    port = str(free_port())
    workers = [
        subprocess.Popen(
            [sys.executable, "-m", "dice.cli", "sft", "--config", str(tmp_path / "sft.json")],
            env=os.environ
            | {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
            | {"OMP_NUM_THREADS": "1"},
        )
        for rank in range(2)
    ]
    assert [worker.wait(PATIENCE_S) for worker in workers] == [0, 0]
    assert losses(tmp_path / "two") == pytest.approx(alone, rel=1e-4)
    assert run(data, tmp_path / "other", seed=1) != pytest.approx(alone, rel=1e-2)
    one, two = (load_model(tmp_path / name / "model").state_dict() for name in ("one", "two"))
    for name, tensor in one.items():
        torch.testing.assert_close(tensor, two[name], atol=2e-4, rtol=1e-3)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_resume_continues_the_curve(data, tmp_path, dtype):
    unbroken = run(data, tmp_path / "a", dtype=dtype, save_every=100)
    with pytest.raises(KeyboardInterrupt):
        _run_interrupted(data, tmp_path / "b", after=4, dtype=dtype, save_every=3)
    assert len(losses(tmp_path / "b")) == 4
    assert run(data, tmp_path / "b", dtype=dtype, save_every=3) == unbroken  # bit for bit
    assert run(data, tmp_path / "b", dtype=dtype, save_every=3) == unbroken  # nothing left to do


def test_the_clock_of_a_resumed_run_goes_on(data, tmp_path):
    """Three steps are in the checkpoint, and the nine minutes that they are said to have taken are over."""
    with pytest.raises(KeyboardInterrupt):
        _run_interrupted(data, tmp_path / "a", after=4, save_every=3, max_minutes=10)
    rows = [row.model_copy(update={"seconds": 180.0}) for row in read_history(tmp_path / "a", HistoryRow)]
    write_jsonl(tmp_path / "a" / "history.jsonl", rows)
    run(data, tmp_path / "a", save_every=3, max_minutes=8)
    assert [row.step for row in read_history(tmp_path / "a", HistoryRow)] == [1, 2, 3]  # 540 s of 480: nothing more
    said = json.loads((tmp_path / "a" / "model.manifest.json").read_text())
    assert (said["extra"]["steps"], said["extra"]["planned_steps"] > 3) == (3, True)
    resumed = run(data, tmp_path / "a", save_every=3, max_minutes=1000)
    assert len(resumed) > 3


def test_recomputation_leaves_the_curve(data, tmp_path):
    kept = run(data, tmp_path / "a", activation_checkpointing=False)
    assert run(data, tmp_path / "b", activation_checkpointing=1, recompute_gates=True) == pytest.approx(kept, rel=1e-5)
    assert kept[-1] < kept[0]


def _run_interrupted(data, out, *, after, **changes):
    trainer = Trainer(parse_config(SftConfig, settings(data, out, **changes), "test"))
    step = trainer.step

    def interrupted(prepared, elapsed=0.0):
        if prepared.index == after:
            raise KeyboardInterrupt
        return step(prepared, elapsed)

    trainer.step = interrupted
    trainer.train()


def test_kill_9_and_resume(data, tmp_path):
    unbroken = run(data, tmp_path / "a", max_steps=40, save_every=2)
    config = settings(data, tmp_path / "b", max_steps=40, save_every=2)
    (tmp_path / "sft.json").write_text(json.dumps(config))
    for place, count in [
        ("dice.training.sft:Trainer.step", 6),
        ("shutil:rmtree", 4),  # the second checkpoint is written and has not its name yet
        ("dice.training.history:History.append", 9),
    ]:
        kill_at(place, count, ["sft", "--config", tmp_path / "sft.json"])
    assert len(losses(tmp_path / "b")) < 40
    assert run(data, tmp_path / "b", max_steps=40, save_every=2) == pytest.approx(unbroken, rel=1e-5)
    assert [row.step for row in read_history(tmp_path / "b", HistoryRow)] == list(range(1, 41))


def test_other_settings_do_not_resume(data, tmp_path):
    run(data, tmp_path / "a", max_steps=2)
    with pytest.raises(DiceError, match="run with other settings, weights or data"):
        run(data, tmp_path / "a", max_steps=2, seed=5)


def test_a_run_on_a_base_that_was_made_anew_does_not_resume(data, tmp_path):
    base = tmp_path / "base" / "model"
    run(data, tmp_path / "base", max_steps=1)
    run(data, tmp_path / "a", model=str(base), max_steps=2)
    run(data, tmp_path / "a", model=str(base), max_steps=2)  # the same base: nothing left to do
    shutil.rmtree(tmp_path / "base")
    run(data, tmp_path / "base", max_steps=1, seed=5)
    with pytest.raises(DiceError, match="run with other settings, weights or data"):
        run(data, tmp_path / "a", model=str(base), max_steps=2)


def test_a_damaged_checkpoint_is_one_sentence(data, tmp_path):
    run(data, tmp_path / "a", max_steps=2)
    state = tmp_path / "a" / "checkpoints" / "step-00000002" / "state.pt"
    state.write_bytes(state.read_bytes()[: state.stat().st_size // 2])
    with pytest.raises(DiceError, match=r"step-00000002: the checkpoint is damaged .*; delete it to start again"):
        run(data, tmp_path / "a", max_steps=2)


def test_bf16_products_have_fp32_masters(data, tmp_path):
    """Updates far below a bf16 weight's spacing still add up."""
    slow = {"learning_rate": 1e-5}
    run(data, tmp_path / "a", dtype="bfloat16", optimizer=slow, max_steps=6)
    state = torch.load(tmp_path / "a" / "checkpoints" / "step-00000006" / "state.pt", weights_only=True)["masters"]
    assert all(tensor.dtype == torch.float32 for tensor in state.values())
    norm = state["model.layers.0.input_layernorm.weight"]
    assert (norm != 1).all()
    assert (norm.bfloat16() == 1).all()
    assert load_model(tmp_path / "a" / "model").dtype == torch.bfloat16


def test_continues_from_a_checkpoint(data, tmp_path):
    first = run(data, tmp_path / "a", max_steps=40)
    (tmp_path / "a" / "model" / "generation_config.json").write_text('{"do_sample": true}')
    second = run(data, tmp_path / "b", model=str(tmp_path / "a" / "model"), tokenizer=None, max_steps=3)
    assert max(second) < 0.8 * first[0]
    assert (tmp_path / "b" / "model" / "generation_config.json").read_text() == '{"do_sample": true}'
    with pytest.raises(DiceError, match="trained with blocks of 4, and block_size is 8"):
        run(data, tmp_path / "c", model=str(tmp_path / "a" / "model"), block_size=8)


def test_over_long_samples(data, tmp_path):
    with pytest.raises(DiceError, match=r"pair '.+' needs \d+ tokens and the window has 32"):
        run(data, tmp_path / "a", window=32)
    with pytest.raises(DiceError, match="no pair fits"):
        run(data, tmp_path / "a", window=32, on_long="drop")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tokenizer": None}, "name a tokenizer"),
        ({"pairs": []}, "no pairs"),
        ({"max_steps": None, "epochs": 1, "packs_per_step": 999}, "fewer than packs_per_step 999"),
        ({"task": "infilling"}, "has no middle"),
        ({"engine": "zero2"}, "need DeepSpeed"),
    ],
)
def test_refusals(data, tmp_path, changes, message, monkeypatch):
    monkeypatch.setenv("MASTER_PORT", str(free_port()))
    with pytest.raises(DiceError, match=message):
        run(data, tmp_path / "a", **changes)


def test_schedule(data, tmp_path):
    config = parse_config(SftConfig, settings(data, tmp_path, warmup_ratio=0.1), "test")
    rates = [learning_rate(config, step, 100) / 3e-3 for step in range(100)]
    assert rates[:10] == pytest.approx([0.1 * (i + 1) for i in range(10)])
    assert rates[10:] == [1.0] * 90
    for schedule in ("cosine", "linear"):
        config = parse_config(SftConfig, settings(data, tmp_path, warmup_ratio=0.1, schedule=schedule), "test")
        rates = [learning_rate(config, step, 100) / 3e-3 for step in range(100)]
        assert rates[10] == 1
        assert rates[55] == pytest.approx(0.5)
        assert rates[99] < 0.02


def test_the_window_may_exceed_the_positions_but_no_sample_may(data, tmp_path):
    """Positions start anew with each sample of a pack."""
    assert len(run(data, tmp_path / "wide", window=40_000, packs_per_step=1, max_steps=1)) == 1
    long = Pair(id="long", pytorch_code=REFERENCE.format(op="+", n=1), cuda_code="#é~" * 20_000, source="test")
    write_jsonl(tmp_path / "long.jsonl", [long])
    with pytest.raises(DiceError, match=r"pair 'long' has .* tokens, and the model has 32768 positions"):
        run(data, tmp_path / "long", pairs=[str(tmp_path / "long.jsonl")], window=200_000)
