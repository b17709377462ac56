"""Run a compiler on hostile text: in a jail, with limits of wall time, CPU time, memory and file size, its CPU time counted.

The jail (`dice.kernels.sandbox.tool_supervisor`) shows the toolchain and the folder in which the compiler works. Whatever
a text makes a compiler read or print, nothing else of this machine can be in it; the same holds for the environment.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import select
import signal
import socket
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dice.errors import HarnessError
from dice.kernels.builder.outcome import OutOfLimits
from dice.kernels.builder.process import compiler_server
from dice.kernels.builder.toolchain import SEARCH_PATHS
from dice.kernels.sandbox.fork_server import ForkServer, Spawned
from dice.kernels.sandbox.process_tree import ends, kernel_kills
from dice.kernels.source.lexer import SplitRefused

_OUTPUT_BYTES = 1 << 20
_OUT_OF_MEMORY = (
    "virtual memory exhausted",
    "out of memory allocating",
    "cc1plus: out of memory",
    "memory allocation failure",
    "std::bad_alloc",
    "cannot allocate memory",
)
_ENVIRONMENT = ("PATH", *SEARCH_PATHS, "GCC_EXEC_PREFIX", "CUDA_HOME", "CUDA_PATH", "SOURCE_DATE_EPOCH")
"""What decides how a compiler works. The rest may hold secrets, and a compiler can read its own environment."""
_END_TIMEOUT_S = 10.0
_NOT_STARTED = (126, 127)
"""Exit codes of a shell whose program cannot be run, or is not there."""


@dataclass(frozen=True)
class ToolLimits:
    """What one compiler process (with its children) may use."""

    timeout_s: float = 300.0
    memory_gib: float = 16.0
    """Address space of each process."""
    file_gib: float = 4.0
    """Largest file written."""
    room_gib: float = 0.25
    """Free space below which a failure is the full disk's."""


@dataclass(frozen=True)
class ToolRun:
    """What a compiler did. `output` holds stdout and stderr together, at most 1 MiB of it."""

    returncode: int
    output: str
    seconds: float
    cpu_seconds: float
    timed_out: bool = False
    starved: bool = False
    """Whether the kernel killed a process for lack of memory meanwhile, and again when the tool was run again."""

    @property
    def ok(self) -> bool:
        """Whether it succeeded."""
        return self.returncode == 0 and not self.timed_out

    @property
    def out_of_memory(self) -> bool:
        """Whether it failed for the memory limit."""
        lower = self.output.lower()
        return not self.ok and (self.starved or any(phrase in lower for phrase in _OUT_OF_MEMORY))

    def within_limits(self) -> ToolRun:
        """Itself. Raises OutOfLimits when the compiler ran out of time or memory."""
        if self.timed_out:
            raise OutOfLimits("timeout", f"the compiler was stopped after {self.seconds:.0f} s")
        if self.out_of_memory:
            raise OutOfLimits("out_of_memory", "the compiler ran out of memory")
        return self


class ToolJail:
    """Runs compilers, jailed; usable from any thread. `server`: one that is shared with other processes, else one is
    started for this process with the first compiler.

    `isolation`, `missing`: layers in force and those that this machine refuses, known once a program has run.
    """

    def __init__(self, server: ForkServer | None = None) -> None:
        self._server = server or compiler_server()
        self.isolation: list[str] = []
        self.missing: list[str] = []

    def show(self, visible: Iterable[str | Path]) -> None:
        """Let compilers read these. Before the first one runs: the jail is made once."""
        self._server.show(visible)

    @property
    def folder(self) -> Path:
        """A folder of this command's own for what builds leave behind; it goes with the jail, even if this is killed."""
        return Path(self._server.directory)

    @property
    def ended(self) -> bool:
        """Whether `close` was called: what waits for a compiler is to give up."""
        return self._server.closed.is_set()

    def close(self) -> None:
        """End all compilers that are running; no other will run."""
        self._server.close()

    def layers(self) -> tuple[list[str], list[str]]:
        """`isolation` and `missing`, of a program that does nothing if none has run."""
        if not self.isolation:
            with tempfile.TemporaryDirectory(dir=self.folder) as folder:
                self.run(["true"], Path(folder), ToolLimits(60.0))
        return self.isolation, self.missing

    def run(self, command: Sequence[str | Path], folder: Path, limits: ToolLimits) -> ToolRun:
        """Run `command` in `folder`, the one place that it may write to, and end it with all it started.

        Raises HarnessError when it cannot be started or was ended from outside.
        """
        words = [str(word) for word in command]
        place = os.path.realpath(folder)
        kept = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
        cpu_s = max(1, int(limits.timeout_s * 4) + 1)  # nvcc runs several programs one after the other
        job = {
            "command": words,
            "folder": place,
            "environment": {**kept, "LC_ALL": "C", "TMPDIR": place, "HOME": place},
            "limits": {"cpu": cpu_s, "as": int(limits.memory_gib * 2**30), "fsize": int(limits.file_gib * 2**30)},
        }
        started = time.monotonic()
        spawned, stream, output = self._spawn()
        try:
            stream.settimeout(_END_TIMEOUT_S)
            with contextlib.suppress(OSError):  # the supervisor hung up: there is nothing to report
                stream.sendall(json.dumps(job).encode())
                stream.shutdown(socket.SHUT_WR)
            text, timed_out = _read(output, started + limits.timeout_s)
            report = {} if timed_out else _report(stream)
        finally:
            os.close(output)
            stream.close()
            _await_end(spawned)
        seconds = time.monotonic() - started
        if timed_out:
            return ToolRun(-signal.SIGKILL, text, seconds, 0.0, timed_out=True)
        if "status" not in report or "broken" in report:
            raise HarnessError(f"{words[0]} could not run: {report.get('broken', 'it was ended from outside')}.")
        self.isolation, self.missing = report["isolation"], report["missing"]
        return ToolRun(report["status"], text, seconds, report["cpu_s"])

    def _spawn(self) -> tuple[Spawned, socket.socket, int]:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        read_end, write_end = os.pipe()
        try:
            spawned = self._server.spawn({}, (write_end, theirs.fileno()))
        except BaseException:
            ours.close()
            os.close(read_end)
            raise
        finally:
            theirs.close()
            os.close(write_end)
        return spawned, ours, read_end


