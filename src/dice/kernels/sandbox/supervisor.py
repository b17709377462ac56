"""Process 1 of a candidate's namespaces: sets them up, forks the candidate, drains its output, reports its end.

It keeps the rights that the candidate gives up, runs no candidate code and reads nothing that the candidate writes but
to count and keep its last words.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import socket
import traceback
from collections.abc import Callable
from typing import Any

from dice.errors import HarnessError
from dice.kernels.sandbox import linux
from dice.kernels.sandbox.fork_process import say
from dice.kernels.sandbox.isolation import (
    Layers,
    SandboxSpec,
    confine,
    own_proc_is_possible,
    own_uid,
    prepare_namespaces,
)
from dice.kernels.sandbox.jail import enter_jail, runtime_paths
from dice.kernels.sandbox.process_tree import end_descendants

_TAIL_BYTES = 16_384
"""Kept of stdout and stderr together, from their end: it says why a candidate died."""

Serve = Callable[[socket.socket, SandboxSpec, str], None]
"""Runs in the confined process: (the grader's channel, the sandbox, the scratch folder)."""


class CandidateService:
    """Forks candidates. `serve`: what a candidate's process runs once it is confined."""

    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self._folder: str | None = None
        self._cuda_may_have_pids = False

    def make_jail(self, layers: Layers, directory: str, visible: list[str]) -> None:
        """Enter the jail: the server's own process sees no more than candidates do."""
        jail = f"{directory}/jail"
        os.makedirs(jail, exist_ok=True)
        if layers.attempt("jail", lambda: enter_jail(jail, [*runtime_paths(), *visible])):
            self._cuda_may_have_pids = own_proc_is_possible()
        else:
            self._folder = directory

    def without_pids(self, request: dict[str, Any]) -> str | None:
        """CUDA finds itself in /proc by its number: with another namespace's /proc it fails ("OS call failed", 304)."""
        if request["cuda_visible_devices"] and not self._cuda_may_have_pids:
            return "it can have no /proc of its own, which CUDA needs"
        return None

    def supervise(self, request: dict[str, Any], sockets: list[int], layers: Layers) -> None:
        """Run one candidate. `request`: a SandboxSpec. `sockets`: the candidate's channel, and the status's.

        When this process ends, for whatever reason, the kernel ends everything in its PID namespace.
        """
        spec, (channel, status) = SandboxSpec.model_validate(request), sockets
        linux.die_with_parent(signal.SIGKILL)
        os.setsid()
        # In its own namespace this process is number 1 and getpid says nothing unique; the kernel's view of it does.
        uid = own_uid(_outer_pid()) if os.geteuid() == 0 else os.geteuid()
        scratch = prepare_namespaces(layers, spec, self._folder, uid)
        read_end, write_end = os.pipe()
        ready_read, ready_write = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                _become_candidate(spec, channel, write_end, ready_write, layers, scratch, uid, self._serve)
            except BaseException:  # noqa: BLE001 - the last frame of a forked process: report, never return
                os.write(ready_write, json.dumps({"broken": traceback.format_exc()[-2000:]}).encode())
            finally:
                os._exit(1)
        for fd in (channel, write_end, ready_write):
            os.close(fd)
        if "pid_namespace" not in layers.names:
            linux.become_subreaper()
        linux.set_dumpable(False)
        report = b""
        while part := os.read(ready_read, 65536):
            report += part
        os.close(ready_read)
        say(status, {**json.loads(report or b'{"broken": "died while giving up its rights"}'), "scratch": scratch})
        _watch(pid, read_end, status)
        if "pid_namespace" not in layers.names:
            end_descendants(uid if uid != os.geteuid() else None)

    def release(self) -> None:
        """Nothing is mounted in the folder: the jail became the root."""


def await_ready(status: socket.socket, timeout_s: float) -> dict[str, Any]:
    """The supervisor's report, for the client, that the sandbox is there: `isolation`, `missing`, `scratch`. Raises
    HarnessError where none comes."""
    status.settimeout(timeout_s)
    try:
        ready = json.loads(status.recv(1 << 18) or b"{}")
    except OSError as error:
        raise HarnessError(f"The sandbox could not be set up ({error}).") from error
    if "isolation" not in ready:
        raise HarnessError(f"The sandbox could not be set up: {str(ready.get('broken', 'no answer'))[-500:]}")
    return ready


def _outer_pid() -> int:
    """A number that no other live candidate of this machine has: the inode of the new PID namespace, else the pid."""
    pid = os.getpid()
    return pid if pid != 1 else os.stat("/proc/self/ns/pid").st_ino


def _become_candidate(
    spec: SandboxSpec,
    channel: int,
    output: int,
    ready: int,
    layers: Layers,
    scratch: str,
    uid: int,
    serve: Serve,
) -> None:
    os.setsid()
    null = os.open("/dev/null", os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    channel, ready = _gather([channel, ready])
    confine(layers, spec, scratch, uid)
    os.write(ready, json.dumps({"isolation": layers.names, "missing": layers.missing}).encode())
    os.close(ready)
    serve(socket.socket(fileno=channel), spec, scratch)
    os._exit(0)


def _gather(fds: list[int]) -> list[int]:
    """Move the descriptors to 3, 4, ... and close every other one above 2."""
    high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 100) for fd in fds]
    for index, fd in enumerate(high):
        os.dup2(fd, 3 + index, inheritable=False)
    os.closerange(3 + len(fds), _highest_descriptor() + 1)
    return [3 + index for index in range(len(fds))]


def _highest_descriptor() -> int:
    return max(int(name) for name in os.listdir("/proc/self/fd"))


def _watch(pid: int, output: int, status: int) -> None:
    """Drain the candidate's output until it ends, then report; return at once when the grader hangs up."""
    pidfd = os.pidfd_open(pid)
    os.set_blocking(output, False)
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    poll.register(output, select.POLLIN)
    poll.register(status, 0)  # hang-ups are always reported
    tail = bytearray()
    while True:
        events = {fd for fd, _ in poll.poll(500)}
        if status in events:
            return
        if output in events:
            part = _drain(output)
            if part is None:
                poll.unregister(output)
            else:
                tail = (tail + part)[-_TAIL_BYTES:]
        if pidfd in events:
            break
        _reap_others(pid)
    _, wait_status = os.waitpid(pid, 0)
    tail = (tail + (_drain(output) or b""))[-_TAIL_BYTES:]
    end = {"signal": os.WTERMSIG(wait_status)} if os.WIFSIGNALED(wait_status) else {"exit": os.WEXITSTATUS(wait_status)}
    say(status, {**end, "tail": tail.decode(errors="replace")})


def _drain(fd: int) -> bytes | None:
    try:
        return os.read(fd, 1 << 20) or None
    except BlockingIOError:
        return b""
    except OSError:
        return None


def _reap_others(pid: int) -> None:
    """Collect orphans that were handed to process 1, but leave the candidate's own end to `_watch`."""
    while True:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if ended is None or ended.si_pid == pid:
            return
        os.waitpid(ended.si_pid, 0)
