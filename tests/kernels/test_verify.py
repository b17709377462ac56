"""`dice verify` as a command: how it ends when it is told to."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import uuid
from pathlib import Path

import pytest
from execution import FORBID_NAMESPACES, HONEST, PROBLEM, processes
from pool_handlers import verdict
from waiting import PATIENCE_S, wait_for

from dice.errors import HarnessError
from dice.kernels.records.job import Job
from dice.kernels.verify import orderly_end, refuse_host_errors


def test_a_batch_systems_signal_ends_the_command_like_ctrl_c() -> None:
    before = signal.getsignal(signal.SIGTERM)
    cleaned = []

    def work() -> None:
        with orderly_end():
            try:
                os.kill(os.getpid(), signal.SIGTERM)
                threading.Event().wait(PATIENCE_S)
            finally:
                cleaned.append(True)

    with pytest.raises(SystemExit) as end:
        work()
    assert end.value.code == 128 + signal.SIGTERM
    assert cleaned
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_while_headers_are_compiled_ends_all_of_it(tmp_path: Path, number: signal.Signals) -> None:
    """With a compiler that never ends: nothing waits for it, nothing is left, and the next run gets as far again."""
    mark = f"{uuid.uuid4().int % 10**9}.25"
    compiler, cache = tmp_path / "compiler", tmp_path / "cache"
    temporary = Path(tempfile.mkdtemp())  # not below tmp_path: the names of sockets have 107 bytes
    compiler.write_text(f'#!/bin/sh\ncase "$*" in *-c*) exec sleep {mark};; esac\nexec g++ "$@"\n')
    compiler.chmod(0o755)
    row = {"problem_id": "level1/1_small", "problem_code": PROBLEM, "code": HONEST}
    (tmp_path / "c.jsonl").write_text(json.dumps(row) + "\n")
    command = [sys.executable, "-m", "dice.cli", "verify", "--backend", "cpu", "--cache", str(cache), "--quiet"]
    command += ["--candidates", str(tmp_path / "c.jsonl"), "--out", str(tmp_path / "v.jsonl")]
    environment = dict(os.environ) | {"CXX": str(compiler), "TMPDIR": str(temporary)}

    def running(text: str) -> bool:
        return any(text in line for _, line in processes())

    for _ in range(2):
        with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:

            def compiles(process: subprocess.Popen[str] = process) -> bool:
                assert process.poll() is None, process.stderr and process.stderr.read()
                return running(f"sleep {mark}")

            wait_for(compiles, "a header is compiled")
            process.send_signal(number)
            assert process.wait(PATIENCE_S) != 0
        wait_for(lambda: not running(mark) and not running(str(tmp_path)), "its processes end")
        wait_for(lambda: not list(temporary.glob("dice-*")), "its temporary folders are removed")
        left = [path.name for path in cache.glob("toolchains/*/**/*")]
        assert not [name for name in left if name.endswith(".failed")]
        half_written = [
            name for name in left if name.startswith(".")
        ]  # a killed command leaves it to the next to remove
        assert len(half_written) == (number == signal.SIGKILL)
        assert not list(cache.glob("objects/*"))


def test_a_machine_that_lacks_isolation_is_refused_at_once_where_it_is_required(tmp_path: Path) -> None:
    """In one sentence that names what is missing, for candidates' compilers too, before any header is compiled."""
    row = {"problem_id": "level1/1_small", "problem_code": PROBLEM, "code": HONEST}
    (tmp_path / "c.jsonl").write_text(json.dumps(row) + "\n")
    command = ["dice", "verify", "--backend", "cpu", "--cache", str(tmp_path / "cache"), "--require-isolation"]
    command += ["--candidates", str(tmp_path / "c.jsonl"), "--out", str(tmp_path / "v.jsonl")]
    script = f"{FORBID_NAMESPACES}\nimport sys\nfrom dice.cli import main\nsys.argv = {command}\nsys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode != 0
    (sentence,) = [line for line in done.stderr.splitlines() if "isolation" in line]
    for words in ("compilers: jail (", "compilers: pid_namespace (", "compilers: own_user (", "--require-isolation"):
        assert words in sentence
    assert not list((tmp_path / "cache").glob("toolchains/*/*"))
    assert not (tmp_path / "v.jsonl").exists()


def test_a_candidate_without_a_verdict_is_an_error_that_says_why() -> None:
    job = Job(problem_id="level1/1_small", problem_code=PROBLEM, sample=0, code=HONEST)
    refuse_host_errors([verdict(job), verdict(job, "runtime_error", "its own fault")], "v.jsonl")
    given = [verdict(job), verdict(job, "host_error", "no space\nleft"), verdict(job, "host_error", "another")]
    with pytest.raises(HarnessError, match=r"2 verdicts are host errors \(in v.jsonl; the first: no space left\)"):
        refuse_host_errors(given, "v.jsonl")