def _read(output: int, deadline: float) -> tuple[str, bool]:
    """What comes until the end of the file or the deadline, and whether the deadline came first."""
    chunks: list[bytes] = []
    size, poll = 0, select.poll()
    poll.register(output, select.POLLIN)
    while True:
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            break
        if not poll.poll(math.ceil(min(left_s, 3600.0) * 1000)):
            continue
        chunk = os.read(output, 1 << 16)
        if not chunk:
            break
        if size < _OUTPUT_BYTES:
            chunks.append(chunk)
            size += len(chunk)
    return b"".join(chunks)[:_OUTPUT_BYTES].decode("utf-8", "replace"), left_s <= 0


def _report(stream: socket.socket) -> dict[str, Any]:
    data = b""
    with contextlib.suppress(OSError):
        while part := stream.recv(1 << 16):
            data += part
    return json.loads(data) if data else {}


def _await_end(spawned: Spawned) -> None:
    """Wait until nothing is left of it; the hang-up has told it to end."""
    if not ends(spawned.pidfd, _END_TIMEOUT_S):
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(spawned.pidfd, signal.SIGKILL)
    os.close(spawned.pidfd)


@dataclass
class Meter:
    """Runs the compilers of one build and counts their CPU seconds."""

    jail: ToolJail
    cpu_seconds: float = 0.0

    def run(
        self,
        command: Sequence[str | Path],
        cwd: Path,
        limits: ToolLimits,
        deadline: float = math.inf,
    ) -> ToolRun:
        """Run `command` in `cwd` (`ToolJail.run`), no longer than until `deadline` (time.monotonic).

        Raises HarnessError when this machine failed: the program cannot be started, was killed, or found the disk full.
        What the program prints decides nothing of that: a candidate's text can have a compiler print anything.
        """
        kills = kernel_kills()
        done = self._once(command, cwd, limits, deadline)
        if done.ok or done.timed_out:
            return done
        if kernel_kills() > kills:  # perhaps this tool's process: what befell it once may not befall it again
            kills = kernel_kills()
            done = self._once(command, cwd, limits, deadline)
            done = replace(done, starved=not done.ok and kernel_kills() > kills)
        if not done.ok and _is_full(cwd, limits.room_gib):
            raise HarnessError(f"{command[0]} failed, and {cwd} has less than {limits.room_gib:g} GiB free: free some.")
        if done.returncode in (-signal.SIGKILL, -signal.SIGTERM) and not (done.timed_out or done.out_of_memory):
            raise HarnessError(f"{command[0]} was killed from outside, probably by the machine's memory limit.")
        return done

    def _once(self, command: Sequence[str | Path], cwd: Path, limits: ToolLimits, deadline: float) -> ToolRun:
        left_s = min(limits.timeout_s, max(0.0, deadline - time.monotonic()))
        done = self.jail.run(command, cwd, replace(limits, timeout_s=left_s))
        self.cpu_seconds += done.cpu_seconds
        return done


def _is_full(folder: Path, room_gib: float) -> bool:
    room = os.statvfs(folder)
    return room.f_bavail * room.f_frsize < room_gib * 2**30 or (room.f_files > 0 and room.f_favail == 0)


@dataclass(frozen=True)
class Workbench:
    """A folder with a candidate's files, and the compilers that work in it until `deadline` (time.monotonic)."""

    folder: Path
    meter: Meter
    limits: ToolLimits
    deadline: float

    def run(self, command: Sequence[str | Path]) -> ToolRun:
        """Run `command` in the folder. Raises OutOfLimits, and HarnessError as `Meter.run`."""
        return self.meter.run(command, self.folder, self.limits, self.deadline).within_limits()

    def capture(self, command: Sequence[str | Path], out: str) -> str:
        """What `command` prints, by way of the file `out` in the folder. Raises SplitRefused when it fails: what it reads
        is a candidate's; HarnessError when it is not there; OutOfLimits."""
        done = self.run(["/bin/sh", "-c", 'out="$1"; shift; exec "$@" > "$out"', "sh", out, *command])
        if done.returncode in _NOT_STARTED:
            raise HarnessError(f"{command[0]} cannot be started; install binutils.")
        if not done.ok:
            raise SplitRefused(f"{command[0]} failed: {done.output.strip()[:300]}")
        return (self.folder / out).read_text(encoding="utf-8", errors="replace")


def first_error(output: str) -> str:
    """The first line of compiler output that reports an error, or its last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    for line in lines:
        if "error" in line.lower() or "fatal" in line.lower():
            return line[:400]
    return lines[-1][:400] if lines else "no message"
