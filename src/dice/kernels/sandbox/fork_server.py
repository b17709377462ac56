"""The handle of a fork server: a process that has imported once what its forks need, and forks them on request.

`import torch` costs seconds; a fork costs milliseconds. Any number of processes, also those that were forked later, ask
a server for forks over a Unix socket. It ends when the last process that holds the handle's pipe ends, and its forks end
with it. A handle may be pickled: the copy finds the same server by its folder, and starts a new one there when that has
died. The folder stays as long as the handle's maker lives: the server of a copy may end before it.

What runs in the forks is not known here: `entry` is a module whose main function calls `serve_forks`
(`dice.kernels.candidate.process`, `dice.kernels.builder.process`).

    python -P -m ENTRY --directory DIR --life FD --owner PID     (started by `ForkServer.start`)
"""

from __future__ import annotations

import array
import contextlib
import fcntl
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dice.errors import HarnessError
from dice.kernels.sandbox import linux
from dice.kernels.sandbox.isolation import FOR_CUDA

START_TIMEOUT_S = 120.0


@contextlib.contextmanager
def short_path(folder: str) -> Iterator[str]:
    """Another path of the folder for the block: a socket's path may have 107 bytes, the folder's own may be longer."""
    fd = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{fd}"
    finally:
        os.close(fd)


@dataclass(frozen=True)
class Spawned:
    """Process 1 of what was forked. `pidfd` becomes readable when everything of it is gone."""

    pid: int
    pidfd: int


