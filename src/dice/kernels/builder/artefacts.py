"""What is made once per machine and lies in a folder of the build cache: each artefact by one process, the others wait.

    artefacts = Artefacts(folder, jail)
    path = artefacts.artefact("name", make)      # make(temporary folder, meter), under a file lock, when it is missing

`make` compiles source of ours with `compile_own`. When that fails, `NotPrepared` says why, and the failure is remembered.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from dice.errors import HarnessError
from dice.jsonl import atomic_writer
from dice.kernels.builder.compiler import Meter, ToolJail, ToolLimits, ToolRun, first_error
from dice.kernels.builder.slim_headers import SlimRefused
from dice.locks import file_lock

LIMITS = ToolLimits(timeout_s=900.0, memory_gib=24.0, file_gib=8.0, room_gib=2.0)


class NotPrepared(Exception):
    """A header or library cannot be made on this machine; the message is the reason."""


@dataclass
class PrepareReport:
    """What `prepare` did: artefact -> CPU seconds for those that were made now."""

    cpu_seconds: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    failures: dict[str, str] = field(default_factory=dict)


class Artefacts:
    """Artefacts in one folder; safe for many processes. `jail`: where compilers run."""

    def __init__(self, folder: Path, jail: ToolJail) -> None:
        self.folder = folder
        self.jail = jail
        self.report = PrepareReport()
        self.waited_s = 0.0
        """Wall time that this process spent on making artefacts: no candidate's fault."""

    def artefact(self, name: str, make: Callable[[Path, Meter], None], folder: Path | None = None) -> Path:
        """`folder/name`, made by `make(temporary folder, meter)` when missing. A failure is kept in `name.failed`."""
        path = (folder or self.folder) / name
        failed = path.with_name(path.name + ".failed")
        if path.is_dir():
            with contextlib.suppress(OSError):  # a cache that others made is used as it is
                os.utime(path)  # the cache evicts what was not used for long
            return path
        started = time.monotonic()
        with file_lock(path.with_name(path.name + ".lock"), timeout_s=1800.0, gives_up=lambda: self.jail.ended):
            self._make(name, path, failed, make)
        self.waited_s += time.monotonic() - started
        return path

    def _make(self, name: str, path: Path, failed: Path, make: Callable[[Path, Meter], None]) -> None:
        """Make the artefact unless it is there or known to fail. Called under its lock."""
        if path.is_dir():
            return
        if failed.exists():
            raise NotPrepared(failed.read_text())
        for left in path.parent.glob(f".{path.name}.*"):  # by one that was killed: who holds the lock is alone
            shutil.rmtree(left, ignore_errors=True)
        out = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
        meter = Meter(self.jail)
        try:
            make(out, meter)
            _let_read(out)
            out.rename(path)
        except (NotPrepared, SlimRefused) as failure:
            message = f"{name}: {failure} (kept in {failed}: remove it to try again)"
            with atomic_writer(failed) as stream:
                stream.write(message)
            raise NotPrepared(message) from failure
        finally:
            shutil.rmtree(out, ignore_errors=True)
            self.report.cpu_seconds[name] = meter.cpu_seconds

    def side_by_side(self, tasks: Sequence[Callable[[], object]], jobs: int | None = None) -> list[object]:
        """What the tasks return, or the NotPrepared that they raise, `jobs` at a time (default: as many as there are cores).

        An exception in this thread, by a signal say, ends the compilers that the tasks wait for, and so the tasks.
        """
        count = jobs or min(len(tasks), len(os.sched_getaffinity(0)))
        with ThreadPoolExecutor(count) as pool:
            try:
                running = [pool.submit(_outcome, task) for task in tasks]
                return [future.result() for future in running]
            except BaseException:
                self.jail.close()
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def compile_own(self, meter: Meter, command: Sequence[str | Path], work: Path) -> None:
        """Run a compiler on source of ours. Raises NotPrepared when it fails, HarnessError when time, memory or disk end."""
        done = self.try_own(meter, command, work)
        if not done.ok:
            raise NotPrepared(f"{Path(str(command[0])).name} failed on our own source: {first_error(done.output)}")

    def try_own(self, meter: Meter, command: Sequence[str | Path], work: Path) -> ToolRun:
        """What a compiler says to source of ours. Raises HarnessError when time, memory or disk end."""
        done = meter.run(command, work, LIMITS)
        if done.starved:
            raise HarnessError(f"{command[0]} was killed by the kernel, for lack of memory, on our own source.")
        if done.timed_out:  # a busy machine's failure, which would be remembered
            raise HarnessError(f"{command[0]} took more than {LIMITS.timeout_s:.0f} s on our own source.")
        return done

    def compile_side_by_side(self, meter: Meter, commands: Sequence[Sequence[str | Path]], work: Path) -> None:
        """`compile_own` for several commands at once, as many as there are cores."""
        meters = [Meter(self.jail) for _ in commands]
        pairs = zip(meters, commands, strict=True)
        outcomes = self.side_by_side([partial(self.compile_own, part, command, work) for part, command in pairs])
        meter.cpu_seconds += sum(part.cpu_seconds for part in meters)
        for outcome in outcomes:
            if isinstance(outcome, NotPrepared):
                raise outcome


def _outcome(task: Callable[[], object]) -> object:
    try:
        return task()
    except NotPrepared as failure:
        return failure


def _let_read(folder: Path) -> None:
    """Whatever the umask: compilers and candidates, who are other users, read what is made here, and own none of it."""
    for path in (folder, *folder.rglob("*")):
        if path.stat().st_uid != os.geteuid():
            os.chown(path, os.geteuid(), os.getegid())
        path.chmod(0o755 if path.is_dir() else 0o644)
