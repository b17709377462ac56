"""Two GPUs against one: replicas and DeepSpeed's ZeRO give the same curve, also when they are killed in between."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import torch
from rl_start import make_start
from sft_start import losses, make_data, settings
from waiting import PATIENCE_S, wait_for

from dice.config import parse_config
from dice.training.history import read_history
from dice.training.rl_history import RlRow
from dice.training.sft import sft
from dice.training.sft_config import SftConfig

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs"),
]
zero = pytest.mark.skipif(importlib.util.find_spec("deepspeed") is None, reason="needs DeepSpeed")
STEPS = 12
BOUND = 0.01
"""Largest relative difference of a step's loss that bfloat16 products in another order may make."""


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    return make_data(tmp_path_factory.mktemp("data"))


def torchrun(gpus: int, *words: str | Path) -> list[str]:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(gpus)]
    return [*command, "-m", "dice.cli", *map(str, words)]


def write(folder: Path, name: str, values: dict) -> Path:
    path = folder / f"{name}.json"
    path.write_text(json.dumps(values))
    return path


def sft_settings(data: Path, out: Path, **changes) -> dict:
    """Chunks of the head are so small that the GPUs have different numbers of them."""
    common = {"device": "cuda", "attention": "batched", "compile": False, "max_steps": STEPS, "save_every": 4}
    return settings(data, out, **common | {"head_chunk": 16} | changes)


def apart(one: list[float], other: list[float]) -> float:
    return max(abs(a - b) / abs(a) for a, b in zip(one, other, strict=True))


@pytest.fixture(scope="module")
def alone(data, tmp_path_factory) -> list[float]:
    """The curve of one GPU that takes all packs of a step; another seed's is farther away than the bound."""
    folder = tmp_path_factory.mktemp("alone")
    for seed in (0, 1):
        sft(parse_config(SftConfig, sft_settings(data, folder / f"run{seed}", seed=seed), "test"))
    curve = losses(folder / "run0")
    assert len(curve) == STEPS
    assert apart(curve, losses(folder / "run1")) > BOUND
    return curve


def kill_in_between(command: list[str], out: Path) -> None:
    """Start, and kill -9 all processes when some steps lie behind the first checkpoint."""
    worker = subprocess.Popen(command)

    def is_between() -> bool:
        assert worker.poll() is None
        return bool(list(out.glob("checkpoints/step-*"))) and len(losses(out)) >= 6

    wait_for(is_between, "six steps and a checkpoint")
    for process in [*psutil.Process(worker.pid).children(recursive=True), worker]:  # they have sessions of their own
        process.kill()
    worker.wait()
    assert 6 <= len(losses(out)) < STEPS


@pytest.mark.parametrize(
    ("engine", "killed"),
    [
        ("local", False),
        pytest.param("zero2", False, marks=zero),
        pytest.param("zero3", True, marks=zero),
        ("local", True),
        pytest.param("zero2", True, marks=zero),
    ],
)
def test_two_gpus_give_the_curve_of_one_after_kill_9_too(data, alone, tmp_path, engine, killed):
    out = tmp_path / "run"
    command = torchrun(2, "sft", "--config", write(tmp_path, "sft", sft_settings(data, out, engine=engine)))
    if killed:
        kill_in_between(command, out)
    assert subprocess.run(command, timeout=PATIENCE_S).returncode == 0
    curve = losses(out)
    print(f"{engine}, killed {killed}: largest relative difference to one GPU {apart(alone, curve):.2e}")
    assert apart(alone, curve) < BOUND


@zero
def test_accumulation_of_unknown_length_with_zero():
    """Told the last micro-batch instead of their number, as reinforcement learning does: the same gradients."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    script = Path(__file__).with_name("zero_accumulation.py")
    places = [str(script.parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]  # tiny_models lies above
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(places)}
    assert subprocess.run([*command, str(script)], env=environment, timeout=PATIENCE_S).returncode == 0


@pytest.fixture(scope="module")
def start(tmp_path_factory) -> Path:
    return make_start(tmp_path_factory.mktemp("start"), steps=300)


@zero
@pytest.mark.parametrize("engine", ["zero2", "zero3"])
def test_reinforcement_learning_with_zero(start, tmp_path, engine):
    """Answers come from a copy of the divided weights: after an update it agrees with the trainer as before."""
    problems = [str(start / "problems.jsonl")]
    values = {
        "model": str(start / "sft" / "model"),
        "out": str(tmp_path / "rl"),
        "phases": [{"task": "end_to_end", "problems": problems, "steps": 3, "order": "uniform"}],
        "prompt": {"style": "compact"},
        "rollout": {"problems_per_step": 2, "samples": 8, "max_new_tokens": 220, "max_batch": 16, "engine": "plain"},
        "objective": {"updates_per_step": 2},
        "optimizer": {"learning_rate": 1e-3},
        "engine": engine,
        "attention": "batched",
        "compile": False,
        "tensorboard": False,
    }
    command = torchrun(2, "rl", "--config", write(tmp_path, "rl", values))
    assert subprocess.run(command, timeout=PATIENCE_S).returncode == 0
    rows = list(read_history(tmp_path / "rl", RlRow))
    assert [row.step for row in rows] == [1, 2, 3]
    assert sum(row.updates for row in rows) > 0
    for row in rows:
        assert row.samples == 16
        if row.mismatch is not None:
            assert row.mismatch < 0.05
