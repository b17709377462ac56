"""A lock between processes: one holder, free again however it ends."""

from __future__ import annotations

import errno
import os
import subprocess
import sys

import pytest

from dice.errors import DiceError, HarnessError
from dice.locks import file_lock, only_holder

TAKEN = "another run works here"
HOLDER = """
import sys
from pathlib import Path
from dice.locks import file_lock
with file_lock(Path(sys.argv[1]), 5.0):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """A process that holds the lock of folder/lock until its input ends."""
    command = [sys.executable, "-c", HOLDER, str(tmp_path / "folder" / "lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        yield process


def test_one_process_holds_it_at_a_time(holder, tmp_path):
    path = tmp_path / "folder" / "lock"
    with pytest.raises(HarnessError, match="another process has held this lock for too long"), file_lock(path, 0.1):
        pass
    holder.stdin.close()
    with file_lock(path, 60.0):
        assert path.exists()


def test_a_killed_holder_frees_it(holder, tmp_path):
    holder.kill()
    with file_lock(tmp_path / "folder" / "lock", 60.0):
        pass


def test_a_holder_may_remove_the_file(tmp_path):
    """The build cache does; who opened the old file must not think that it holds the new one."""
    path = tmp_path / "lock"
    with file_lock(path, 1.0):
        path.unlink()
        with file_lock(path, 1.0), pytest.raises(HarnessError, match="too long"), file_lock(path, 0.1):
            pass
    with file_lock(path, 1.0):
        pass


def test_a_file_system_without_locks_is_the_machines_fault(tmp_path, monkeypatch):
    for number in (errno.ENOLCK, errno.ENOSYS):

        def refuse(*_, number=number):
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr("fcntl.flock", refuse)
        with pytest.raises(HarnessError, match="no lock can be had there"), file_lock(tmp_path / "lock", 1.0):
            pass


def test_only_a_lock_that_is_held_is_called_taken(holder, tmp_path, monkeypatch):
    with pytest.raises(DiceError, match=TAKEN), only_holder(tmp_path / "folder" / "lock", TAKEN):
        pass

    def refuse(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", refuse)
    with pytest.raises(HarnessError, match="no lock can be had there"), only_holder(tmp_path / "lock", TAKEN):
        pass
