"""Whatever interrupts a run, the next `snakemake` continues, and nothing half-written is taken for a result.

The real Snakefile and profiles, at the smoke scale and up to the prompts: seconds. `dice` is the real command, but for one
stage that a test may hold up half-way, after it has spoilt its output.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from plans import copy_workflow, plan
from waiting import PATIENCE_S, wait_for

from dice.cli import main
from dice.config import canonical

BIN = Path(sys.executable).parent
PROMPTS = "results/smoke/data/prompts.jsonl"
PROBLEMS = "results/smoke/data/problems.jsonl"
DICE = f"""#!/bin/sh
if [ "$1" = problems ] && [ -e hold ]; then
    echo '{{"id": "half' > {PROBLEMS}
    touch held
    while [ -e hold ]; do sleep 0.1; done
fi
exec {BIN}/dice "$@"
"""


@dataclass
class Checkout:
    """A copy of what the workflow reads, with a `dice` that stops half-way while there is a file `hold`."""

    folder: Path

    def start(self, *arguments: str, max_file_bytes: int | None = None) -> subprocess.Popen:
        """Snakemake in a process group of its own, as a shell starts it."""
        environment = {**os.environ, "PATH": f"{self.folder / 'bin'}:{BIN}:{os.environ['PATH']}"}

        def prepare():
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # ignored where the tests run in the background
            if max_file_bytes:
                resource.setrlimit(resource.RLIMIT_FSIZE, (max_file_bytes, max_file_bytes))

        return subprocess.Popen(
            [sys.executable, "-m", "snakemake", "--cores", "1", PROMPTS, "--config", "scale=smoke", *arguments],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            preexec_fn=prepare,
        )

    def run(self, *arguments: str, code: int = 0, max_file_bytes: int | None = None) -> str:
        process = self.start(*arguments, max_file_bytes=max_file_bytes)
        text, _ = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == code, text[-3000:]
        return text

    def has(self, name: str) -> bool:
        return (self.folder / name).exists()

    def interrupted(self, strike: Callable[[subprocess.Popen], None]) -> None:
        """A run that `strike` ends while a job has its output half-written."""
        (self.folder / "hold").touch()
        process = self.start()
        wait_for(lambda: self.has("held"), "a job has half its output")
        strike(process)
        assert process.wait(timeout=PATIENCE_S) != 0
        assert "half" in (self.folder / PROBLEMS).read_text()


def copied(folder: Path) -> Checkout:
    copy_workflow(folder)
    dice = folder / "bin" / "dice"
    dice.parent.mkdir()
    dice.write_text(DICE)
    dice.chmod(0o755)
    return Checkout(folder)


@pytest.fixture
def checkout(tmp_path) -> Checkout:
    return copied(tmp_path)


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory) -> bytes:
    """The problems where nothing interrupts the commands that make them."""
    folder = tmp_path_factory.mktemp("unbroken")
    smoke = plan("smoke")
    with contextlib.chdir(folder):
        assert main(["mini", "--size", "cpu", "--out", smoke.benchmark]) == 0
        assert main(["problems", "--config", canonical(smoke.problems_spec())]) == 0
    return (folder / PROBLEMS).read_bytes()


def goes_on(checkout: Checkout, unbroken: bytes) -> str:
    """The same command goes on, keeps what was complete, and makes again what was not."""
    (checkout.folder / "hold").unlink(missing_ok=True)
    text = checkout.run()
    assert "mini: " not in text, "the benchmark was complete, and was made again"
    assert (checkout.folder / PROBLEMS).read_bytes() == unbroken
    assert checkout.has(PROMPTS)
    return text


def everyone(number: signal.Signals) -> Callable[[subprocess.Popen], None]:
    return lambda process: os.killpg(process.pid, number)


@pytest.mark.slow
def test_ctrl_c(checkout, unbroken):
    checkout.interrupted(everyone(signal.SIGINT))
    goes_on(checkout, unbroken)
    assert "Nothing to be done" in checkout.run("-n")


def test_kill_9(checkout, unbroken):
    checkout.interrupted(everyone(signal.SIGKILL))
    text = checkout.run("--workflow-profile", "none", code=1)
    assert "incomplete" in text, "without a profile the half-written file is refused"
    assert "jobs are still running" not in goes_on(checkout, unbroken)


@pytest.mark.slow
def test_jobs_that_outlive_their_run_are_waited_for(checkout, unbroken):
    checkout.interrupted(lambda process: process.kill())
    second = checkout.start()
    assert second.stdout
    assert any("its jobs are still running" in line for line in second.stdout)
    assert "half" in (checkout.folder / PROBLEMS).read_text(), "two jobs write the same file"
    (checkout.folder / "hold").unlink()
    text, _ = second.communicate(timeout=PATIENCE_S)
    assert second.returncode == 0, text[-3000:]
    assert (checkout.folder / PROBLEMS).read_bytes() == unbroken


def test_a_second_run_is_refused_and_a_plan_is_not(checkout):
    (checkout.folder / "hold").touch()
    first = checkout.start()
    wait_for(lambda: checkout.has("held"), "the first run is in a job")
    assert "another snakemake works on results/smoke" in checkout.run(code=1)
    checkout.run("-n")
    (checkout.folder / "hold").unlink()
    text, _ = first.communicate(timeout=PATIENCE_S)
    assert first.returncode == 0, text[-3000:]


@pytest.mark.slow
def test_full_disk(checkout, unbroken):
    text = checkout.run(code=1, max_file_bytes=len(unbroken) - 1)
    assert "make room" in text
    assert "the same command goes on from there" in text
    assert not checkout.has(PROBLEMS)
    assert not list((checkout.folder / PROBLEMS).parent.glob(".problems*"))
    goes_on(checkout, unbroken)
