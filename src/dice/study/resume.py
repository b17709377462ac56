"""Going on after an interruption: after Ctrl-C, kill -9 or a full disk the next `snakemake` just continues.

What a run had not completed is known to Snakemake (`rerun-incomplete` in the profiles). Its own lock is not used
(`nolock` there): it outlives a run that was killed, and then wants `--unlock`. The locks here are the kernel's, which
drops them however a process ends. One is held by the run. The other is shared by the shells of its jobs and what they
start, since jobs outlive a run that was killed alone, and two jobs must not write the same file.
"""

from __future__ import annotations

import fcntl
import os
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

from dice.errors import DiceError

_RUN = ".run.lock"
_JOBS = ".jobs.lock"
_JOBS_FD = 9
_FULL_BYTES = 16 * 2**20


def jobs_prefix(results: str | Path) -> str:
    """What the shell of every job does first, also in a container: strict mode, and its share of the jobs' lock.

    A file system without locks, or an image without `flock`, is no error: the job then has no share.
    """
    path = shlex.quote(str(Path(results) / _JOBS)).replace("{", "{{").replace("}", "}}")  # Snakemake formats it
    return f"set -euo pipefail; exec {_JOBS_FD}>>{path}; flock -s {_JOBS_FD} 2>/dev/null || true; "


def hold_run(results: str | Path, say: Callable[[str], None]) -> int:
    """Make this process the only run of `results` as long as it lives; the descriptor that holds the lock.

    Waits for jobs of an earlier run that still work, and tells so through `say`. Raises DiceError where another run is
    alive.
    """
    results = Path(results)
    results.mkdir(parents=True, exist_ok=True)
    run = _open(results / _RUN)
    if not _try_lock(run):
        os.close(run)
        raise DiceError(f"another snakemake works on {results}; wait for it, or end it.")
    jobs = _open(results / _JOBS)
    if not _try_lock(jobs):
        say(
            f"the last run of {results} was killed, but its jobs still work; waiting for them to end "
            f"(fuser {results / _JOBS} names their processes)."
        )
        fcntl.flock(jobs, fcntl.LOCK_EX)
    os.close(jobs)
    return run


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o666)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def parting_words(results: str | Path) -> str:
    """The last sentence of a run that did not get through."""
    place = Path(results)
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    room = f"the disk of {results} is full ({free // 2**20} MiB left): make room first. " if free < _FULL_BYTES else ""
    return f"{room}What is complete is kept; the same command goes on from there."
