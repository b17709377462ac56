"""Who may run: the locks of a run and of its jobs, and the queue of a scheduler. The workflow itself: test_interrupted."""

import errno
import os
import subprocess
import sys

import pytest

from dice.errors import DiceError
from dice.study.resume import RunLock, jobs_prefix, parting_words, slurm_jobs

KILLED = """
import os, sys
from dice.study.resume import RunLock
RunLock(sys.argv[1], print).begin()
os._exit(9)
"""


def test_a_second_run_is_refused_until_the_first_ends(tmp_path):
    first, said = RunLock(tmp_path, print), []
    first.begin()
    with pytest.raises(DiceError, match="another snakemake works on"):
        RunLock(tmp_path, said.append).begin()
    RunLock(tmp_path / "nano", said.append).begin()
    first.end()
    RunLock(tmp_path, said.append).begin()
    assert said == []


def test_the_lock_of_a_killed_run_is_gone(tmp_path):
    subprocess.run([sys.executable, "-c", KILLED, tmp_path], check=False)
    RunLock(tmp_path, print).begin()


def test_queued_jobs_of_a_killed_run_are_waited_for(tmp_path):
    subprocess.run([sys.executable, "-c", KILLED, tmp_path], check=False)
    answers, said = [["17", "18_2"], ["18_2"], []], []
    run = RunLock(tmp_path, said.append)
    run.begin(lambda: answers.pop(0), poll_s=0.01)
    assert answers == []
    assert len(said) == 1
    assert "17, 18_2" in said[0]
    assert "scancel those that have not begun" in said[0]


def test_after_a_run_that_ended_in_order_the_queue_is_not_asked(tmp_path):
    run = RunLock(tmp_path, print)
    run.begin()
    run.end()
    RunLock(tmp_path, print).begin(lambda: pytest.fail("jobs of another scale are none of this run's"))


@pytest.mark.parametrize("name", ["results", "results of {mine} 'x'"])
def test_what_a_job_starts_holds_its_share(tmp_path, name):
    (tmp_path / name).mkdir()
    prefix = jobs_prefix(tmp_path / name).format()  # as Snakemake does
    job = subprocess.Popen(["bash", "-c", prefix + "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert job.stdin
    assert job.stdout
    job.stdin.write(b"x")
    job.stdin.flush()
    job.stdout.read(1)
    said, stdin = [], job.stdin

    def say(sentence):
        said.append(sentence)
        stdin.close()

    RunLock(tmp_path / name, say).begin()
    assert "its jobs are still running" in said[0]
    assert job.wait() == 0
    assert subprocess.run(["bash", "-c", prefix + "false; true"], check=False).returncode == 1, "strict mode"


def test_slurm_jobs_are_those_of_this_folder(tmp_path, monkeypatch):
    squeue = tmp_path / "squeue"
    squeue.write_text(f"#!/bin/sh\necho '3 {tmp_path}'\necho '4_1 /elsewhere'\n")
    squeue.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert slurm_jobs(tmp_path) == ["3"]
    squeue.write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(DiceError, match="squeue cannot say"):
        slurm_jobs(tmp_path)


def test_a_file_system_without_locks_is_said_and_other_faults_are_raised(tmp_path, monkeypatch):
    def refuses(number):
        def flock(*_):
            raise OSError(number, os.strerror(number))

        return flock

    said = []
    monkeypatch.setattr("fcntl.flock", refuses(errno.ENOLCK))
    RunLock(tmp_path, said.append).begin()
    assert "keeps no locks" in said[0]
    monkeypatch.setattr("fcntl.flock", refuses(errno.EIO))
    with pytest.raises(OSError, match="Input/output"):
        RunLock(tmp_path, said.append).begin()


def test_parting_words_name_a_full_disk_only(tmp_path, monkeypatch):
    assert "full" not in parting_words(tmp_path / "results")
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 2**20})())
    assert "is full (1 MiB left): make room" in parting_words(tmp_path / "results")
