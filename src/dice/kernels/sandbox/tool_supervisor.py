"""Process 1 of a compiler's namespaces: shows it one folder of this machine besides the toolchain, runs it, reports.

What a compiler reads may be a candidate's text, and there are many ways to say `#include` or `.incbin`. So a compiler is
confined as a candidate is: no network, a read-only root file system with the toolchain alone, a separate user without
rights. The folder in which it works has the same path inside and outside, so that commands and messages mean the same.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import signal
from typing import Any

from dice.kernels.sandbox import linux
from dice.kernels.sandbox.fork_process import say
from dice.kernels.sandbox.isolation import Layers, give_up_rights, own_uid
from dice.kernels.sandbox.jail import build_root, enter_root
from dice.kernels.sandbox.process_tree import end_descendants


class ToolService:
    """Forks compilers, and other programs that read what a candidate wrote."""

    def __init__(self) -> None:
        self._root: str | None = None

    def make_jail(self, layers: Layers, directory: str, visible: list[str]) -> None:
        """Build the root; each fork enters it, and this process does not: it can still show them their folders."""
        layers.attempt("no_network", lambda: linux.unshare(linux.CLONE_NEWNET))
        layers.attempt("ipc_namespace", lambda: linux.unshare(linux.CLONE_NEWIPC))
        layers.attempt("uts_namespace", lambda: linux.unshare(linux.CLONE_NEWUTS))
        root = f"{directory}/jail"
        os.makedirs(root, exist_ok=True)
        if layers.attempt("jail", lambda: build_root(root, visible)):
            self._root = root

    def without_pids(self, request: dict[str, Any]) -> str | None:
        """Every compiler may have a PID namespace."""
        return None

    def supervise(self, request: dict[str, Any], sockets: list[int], layers: Layers) -> None:
        """Run one program. `sockets`: what the program writes to, and a stream that brings the job as JSON and takes the
        report. The job: `command`, `folder`, `environment`, and `limits` for `give_up_rights`."""
        linux.die_with_parent(signal.SIGKILL)
        os.setsid()
        output, stream = sockets
        job = json.loads(_read_all(stream))
        made, uid = None, None
        if self._root is None:
            layers.missing.append("own_user (without a jail another user cannot reach the build cache)")
        else:
            made = _enter(self._root, job["folder"], layers)
            uid = own_uid(0) if os.geteuid() == 0 else os.geteuid()
            if uid != os.geteuid() and (problem := _give(job["folder"], uid)):
                layers.missing.append(f"own_user ({problem})")
                uid = None
        ready, told = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                _become_tool(job, output, told, layers, uid)
            except BaseException as error:  # noqa: BLE001 - the last frame of a forked process: report, never return
                os.write(told, json.dumps({"broken": f"{type(error).__name__}: {error}"}).encode())
            finally:
                os._exit(127)
        os.close(output)
        os.close(told)
        if "pid_namespace" not in layers.names:
            linux.become_subreaper()
        report: dict[str, Any] = {}
        for line in _read_all(ready).splitlines():
            report |= json.loads(line)
        if (ended := _wait(pid, stream)) is not None:
            status, usage = ended
            say(stream, {**report, "status": status, "cpu_s": usage.ru_utime + usage.ru_stime})
        if "pid_namespace" not in layers.names:
            end_descendants(None)
        if made is not None:
            _leave(made)

    def release(self) -> None:
        """Unmount the root, before its folder is removed."""
        if self._root is not None:
            linux.unmount(self._root)


def _read_all(fd: int) -> bytes:
    data = b""
    while part := os.read(fd, 1 << 16):
        data += part
    return data


def _enter(root: str, folder: str, layers: Layers) -> str | None:
    """Make `root` this process's root, with `folder` in it for writing and nothing else of the machine. Returns a folder
    that was made for that, if any."""
    linux.unshare(linux.CLONE_NEWNS)
    place, made = root + folder, None
    if not os.path.isdir(place):
        os.makedirs(place, mode=0o755, exist_ok=True)
        made = folder
    linux.mount(folder, place, flags=linux.MS_BIND | linux.MS_REC)
    flags = linux.MS_NOSUID | linux.MS_NODEV
    kept = os.statvfs(folder).f_flag & (os.ST_NOEXEC | os.ST_NOATIME)  # a user namespace may not clear those
    linux.mount(place, place, flags=flags | kept | linux.MS_BIND | linux.MS_REMOUNT)
    if "pid_namespace" in layers.names:
        layers.attempt("private_proc", lambda: linux.mount("proc", f"{root}/proc", "proc", flags))
    enter_root(root)
    layers.names += ["mount_namespace", "readonly_root"]
    return made


def _leave(made: str) -> None:
    """Remove the mount point in the root that all forks share; the folders above it stay for the next one."""
    with contextlib.suppress(OSError):
        linux.unmount(made)
        linux.mount("none", "/", flags=linux.MS_REMOUNT | linux.MS_BIND | linux.MS_NOSUID)
        os.rmdir(made)


def _give(folder: str, uid: int) -> str | None:
    """Make the folder and all in it the program's own; returns why that cannot be (a network's file system, say)."""
    try:
        os.chown(folder, uid, uid)
        for _, folders, files, fd in os.fwalk(folder):
            for name in (*folders, *files):
                os.chown(name, uid, uid, dir_fd=fd, follow_symlinks=False)
    except OSError as error:
        return f"the folder cannot be given to it: {error.strerror}"
    return None


def _become_tool(job: dict[str, Any], output: int, told: int, layers: Layers, uid: int | None) -> None:
    null = os.open("/dev/null", os.O_RDWR)
    for fd, source in ((0, null), (1, output), (2, output)):
        os.dup2(source, fd)
    fcntl.fcntl(told, fcntl.F_SETFD, fcntl.FD_CLOEXEC)
    os.chdir(job["folder"])
    os.closerange(3, told)
    os.closerange(told + 1, 1 << 16)
    give_up_rights(layers, job["limits"], uid)
    linux.die_with_parent(signal.SIGKILL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    os.write(told, json.dumps({"isolation": layers.names, "missing": layers.missing}).encode() + b"\n")
    os.execvpe(job["command"][0], job["command"], job["environment"])


def _wait(pid: int, stream: int) -> tuple[int, Any] | None:
    """The program's exit code (negative: the signal) and usage; None when the client has hung up first."""
    pidfd = os.pidfd_open(pid)
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    poll.register(stream, 0)  # hang-ups are always reported
    while True:
        events = {fd for fd, _ in poll.poll()}
        if pidfd in events:
            _, status, usage = os.wait4(pid, 0)
            return os.waitstatus_to_exitcode(status), usage
        if stream in events:
            return None
