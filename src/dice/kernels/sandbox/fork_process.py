"""The fork server's own process: it imports, makes the jail, and forks on request until nobody needs it.

It never touches CUDA (a context does not survive a fork), runs no code of candidates and holds no secrets. What it forks
is its `Service`'s: candidates (`dice.kernels.sandbox.supervisor`) or compilers (`dice.kernels.sandbox.tool_supervisor`).
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import select
import shutil
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from typing import Any, Protocol

from dice.kernels.sandbox import linux, process_tree
from dice.kernels.sandbox.fork_server import short_path
from dice.kernels.sandbox.isolation import Layers, enter_user_namespace

END_TIMEOUT_S = 2.0
"""A process that ends closes its pipes a moment before it has ended."""


class Service(Protocol):
    """What a fork server does for each request."""

    def make_jail(self, layers: Layers, directory: str, visible: list[str]) -> None:
        """Once, before the first fork, in a folder of the server's own. Notes what this machine refuses."""
        ...

    def without_pids(self, request: dict[str, Any]) -> str | None:
        """Why the fork for `request` can have no PID namespace; None where it can."""
        ...

    def supervise(self, request: dict[str, Any], sockets: list[int], layers: Layers) -> None:
        """What the fork does, as process 1 of its PID namespace where it has one. The second socket takes reports."""
        ...

    def release(self) -> None:
        """Unmount what lies in the server's folder, which is removed next. Raises OSError."""
        ...


def say(status: int, message: dict[str, Any]) -> None:
    """Write one message to the client. A client that is gone is no error: its hang-up ends this process."""
    try:
        os.write(status, json.dumps(message).encode())
    except OSError:
        return


def serve_forks(load: Callable[[], Service]) -> None:
    """Main function of the server's process: serve forks until the last holder of the handle is gone.

    `load` imports what the forks need, once.
    """
    parser = argparse.ArgumentParser(description="Forks on request; started by ForkServer.")
    parser.add_argument("--directory", required=True)
    parser.add_argument("--life", type=int, required=True)
    parser.add_argument("--owner", type=int, required=True)
    arguments = parser.parse_args()

    layers = Layers()
    if os.geteuid() != 0 or not _may_come_back():
        layers.attempt("user_namespace", enter_user_namespace)

    os.environ["TORCHINDUCTOR_CACHE_DIR"] = f"{arguments.directory}/inductor"
    gc.disable()  # while it imports, the collector would look through all of PyTorch many times, and find nothing
    service = load()  # imports torch for candidates: the point of this process

    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with short_path(arguments.directory) as folder:
        listener.bind(f"{folder}/binding")
    listener.listen(64)
    # The jail hides the folder; a descriptor still reaches it.
    parent, name = os.path.split(arguments.directory)
    above = os.open(parent, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
    visible = json.loads(sys.stdin.buffer.read() or b"[]")
    service.make_jail(layers, arguments.directory, visible)
    gc.collect()
    gc.freeze()  # the collector's marks would copy every page in every child
    gc.enable()
    # Only now: a client that can connect may spawn.
    os.rename(f"{name}/binding", f"{name}/socket", src_dir_fd=above, dst_dir_fd=above)
    _serve(listener, arguments.life, service, layers)
    service.release()
    if _has_ended(arguments.owner):  # perhaps killed; else other holders may start the next server in this folder
        shutil.rmtree(name, ignore_errors=True, dir_fd=above)


def _has_ended(pid: int) -> bool:
    """Whether a process that may just be ending has ended."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return process_tree.ends(pidfd, END_TIMEOUT_S)
    finally:
        os.close(pidfd)


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


def _serve(listener: socket.socket, life: int, service: Service, layers: Layers) -> None:
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
                _answer(connection, json.loads(data), fds, service, layers.copy(), own_pids)
            else:
                poll.unregister(connection)
                connection.close()
                del connections[fd]
            for received in fds:
                os.close(received)
        process_tree.reap()


def _answer(
    connection: socket.socket,
    request: dict[str, Any],
    sockets: list[int],
    service: Service,
    layers: Layers,
    own_pids: int,
) -> None:
    reason = service.without_pids(request)
    if reason is None:
        layers.attempt("pid_namespace", lambda: linux.unshare(linux.CLONE_NEWPID))
    else:
        layers.missing.append(f"pid_namespace ({reason})")
    error = None
    try:
        pid = os.fork()
    except OSError as problem:
        pid, error = -1, problem
    if pid == 0:
        try:
            service.supervise(request, sockets, layers)
        except BaseException:  # noqa: BLE001 - the last frame of a forked process: report, never return
            say(sockets[1], {"broken": traceback.format_exc()[-2000:]})
        finally:
            os._exit(1)
    if "pid_namespace" in layers.names:
        linux.setns(own_pids, linux.CLONE_NEWPID)  # back, so that another new one can be entered
    if error is not None:
        _reply(connection, {"error": f"fork: {error.strerror}"}, [])
        return
    pidfd = os.pidfd_open(pid)
    if not _reply(connection, {}, [pidfd]):
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)  # the client is gone
    os.close(pidfd)


def _reply(connection: socket.socket, message: dict[str, Any], fds: list[int]) -> bool:
    try:
        socket.send_fds(connection, [json.dumps(message).encode()], fds)
    except OSError:
        return False
    return True
