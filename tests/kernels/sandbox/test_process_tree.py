"""Processes below one: stopped together, let go on together, counted with their threads."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from waiting import PATIENCE_S

from dice.kernels.sandbox.process_tree import descendants, freeze, thaw, threads

PARENT = """
import os, sys, threading
held = threading.Event()
threading.Thread(target=held.wait, daemon=True).start()
if os.fork() == 0:
    while True:  # never waits for anything
        pass
print("ready", flush=True)
for line in sys.stdin:
    print("heard " + line.strip(), flush=True)
"""


def states(pids: list[int]) -> list[str]:
    found = []
    for pid in pids:
        for task in Path(f"/proc/{pid}/task").iterdir():
            found.append((task / "stat").read_text().rpartition(")")[2].split()[0])
    return found


def test_what_is_frozen_stops_whole_and_goes_on() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stdin is not None
        assert run.stdout is not None
        assert run.stdout.readline() == "ready\n"
        assert threads([run.pid]) == 2
        stopped = freeze(os.getpid())
        try:
            assert {run.pid, *descendants(run.pid)} <= set(stopped)
            assert len(stopped) >= 2
            assert set(states([run.pid, *descendants(run.pid)])) == {"T"}
            run.stdin.write("something\n")
            run.stdin.flush()
            os.set_blocking(run.stdout.fileno(), False)
            assert run.stdout.readline() == ""
        finally:
            thaw(stopped)
        os.set_blocking(run.stdout.fileno(), True)
        assert run.stdout.readline() == "heard something\n"
        for pid in descendants(run.pid):
            os.kill(pid, signal.SIGKILL)
        run.kill()


def test_what_cannot_be_stopped_is_told_and_nothing_stays_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen(["sleep", "60"]) as run:
        real = os.kill

        def refuse(pid: int, number: int) -> None:
            if number == signal.SIGSTOP:
                raise PermissionError("not yours")
            real(pid, number)

        monkeypatch.setattr(os, "kill", refuse)
        with pytest.raises(PermissionError):
            freeze(os.getpid())
        deadline = time.monotonic() + PATIENCE_S
        while states([run.pid])[0] not in "SR":
            assert time.monotonic() < deadline
        run.kill()
