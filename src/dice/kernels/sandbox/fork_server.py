"""The fork server: one process that has imported PyTorch once and forks candidates from it.

`import torch` costs seconds; a fork costs milliseconds. The fork server never touches CUDA (a context does not survive a
fork), runs no candidate code and holds no secrets. `ForkServer` is the handle: any number of graders, also in other
processes that were forked later, ask it for candidates over a Unix socket. It ends when the last process that holds the
handle's pipe ends, and its candidates end with it. A handle may be pickled: the copy finds the same server by its
folder, and starts a new one there when that has died.

What runs in the forks is not known here: `entry` is a module whose main function calls `serve_forks` with it
(`dice.kernels.candidate.process`).

    python -P -m ENTRY --directory DIR --life FD     (started by `ForkServer.start`)
"""

from __future__ import annotations

import argparse
import array
import contextlib
import fcntl
import gc
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dice.errors import HarnessError
from dice.kernels.sandbox import linux
from dice.kernels.sandbox.isolation import (
    Layers,
    SandboxSpec,
    enter_jail,
    enter_user_namespace,
    own_proc_is_possible,
    runtime_paths,
)
from dice.kernels.sandbox.supervisor import Serve, say, supervise

START_TIMEOUT_S = 120.0
_TAIL_BYTES = 16_384


@dataclass(frozen=True)
class Spawned:
    """A candidate's process 1 as the grader sees it. `pidfd` becomes readable when everything of it is gone."""

    pid: int
    pidfd: int


