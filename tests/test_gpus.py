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
from dice.gpus import lease, share_of_cores

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


def test_leases_side_by_side_share_no_core_and_together_have_all():
    shares = [share_of_cores(list(range(10, 18)), ["0", "3", "5", "7"], [gpu]) for gpu in ("0", "3", "5", "7")]
    assert shares == [{10, 11}, {12, 13}, {14, 15}, {16, 17}]
    assert share_of_cores(list(range(8)), ["0", "1"], ["1", "0"]) == set(range(8))
    assert share_of_cores([4, 9], ["0", "1", "2"], ["2"]) == {4, 9}, "fewer cores than GPUs"


def test_the_command_has_its_share_of_the_cores(tmp_path):
    script = "import os, pathlib, sys; pathlib.Path(sys.argv[1]).write_text(str(len(os.sched_getaffinity(0))))"
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ",".join(map(str, range(len(os.sched_getaffinity(0)))))}
    command = [*COMMAND, "--gpus", "1", "--", sys.executable, "-c", script, str(tmp_path / "cores")]
    assert subprocess.run(command, env=environment, check=False).returncode == 0
    assert (tmp_path / "cores").read_text() == "1"


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