class ForkServer:
    """Handle of the fork server process; usable from any process that inherits it by fork, and from any thread.

    `visible`: folders and files that forks may read, beside what their service shows (never results or inputs). Where
    they are not known yet: `begin`, which starts the process and its imports, then `show`, then `start`. `directory`: a
    folder that is removed when the server ends.
    """

    def __init__(self, entry: str, visible: Iterable[str | Path] = ()) -> None:
        self._entry = entry
        self._visible = tuple(map(str, visible))
        self.directory = tempfile.mkdtemp(prefix="dice-fork-server-")
        os.chmod(self.directory, 0o711)  # without a jail, candidates of other users have their scratch folders below
        self._owner = os.getpid()
        self._begin_apart()

    def _begin_apart(self) -> None:
        """Nothing here is shared with another copy of the handle."""
        self._process: subprocess.Popen[bytes] | None = None
        self._begun: subprocess.Popen[bytes] | None = None
        self._launcher = -1
        self._life = -1
        self._connection: tuple[int, socket.socket] | None = None
        self._lock = threading.Lock()
        self.closed = threading.Event()

    def __getstate__(self) -> dict[str, Any]:
        return {"_entry": self._entry, "_visible": self._visible, "directory": self.directory, "_owner": self._owner}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        self._begin_apart()

    def begin(self) -> None:
        """Start the process and its imports, and return at once; `start` waits for it."""
        for name in ("socket", "binding"):
            Path(f"{self.directory}/{name}").unlink(missing_ok=True)
        if self._life >= 0:
            os.close(self._life)
        life_read, self._life = os.pipe()
        with open(f"{self.directory}/log", "wb") as log:
            self._begun = subprocess.Popen(
                [
                    *(sys.executable, "-P", "-m", self._entry),
                    *("--directory", self.directory, "--life", str(life_read), "--owner", str(self._owner)),
                ],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                pass_fds=[life_read],
                start_new_session=True,
                env=_server_environment(),
                cwd="/",
            )
        os.close(life_read)

    def show(self, visible: Iterable[str | Path]) -> None:
        """Let forks read these too. Before `start`: the jail is made once."""
        self._visible = (*self._visible, *map(str, visible))

    def start(self) -> None:
        """Start the process unless it has begun, and wait until it answers. Raises HarnessError with what it printed last."""
        with open(f"{self.directory}/lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # no filelock: every candidate's process would load it with this module
            if self._try_connect():
                return
            if self._begun is None:
                self.begin()
            self._await_answer()

    def _await_answer(self) -> None:
        process, self._begun = self._begun, None
        assert process is not None
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError), process.stdin:
            process.stdin.write(json.dumps(self._visible).encode())
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._try_connect():
            if process.poll() is not None or time.monotonic() > deadline:
                process.kill()
                words = Path(f"{self.directory}/log").read_text(errors="replace").strip().splitlines()
                raise HarnessError(f"The fork server did not start: {words[-1] if words else 'no message'}.")
            time.sleep(0.02)
        self._process, self._launcher = process, os.getpid()

    def _try_connect(self) -> bool:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with short_path(self.directory) as folder:
                connection.connect(f"{folder}/socket")
        except OSError:
            connection.close()
            return False
        self._connection = (os.getpid(), connection)
        return True

    def spawn(self, request: dict[str, Any], sockets: tuple[int, int]) -> Spawned:
        """Fork for `request` (JSON, at most 64 KiB), with duplicates of two descriptors. A server that was killed is
        started again, once.

        Raises HarnessError when there is no fork to be had, or the handle was closed.
        """
        with self._lock:  # request and answer share one connection
            return self._spawn(json.dumps(request).encode(), sockets)

    def _spawn(self, request: bytes, sockets: tuple[int, int]) -> Spawned:
        for attempt in range(2):
            try:
                if self.closed.is_set():
                    raise HarnessError("The fork server was ended.")
                if self._connection is None or self._connection[0] != os.getpid():
                    self.start()
                assert self._connection is not None
                return self._request(self._connection[1], request, sockets)
            except OSError as error:
                self._drop_connection()
                if attempt:
                    raise HarnessError(f"The fork server does not answer ({error}).") from error
        raise AssertionError("unreachable")

    def _request(self, connection: socket.socket, request: bytes, sockets: tuple[int, int]) -> Spawned:
        connection.settimeout(30)
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", sockets))]
        connection.sendmsg([request], rights)
        data, received, _, _ = socket.recv_fds(connection, 4096, 1)
        if not data:
            raise ConnectionError("end of stream")
        answer = json.loads(data)
        if "error" in answer:
            raise HarnessError(f"No process from the fork server: {answer['error']}.")
        return Spawned(pid=_pid_of(received[0]), pidfd=received[0])

    def _drop_connection(self) -> None:
        if self._connection is not None:
            self._connection[1].close()
            self._connection = None

    def close(self) -> None:
        """End the fork server and its forks, when called by the process that made the handle; no more will be had."""
        self.closed.set()
        self._drop_connection()
        if self._life >= 0:
            os.close(self._life)
            self._life = -1
        if self._begun is not None:
            self._process, self._begun, self._launcher = self._begun, None, os.getpid()
        if self._process is not None and self._launcher == os.getpid():
            self._process.terminate()
            self._process.wait()
            self._process = None
        if self._owner == os.getpid():
            shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> ForkServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _pid_of(pidfd: int) -> int:
    """The process's number in this process's PID namespace, which need not be the fork server's."""
    for line in Path(f"/proc/self/fdinfo/{pidfd}").read_text().splitlines():
        if line.startswith("Pid:"):
            return int(line.split()[1])
    return -1


def _server_environment() -> dict[str, str]:
    kept = (*FOR_CUDA, "PATH", "PYTHONPATH")
    environment = {name: value for name, value in os.environ.items() if name.startswith(kept)}
    # Thread pools made at import would not survive the fork, and a process with threads cannot make a user namespace.
    environment |= {"LANG": "C.UTF-8", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", linux.HUGE_PAGES: "1"}
    # torch.utils.cpp_extension asks for GPUs when it is imported; asked through the runtime, no child could use CUDA.
    # The jail has no NVML; torch's warning about it would be the last thing that a crashing candidate "said".
    quiet = "ignore:Can't initialize NVML:UserWarning"
    return {**environment, "PYTORCH_NVML_BASED_CUDA_CHECK": "1", "PYTHONWARNINGS": quiet}