class ForkServer:
    """Handle of the fork server process; usable from any process that inherits it by fork.

    `visible`: further folders that candidates may read (the build's support libraries, never results or inputs). Where
    they are not known yet: `begin`, which starts the process and its imports, then `show`, then `start`.
    """

    def __init__(self, entry: str, visible: Iterable[str | Path] = ()) -> None:
        self._entry = entry
        self._visible = tuple(map(str, visible))
        self._directory = tempfile.mkdtemp(prefix="dice-fork-server-")
        os.chmod(self._directory, 0o711)  # without a jail, candidates of other users have their scratch folders below
        self._owner = os.getpid()
        self._process: subprocess.Popen[bytes] | None = None
        self._begun: subprocess.Popen[bytes] | None = None
        self._launcher = -1
        self._life = -1
        self._connection: tuple[int, socket.socket] | None = None
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {"_entry": self._entry, "_visible": self._visible, "_directory": self._directory}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= {
            **state,
            "_owner": -1,
            "_process": None,
            "_begun": None,
            "_launcher": -1,
            "_life": -1,
            "_connection": None,
            "_lock": threading.Lock(),
        }

    def begin(self) -> None:
        """Start the process, which imports PyTorch, and return at once; `start` waits for it."""
        for name in ("socket", "binding"):
            Path(f"{self._directory}/{name}").unlink(missing_ok=True)
        if self._life >= 0:
            os.close(self._life)
        life_read, self._life = os.pipe()
        with open(f"{self._directory}/log", "wb") as log:
            self._begun = subprocess.Popen(
                [
                    *(sys.executable, "-P", "-m", self._entry),
                    *("--directory", self._directory, "--life", str(life_read)),
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
        """Let candidates read these folders too. Before `start`: the jail is made once."""
        self._visible = (*self._visible, *map(str, visible))

    def start(self) -> None:
        """Start the process unless it has begun, and wait until it answers. Raises HarnessError with its last words."""
        with open(f"{self._directory}/lock", "w") as lock:
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
                words = Path(f"{self._directory}/log").read_text(errors="replace").strip().splitlines()
                raise HarnessError(f"The fork server did not start: {words[-1] if words else 'no message'}.")
            time.sleep(0.02)
        self._process, self._launcher = process, os.getpid()

    def _try_connect(self) -> bool:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            connection.connect(f"{self._directory}/socket")
        except OSError:
            connection.close()
            return False
        self._connection = (os.getpid(), connection)
        return True

    def spawn(self, spec: SandboxSpec, channel: socket.socket, status: socket.socket) -> Spawned:
        """Fork a candidate with its ends of the two sockets. Restarts a fork server that was killed, once.

        Raises HarnessError when there is no candidate to be had.
        """
        with self._lock:  # request and answer share one connection
            return self._spawn(spec, channel, status)

    def _spawn(self, spec: SandboxSpec, channel: socket.socket, status: socket.socket) -> Spawned:
        request = json.dumps(spec.model_dump()).encode()
        for attempt in range(2):
            try:
                if self._connection is None or self._connection[0] != os.getpid():
                    self.start()
                assert self._connection is not None
                return self._request(self._connection[1], request, [channel.fileno(), status.fileno()])
            except OSError as error:
                self._drop_connection()
                if attempt:
                    raise HarnessError(f"The fork server does not answer ({error}).") from error
        raise AssertionError("unreachable")

    def _request(self, connection: socket.socket, request: bytes, fds: list[int]) -> Spawned:
        connection.settimeout(30)
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]
        connection.sendmsg([request], rights)
        data, received, _, _ = socket.recv_fds(connection, 4096, 1)
        if not data:
            raise ConnectionError("end of stream")
        answer = json.loads(data)
        if "error" in answer:
            raise HarnessError(f"No process for a candidate: {answer['error']}.")
        return Spawned(pid=_pid_of(received[0]), pidfd=received[0])

    def _drop_connection(self) -> None:
        if self._connection is not None:
            self._connection[1].close()
            self._connection = None

    def close(self) -> None:
        """End the fork server and its candidates, when called by the process that made the handle."""
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
            shutil.rmtree(self._directory, ignore_errors=True)

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
    kept = ("CUDA_", "NVIDIA_", "NCCL_", "NVSHMEM_", "TORCH_SYMM_MEM_", "LD_LIBRARY_PATH", "PATH", "PYTHONPATH")
    environment = {name: value for name, value in os.environ.items() if name.startswith(kept)}
    # Thread pools made at import would not survive the fork, and a process with threads cannot make a user namespace.
    environment |= {"LANG": "C.UTF-8", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", linux.HUGE_PAGES: "1"}
    # torch.utils.cpp_extension asks for GPUs when it is imported; asked through the runtime, no child could use CUDA.
    # The jail has no NVML; torch's warning about it would be the last thing that a crashing candidate "said".
    quiet = "ignore:Can't initialize NVML:UserWarning"
    return {**environment, "PYTORCH_NVML_BASED_CUDA_CHECK": "1", "PYTHONWARNINGS": quiet}


# ---- inside the fork server's process --------------------------------------------------------------------------------


def serve_forks(load: Callable[[], Serve]) -> None:
    """Main function of the server's process: serve forks until the last holder of the handle is gone.

    `load` imports what candidates need, once, and returns the function that each fork runs.
    """
    parser = argparse.ArgumentParser(description="Forks candidates; started by ForkServer.")
    parser.add_argument("--directory", required=True)
    parser.add_argument("--life", type=int, required=True)
    arguments = parser.parse_args()

    layers = Layers()
    if os.geteuid() != 0 or not _may_come_back():
        layers.attempt("user_namespace", enter_user_namespace)

    os.environ["TORCHINDUCTOR_CACHE_DIR"] = f"{arguments.directory}/inductor"
    serve = load()  # imports torch: the point of this process

    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(f"{arguments.directory}/binding")
    listener.listen(64)
    jail = f"{arguments.directory}/jail"
    os.makedirs(jail, exist_ok=True)
    # The jail hides the folder; a descriptor still reaches it.
    parent, name = os.path.split(arguments.directory)
    above = os.open(parent, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
    visible = json.loads(sys.stdin.buffer.read() or b"[]")
    jailed = layers.attempt("jail", lambda: enter_jail(jail, [*runtime_paths(), *visible]))
    cuda_may_have_pids = jailed and own_proc_is_possible()
    gc.collect()
    gc.freeze()  # the collector's marks would copy every page in every child
    # Only now: a client that can connect may spawn.
    os.rename(f"{name}/binding", f"{name}/socket", src_dir_fd=above, dst_dir_fd=above)
    host = _Host(serve, layers, None if jailed else arguments.directory, cuda_may_have_pids)
    _serve(listener, arguments.life, host)
    shutil.rmtree(name, ignore_errors=True, dir_fd=above)  # all holders are gone, perhaps killed


def _may_come_back() -> bool:
    """Whether this process may enter its own PID namespace; root of a user namespace may not: it is the outer one's."""
    own = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    try:
        linux.setns(own, linux.CLONE_NEWPID)
    except OSError:
        return False
    finally:
        os.close(own)
    return True


@dataclass(frozen=True)
class _Host:
    """What all forks share. `folder`: where their scratch folders lie when there is no jail."""

    serve: Serve
    layers: Layers
    folder: str | None
    cuda_may_have_pids: bool


def _serve(listener: socket.socket, life: int, host: _Host) -> None:
    own_pids = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC) if os.path.exists("/proc/self/ns/pid") else -1
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    poll.register(life, select.POLLIN)
    connections: dict[int, socket.socket] = {}
    while True:
        for fd, _ in poll.poll(1000):
            if fd == life:
                return  # hung up: nobody needs this process any more
            if fd == listener.fileno():
                connection, _ = listener.accept()
                connections[connection.fileno()] = connection
                poll.register(connection, select.POLLIN)
                continue
            connection = connections[fd]
            try:
                data, fds, _, _ = socket.recv_fds(connection, 65536, 2)
            except OSError:
                data, fds = b"", []
            if len(fds) == 2 and data:
                _answer(connection, json.loads(data), fds, host, own_pids)
            else:
                poll.unregister(connection)
                connection.close()
                del connections[fd]
            for received in fds:
                os.close(received)
        _reap()


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def _answer(
    connection: socket.socket,
    request: dict[str, Any],
    fds: list[int],
    host: _Host,
    own_pids: int,
) -> None:
    spec = SandboxSpec.model_validate(request)
    layers = Layers()
    layers.names, layers.missing = list(host.layers.names), list(host.layers.missing)
    if spec.cuda_visible_devices and not host.cuda_may_have_pids:
        # CUDA finds itself in /proc by its number: with another namespace's /proc it fails ("OS call failed", 304).
        layers.missing.append("pid_namespace (it can have no /proc of its own, which CUDA needs)")
    else:
        layers.attempt("pid_namespace", lambda: linux.unshare(linux.CLONE_NEWPID))
    error = None
    try:
        pid = os.fork()
    except OSError as problem:
        pid, error = -1, problem
    if pid == 0:
        try:
            supervise(spec, fds[0], fds[1], layers, host.folder, host.serve)
        except BaseException:  # noqa: BLE001 - the last frame of a forked process: report, never return
            say(fds[1], {"broken": traceback.format_exc()[-2000:]})
        finally:
            os._exit(1)
    if "pid_namespace" in layers.names:
        linux.setns(own_pids, linux.CLONE_NEWPID)  # back, so that another new one can be entered
    if error is not None:
        _reply(connection, {"error": f"fork: {error.strerror}"}, [])
        return
    pidfd = os.pidfd_open(pid)
    if not _reply(connection, {}, [pidfd]):
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)  # the grader is gone
    os.close(pidfd)


def _reply(connection: socket.socket, message: dict[str, Any], fds: list[int]) -> bool:
    try:
        socket.send_fds(connection, [json.dumps(message).encode()], fds)
    except OSError:
        return False
    return True
