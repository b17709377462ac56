"""Results follow from seeds and steps: a slow or a loaded machine gives the same ones."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from plans import EXPERIMENTS, copy_workflow, plan

from dice.config import canonical, parse_config
from dice.manifest import sha256_file
from dice.study.config import scales
from dice.training.rl_config import RlConfig
from dice.training.sft_config import SftConfig

HALF_S = 0.02


@pytest.mark.parametrize("scale", scales(EXPERIMENTS / "config"))
@pytest.mark.parametrize("from_scratch", [False, True])
def test_no_recipe_of_a_scale_stops_by_the_clock(scale, from_scratch):
    one = plan(scale, from_scratch=from_scratch)
    units = [(unit, SftConfig) for unit in one.models_by("sft")] + [(unit, RlConfig) for unit in one.models_by("rl")]
    for unit, kind in units:
        if one.recipe(unit) is None and one.base(unit).dataset is None:
            continue  # a checkpoint of the hub has no recipe from scratch
        config = parse_config(kind, one.training_spec(unit) | {"out": "x"}, unit)
        assert config.max_minutes is None, f"{scale} {unit}"


def test_the_recipe_of_the_embedded_bases_does_not_stop_by_the_clock():
    assert "max_minutes" not in yaml.safe_load((EXPERIMENTS / "base" / "tiny.yaml").read_text())


def test_the_tiny_scale_fixes_what_depends_on_the_machine():
    """Inputs of the trials and threads, for the rewards and for the verdicts."""
    tiny = plan("tiny")
    reward = parse_config(RlConfig, tiny.training_spec("8B-dice") | {"out": "x"}, "rl").reward
    assert (reward.judging.seed, reward.machine.threads) == (0, 1)
    assert (reward.judging.correctness_trials, reward.judging.measure_time) == (1, False), "as without a seed"
    verify = tiny.verify_spec("8B-dice", 0)
    assert (verify["judging"]["seed"], verify["machine"]["threads"]) == (0, 1)
    assert tiny.study.threads == verify["machine"]["jobs"] == 1


@contextlib.contextmanager
def half_speed(process: subprocess.Popen) -> Iterator[None]:
    """The process group is stopped for half of the time, while the clock goes on."""
    ended = threading.Event()

    def brake() -> None:
        while not ended.wait(HALF_S):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGSTOP)
                time.sleep(HALF_S)
                os.killpg(process.pid, signal.SIGCONT)

    thread = threading.Thread(target=brake)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def start(folder: Path, *command: str, threads: int = 1) -> subprocess.Popen:
    environment = os.environ | {
        "OMP_NUM_THREADS": str(threads),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    return subprocess.Popen(
        [sys.executable, "-m", *command],
        cwd=folder,
        env=environment,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def ends_well(process: subprocess.Popen) -> None:
    text, _ = process.communicate()
    assert process.returncode == 0, text[-3000:]


def dice(folder: Path, *command: str) -> None:
    ends_well(start(folder, "dice.cli", *command))


def test_training_at_half_speed_gives_the_same_weights(tmp_path):
    """The smoke scale's recipe of the model whose tiny recipe once ended by the clock."""
    smoke = plan("smoke")
    dice(tmp_path, "synth", "--quiet", "--config", canonical(smoke.synth_spec("corpus")))
    dice(tmp_path, "tokenizer", "--config", canonical(smoke.tokenizer_spec("corpus")))
    weights = []
    for out in ("free", "slowed"):
        spec = canonical(smoke.training_spec("8B-qwen3"))
        process = start(tmp_path, "dice.cli", "sft", "--config", spec, "--out", out)
        with half_speed(process) if out == "slowed" else contextlib.nullcontext():
            ends_well(process)
        weights.append(sha256_file(tmp_path / out / "model" / "model.safetensors"))
    assert weights[0] == weights[1]


@contextlib.contextmanager
def busy_machine() -> Iterator[None]:
    """A process that does nothing but compute, for each core."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


@pytest.mark.slow
def test_a_loaded_machine_gives_the_same_table(tmp_path):
    """From nothing to table 1, alone and beside busy loops, with two cores and with one: the same bytes."""
    tables = []
    for name, cores, load in (("free", 2, contextlib.nullcontext()), ("loaded", 1, busy_machine())):
        folder = tmp_path / name
        copy_workflow(folder)
        target = "results/smoke/table1.csv"
        with load:
            ends_well(start(folder, "snakemake", "--cores", str(cores), target, "--config", "scale=smoke"))
        models = [sha256_file(path) for path in sorted(folder.glob("results/smoke/models/*/model.safetensors"))]
        tables.append(((folder / target).read_bytes(), models))
    assert tables[0] == tables[1]
