"""Run a compiler on hostile text: own process group, wall clock, memory, CPU and file-size limits, counted CPU time."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dice.errors import HarnessError
from dice.kernels.builder.outcome import OutOfLimits

_OUTPUT_BYTES = 1 << 20
_OUT_OF_MEMORY = (
    "virtual memory exhausted",
    "out of memory allocating",
    "cc1plus: out of memory",
    "memory allocation failure",
    "std::bad_alloc",
    "cannot allocate memory",
)
_SHELL = 'ulimit -t "$1" && ulimit -v "$2" && ulimit -f "$3" && ulimit -c 0 && shift 3 && exec "$@"'


@dataclass(frozen=True)
class ToolLimits:
    """What one compiler process (with its children) may use."""

    timeout_s: float = 300.0
    memory_gib: float = 16.0
    """Address space of each process."""
    file_gib: float = 4.0
    """Largest file written."""


@dataclass(frozen=True)
class ToolRun:
    """What a compiler did. `output` holds stdout and stderr together, at most 1 MiB of it."""

    returncode: int
    output: str
    seconds: float
    cpu_seconds: float
    timed_out: bool = False

    @property
    def ok(self) -> bool:
        """Whether it succeeded."""
        return self.returncode == 0 and not self.timed_out

    @property
    def out_of_memory(self) -> bool:
        """Whether it failed for the memory limit."""
        lower = self.output.lower()
        return not self.ok and any(phrase in lower for phrase in _OUT_OF_MEMORY)


@dataclass
class Meter:
    """CPU seconds spent by the compilers of one build."""

    cpu_seconds: float = 0.0

    def run(
        self,
        command: Sequence[str | Path],
        cwd: Path,
        limits: ToolLimits,
        *,
        deadline: float | None = None,
        env: Mapping[str, str] | None = None,
    ) -> ToolRun:
        """Run `command` (see `run_tool`), no longer than until `deadline` (time.monotonic), and count its CPU time."""
        if deadline is not None:
            limits = ToolLimits(
                min(limits.timeout_s, max(0.0, deadline - time.monotonic())), limits.memory_gib, limits.file_gib
            )
        done = run_tool(command, cwd, limits, env=env)
        self.cpu_seconds += done.cpu_seconds
        return done


def run_tool(
    command: Sequence[str | Path], cwd: Path, limits: ToolLimits, *, env: Mapping[str, str] | None = None
) -> ToolRun:
    """Run `command` in `cwd` under `limits`; kill its whole process group when the time is up.

    The environment is `env`, or this process's own with English messages and `TMPDIR` set to `cwd`.
    Raises HarnessError when the program does not exist, was killed from outside, or found the disk full.
    """
    words = [str(word) for word in command]
    environment = dict(os.environ if env is None else env) | {"LC_ALL": "C", "TMPDIR": str(cwd)}
    cpu_s = max(1, int(limits.timeout_s * 4) + 1)  # nvcc runs several programs one after the other
    shell = ["/bin/sh", "-c", _SHELL, "sh", str(cpu_s), str(int(limits.memory_gib * (1 << 20)))]
    shell += [str(int(limits.file_gib * (1 << 21))), *words]
    started = time.monotonic()
    try:
        process = subprocess.Popen(
            shell,
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise HarnessError(f"{words[0]} cannot be started ({error}).") from error
    output, timed_out = _read(process, started + limits.timeout_s)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    try:  # noqa: SIM105
        os.killpg(process.pid, signal.SIGKILL)  # what it left running
    except ProcessLookupError:
        pass
    done = ToolRun(process.returncode, output, time.monotonic() - started, usage.ru_utime + usage.ru_stime, timed_out)
    _check_host(words[0], done)
    return done


def _read(process: subprocess.Popen[bytes], deadline: float) -> tuple[str, bool]:
    """Output until the end of the file or the deadline, when the group is killed."""
    assert process.stdout is not None
    chunks: list[bytes] = []
    size, timed_out = 0, False
    with process.stdout, selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                timed_out = True
                os.killpg(process.pid, signal.SIGKILL)
                break
            if not selector.select(left):
                continue
            chunk = os.read(process.stdout.fileno(), 1 << 16)
            if not chunk:
                break
            if size < _OUTPUT_BYTES:
                chunks.append(chunk)
                size += len(chunk)
    return b"".join(chunks)[:_OUTPUT_BYTES].decode("utf-8", "replace"), timed_out


def _check_host(program: str, done: ToolRun) -> None:
    if done.ok or done.timed_out:
        return
    if done.returncode in (126, 127) and "sh:" in done.output:
        raise HarnessError(f"{program} cannot be started ({done.output.strip()[-200:]}).")
    if "No space left on device" in done.output or "Disk quota exceeded" in done.output:
        raise HarnessError(f"{program} found the disk full; free space in the build cache and the temporary folder.")
    killed = done.returncode in (-signal.SIGKILL, -signal.SIGTERM)
    if (killed or "Killed signal terminated program" in done.output) and not done.out_of_memory:
        raise HarnessError(f"{program} was killed from outside, probably by the machine's memory limit.")


def raise_out_of_limits(done: ToolRun) -> None:
    """Raise OutOfLimits when a compiler ran out of time or memory."""
    if done.timed_out:
        raise OutOfLimits("timeout", f"the compiler was stopped after {done.seconds:.0f} s")
    if done.out_of_memory:
        raise OutOfLimits("out_of_memory", "the compiler ran out of memory")
