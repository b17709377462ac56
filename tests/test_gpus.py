"""GPU leases: nobody shares, a killed holder frees its GPU, the command's exit code comes through."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys

import pytest
from waiting import PATIENCE_S

from dice.errors import DiceError, HarnessError
from dice.gpus import lease

COMMAND = [sys.executable, "-m", "dice.cli", "lease"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("DICE_LEASES", str(tmp_path))


def test_leases_are_disjoint():
    with lease(1, ["0", "1"], 1.0) as first, lease(1, ["0", "1"], 1.0) as second:
        assert {*first, *second} == {"0", "1"}


def test_a_lease_waits_and_gives_up():
    with lease(1, ["0"], 1.0), pytest.raises(HarnessError, match="not free"), lease(1, ["0"], 0.1):
        pass
    with lease(1, ["0"], 0.1) as names:
        assert names == ["0"]


def test_a_folder_without_locks_is_named(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", refuse)
    with pytest.raises(HarnessError, match=f"{tmp_path}: no lock can be had there .*DICE_LEASES"), lease(1, ["0"], 0.1):
        pass


def test_the_folder_that_is_made_is_for_all_users(tmp_path, monkeypatch):
    monkeypatch.setenv("DICE_LEASES", str(tmp_path / "made"))
    with lease(1, ["0"], 1.0):
        assert (tmp_path / "made").stat().st_mode & 0o7777 == 0o1777
        assert (tmp_path / "made" / "0.lock").stat().st_mode & 0o777 == 0o666


def test_more_gpus_than_there_are_is_refused():
    with pytest.raises(DiceError, match="2 GPUs are asked for and 1"), lease(2, ["0"], 0.1):
        pass


def test_the_command_sees_its_gpu_and_its_exit_code_comes_through():
    script = "import os, sys; sys.exit(int(os.environ['CUDA_VISIBLE_DEVICES']))"
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "7"}
    done = subprocess.run([*COMMAND, "--gpus", "1", "--", sys.executable, "-c", script], env=environment, check=False)
    assert done.returncode == 7


def test_without_gpus_the_command_simply_runs():
    done = subprocess.run([*COMMAND, "--gpus", "0", "--", sys.executable, "-c", "raise SystemExit(3)"], check=False)
    assert done.returncode == 3


def test_a_killed_holder_frees_its_gpu(tmp_path):
    script = "import signal; print('held', flush=True); signal.pause()"
    holder = subprocess.Popen(
        [*COMMAND, "--gpus", "1", "--", sys.executable, "-c", script],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "0"},
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    with pytest.raises(HarnessError), lease(1, ["0"], 0.1):
        pass
    os.killpg(holder.pid, signal.SIGKILL)
    holder.wait()
    with lease(1, ["0"], PATIENCE_S) as names:
        assert names == ["0"]
