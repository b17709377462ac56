"""A fork server whose folder has a path that is too long for a socket."""

from __future__ import annotations

import socket
import tempfile
from pathlib import Path

import pytest

from dice.kernels.builder.process import compiler_server
from dice.kernels.sandbox.fork_server import short_path


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
