"""Which GPUs and cores the workers use."""

import contextlib
import functools

import pytest

from dice.errors import DiceError
from dice.kernels.candidate.process import candidate_server
from dice.kernels.pool import workers
from dice.kernels.pool.workers import Machine, chosen_gpus
from dice.kernels.records.job import Judging, Limits
from dice.manifest import visible_gpus


@pytest.fixture
def four_gpus(tmp_path, monkeypatch):
    """A machine whose nvidia-smi lists four."""
    listing = tmp_path / "nvidia-smi"
    listing.write_text('#!/bin/sh\nfor i in 0 1 2 3; do echo "GPU-${i}ad0-77, NVIDIA H200 $i, 580.1, 143771"; done\n')
    listing.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def test_all_gpus_or_those_that_are_named(four_gpus):
    assert chosen_gpus("cuda", Machine()) == [0, 1, 2, 3]
    assert chosen_gpus("cuda", Machine(gpus=(3, 1))) == [3, 1]
    assert chosen_gpus("cpu", Machine()) == []
    with pytest.raises(DiceError, match="names GPU 4, but this machine has 4"):
        chosen_gpus("cuda", Machine(gpus=(4,)))
    with pytest.raises(DiceError, match="names no GPU"):
        chosen_gpus("cuda", Machine(gpus=()))


def test_gpus_that_were_not_given_to_this_process_are_not_used(four_gpus, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,GPU-1ad0")
    assert chosen_gpus("cuda", Machine()) == [0, 1]  # places in that list
    assert [gpu.name[-1] for gpu in visible_gpus()] == ["2", "1"]
    with pytest.raises(DiceError, match="names GPU 2"):
        chosen_gpus("cuda", Machine(gpus=(2,)))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,9,1")
    assert chosen_gpus("cuda", Machine()) == [0]  # as for the driver, nothing counts behind one that does not exist
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(DiceError, match="needs an NVIDIA GPU"):
        chosen_gpus("cuda", Machine())


def test_no_driver_is_no_gpu(monkeypatch, tmp_path):
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\nexit 9\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    with pytest.raises(DiceError, match="needs an NVIDIA GPU"):
        chosen_gpus("cuda", Machine())


def shared(machine, fork_server):
    return workers._Shared("cpu", Judging(), Limits(), machine, fork_server, fork_server)


@pytest.mark.parametrize(("jobs", "n_jobs", "threads"), [(None, 99, 1), (4, 99, 6), (4, 2, 12), (1, 99, 16)])
def test_executors_on_the_cpu_share_its_cores(monkeypatch, jobs, n_jobs, threads):
    monkeypatch.setattr(workers, "cores", lambda: 24)
    with contextlib.closing(candidate_server()) as fork_server:
        plans = list(workers._plans(shared(Machine(jobs=jobs), fork_server), n_jobs, []))
    assert [plan.role for plan in plans] == ["execute"]
    make = plans[0].make_handler
    assert isinstance(make, functools.partial)
    assert make.keywords["threads"] == threads
    assert plans[0].count * threads <= 24


def test_threads_of_a_candidate_may_be_fixed_whatever_the_machine(monkeypatch):
    monkeypatch.setattr(workers, "cores", lambda: 24)
    with contextlib.closing(candidate_server()) as fork_server:
        (plan,) = workers._plans(shared(Machine(jobs=2, threads=1), fork_server), 99, [])
    assert isinstance(plan.make_handler, functools.partial)
    assert plan.make_handler.keywords["threads"] == 1


def test_the_compiler_that_is_asked_for_is_the_one_that_builds_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(DiceError, match="no C\\+\\+ compiler"):
        chosen_gpus("cpu", Machine())
    monkeypatch.setenv("CXX", "sh")  # whatever it is called
    monkeypatch.setenv("PATH", "/bin")
    assert chosen_gpus("cpu", Machine()) == []
