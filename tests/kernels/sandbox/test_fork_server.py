"""A fork server's folder: its path may be too long for a socket, and it stays while the handle's maker lives."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from waiting import wait_for

from dice.kernels.builder.process import compiler_server
from dice.kernels.sandbox.fork_server import ForkServer, short_path


@pytest.fixture
def far(tmp_path: Path) -> Path:
    """A folder whose path alone is longer than a socket's may be."""
    folder = tmp_path / ("far" * 20) / ("away" * 20)
    folder.mkdir(parents=True)
    return folder


def test_a_socket_has_a_short_path_in_any_folder(far: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as client:
        with pytest.raises(OSError, match="too long"):
            listener.bind(f"{far}/socket")
        with short_path(str(far)) as folder:
            listener.bind(f"{folder}/socket")
        listener.listen()
        with short_path(str(far)) as folder:
            client.connect(f"{folder}/socket")
    assert (far / "socket").is_socket()


def test_a_server_starts_there(far: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(far))
    with compiler_server() as server:
        assert server.directory.startswith(str(far))


def a_server_is_there(server: ForkServer) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client, short_path(server.directory) as folder:
        return client.connect_ex(f"{folder}/socket") == 0


def test_the_server_that_a_copy_started_ends_with_the_copy_and_leaves_the_folder_to_the_others() -> None:
    with compiler_server() as server:
        assert server._process is not None
        server._process.kill()
        server._process.wait()
        copy = multiprocessing.get_context("spawn").Process(target=server.start)
        copy.start()
        copy.join()
        assert copy.exitcode == 0
        wait_for(lambda: not a_server_is_there(server), "the copy's server to end")
        server._drop_connection()
        server.start()
        assert a_server_is_there(server)
    assert not Path(server.directory).exists()


def test_the_folder_is_removed_when_its_maker_was_killed(tmp_path: Path) -> None:
    code = "from dice.kernels.builder.process import compiler_server as s; s().__enter__(); print(flush=True); input()"
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as maker:
        assert maker.stdout is not None
        maker.stdout.readline()
        assert list(tmp_path.iterdir())
        maker.send_signal(signal.SIGKILL)
        maker.wait()
    wait_for(lambda: not list(tmp_path.iterdir()), "the folder to be removed")
