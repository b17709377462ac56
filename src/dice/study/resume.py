"""Going on after an interruption: after Ctrl-C, kill -9 or a full disk the next `snakemake` just continues.

Snakemake knows what a run has not completed (`rerun-incomplete` in the profiles). Its own lock is not used (`nolock`
there): it outlives a run that was killed, and then needs `--unlock`. The locks here are Linux's, which drops them however a
process ends. The run holds one. Its jobs share the other: jobs outlive a run that was killed alone, and two jobs must not
write the same file. The shell of each job takes its share by util-linux's `flock`, because a lock of `filelock` is neither
shared nor inherited by what the shell starts. A job in SLURM's queue holds no lock yet, so after a run that did not end in
order, SLURM is asked.
"""

from __future__ import annotations

import errno
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock, Timeout

from dice.errors import DiceError

_RUN = ".run.lock"
_BEGAN = ".run.began"
_JOBS = ".jobs.lock"
_JOBS_FD = 9
_FULL_BYTES = 16 * 2**20
_POLL_S = 10.0
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP)


def jobs_prefix(results: str | Path) -> str:
    """What the shell of every job does first, also in a container: strict mode, and its share of the jobs' lock.

    A file system without locks, or an image without `flock`, is no error: the job then has no share.
    """
    path = shlex.quote(str(Path(results) / _JOBS)).replace("{", "{{").replace("}", "}}")  # Snakemake formats it
    return f"set -euo pipefail; exec {_JOBS_FD}<>{path}; flock -s {_JOBS_FD} 2>/dev/null || true; "


class RunLock:
    """Makes this process the only run of some results, from `begin` as long as it lives."""

    def __init__(self, results: str | Path, say: Callable[[str], None]) -> None:
        """`say` gets the sentences for the user: what the run waits for, or that there are no locks."""
        self._results = Path(results)
        self._say = say
        self._run = _lock(self._results / _RUN)
        self._began = self._results / _BEGAN

    def begin(self, queued: Callable[[], list[str]] | None = None, poll_s: float = _POLL_S) -> None:
        """Take the lock, and wait for jobs of a killed run that are still running.

        `queued` names the jobs that a scheduler has; it is called after a run that did not reach its `end`. Raises
        DiceError where another run is alive.
        """
        self._results.mkdir(parents=True, exist_ok=True)
        if not self._try_lock(self._run):
            raise DiceError(f"another snakemake works on {self._results}; wait for it, or end it.")
        jobs = _lock(self._results / _JOBS)
        if not self._try_lock(jobs):
            self._say(
                f"the last run of {self._results} was killed, but its jobs are still running; waiting for them to end "
                f"(fuser {self._results / _JOBS} names their processes)."
            )
            jobs.acquire()
        jobs.release()
        if queued and self._began.exists():
            self._await(queued, poll_s)
        self._began.touch()

    def _try_lock(self, lock: FileLock) -> bool:
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return False
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            self._say(f"the file system of {self._results} keeps no locks: see that no other run works there.")
        return True

    def _await(self, queued: Callable[[], list[str]], poll_s: float) -> None:
        left = queued()
        if left:
            names = ", ".join(left)
            self._say(
                f"the last run of {self._results} was killed, but SLURM still has its jobs {names}; waiting for them. "
                "This run does them once more: scancel those that have not begun."
            )
        while left:
            time.sleep(poll_s)
            left = queued()

    def end(self) -> None:
        """Note that the run ended in order, and let the lock go."""
        self._began.unlink(missing_ok=True)
        self._run.release()


def slurm_jobs(folder: str | Path) -> list[str]:
    """This user's jobs, running or waiting, whose working folder is `folder`. Raises DiceError where squeue fails."""
    command = ["squeue", "--me", "--noheader", "--format=%i %Z"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        raise DiceError(f"squeue cannot say whether jobs of the killed run are left ({error}).") from error
    rows = [line.split(maxsplit=1) for line in done.stdout.splitlines() if line.strip()]
    return [job for job, place in rows if Path(place).resolve() == Path(folder).resolve()]


def _lock(path: Path) -> FileLock:
    # for all threads of the process; without a fallback to a lock that would outlive its holder
    return FileLock(path, thread_local=False, fallback_to_soft=False)


def parting_words(results: str | Path) -> str:
    """The last sentence of a run that did not get through."""
    place = Path(results)
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    room = f"the disk of {results} is full ({free // 2**20} MiB left): make room first. " if free < _FULL_BYTES else ""
    return f"{room}What is complete is kept; the same command goes on from there."
