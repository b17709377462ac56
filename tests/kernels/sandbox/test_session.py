"""What a session closes when it cannot begin, and when its candidate ends during a build."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from dice.errors import HarnessError
from dice.kernels.sandbox.fork_server import Spawned
from dice.kernels.sandbox.isolation import SandboxSpec
from dice.kernels.sandbox.replies import Done
from dice.kernels.sandbox.session import CandidateFailure, Session

SPEC = SandboxSpec(
    scratch_bytes=1 << 20, file_bytes=1 << 20, processes=16, data_bytes=1 << 30, cuda_visible_devices="", threads=1
)


def test_a_sandbox_that_cannot_be_set_up_leaves_nothing_open() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    server: Any = SimpleNamespace(spawn=lambda spec, fds: Spawned(child.pid, os.pidfd_open(child.pid)))
    before = os.listdir("/proc/self/fd")
    with pytest.raises(HarnessError, match="could not be set up"):
        Session(server, SPEC, 1 << 30)
    assert os.listdir("/proc/self/fd") == before
    assert child.wait() == -signal.SIGKILL


def _ended(*reports: dict[str, Any]) -> Session:
    """A session whose process 1 has said `reports`, and has ended with the candidate."""
    ready = {"isolation": ["pid_namespace", "scratch_quota"], "missing": []}

    def spawn(spec: SandboxSpec, fds: list[int]) -> Spawned:
        status = fds[1]
        for report in (ready, *reports):
            os.write(status, json.dumps(report).encode())
        child = subprocess.Popen([sys.executable, "-c", ""])
        pidfd = os.pidfd_open(child.pid)
        child.wait()
        return Spawned(child.pid, pidfd)

    server: Any = SimpleNamespace(spawn=spawn)
    return Session(server, SPEC, 1 << 30)


def test_a_candidate_that_is_asked_again_after_its_end_is_no_fault_of_the_machine() -> None:
    with contextlib.closing(_ended({"signal": int(signal.SIGABRT), "tail": ""})) as session:
        with pytest.raises(CandidateFailure, match="killed by SIGABRT"):
            session.ask("order", Done, 10.0)
        with pytest.raises(CandidateFailure, match="after its end"):
            session.ask("order", Done, 10.0)


def test_a_process_1_that_reports_no_end_was_killed_from_outside() -> None:
    with contextlib.closing(_ended()) as session, pytest.raises(HarnessError, match="killed from outside"):
        session.ask("order", Done, 10.0)


def test_an_object_built_for_a_candidate_that_has_ended_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    ended, (built, other_end) = threading.Event(), os.pipe()

    def answer(message: dict[str, Any]) -> tuple[dict[str, Any], int]:
        ended.wait()
        return {}, built

    def watch(session: Session) -> None:
        ended.set()
        raise CandidateFailure("out_of_memory", "too much")

    monkeypatch.setattr(Session, "_watch", watch)
    session = Session.__new__(Session)
    session._answer_build = answer
    with pytest.raises(CandidateFailure):
        session._build({})
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(built)
    os.close(other_end)
