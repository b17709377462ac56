"""`dice lease`: run a command on GPUs that no other lease of this machine holds.

    dice lease --gpus 1 -- dice generate ...

Snakemake counts GPUs and never says which one a job has. A lease is a lock file for each GPU; Linux drops the
lock when its holder dies. The command has the cores that go with its GPUs. With `--gpus 0` it simply runs.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from dice.errors import DiceError, HarnessError
from dice.manifest import visible_gpus


def _visible() -> list[str]:
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        return [part.strip() for part in named.split(",") if part.strip()]
    return [str(index) for index in range(len(visible_gpus()))]


def lease_folder() -> Path:
    """Where the lock files lie: one folder for all users of the machine, or `DICE_LEASES`."""
    return Path(os.environ.get("DICE_LEASES", Path(tempfile.gettempdir()) / "dice-gpu-leases"))


@contextlib.contextmanager
def lease(count: int, gpus: list[str], timeout_s: float) -> Iterator[list[str]]:
    """Hold `count` of `gpus`; yields their names. Raises HarnessError when they are not free in `timeout_s`."""
    if count > len(gpus):
        raise DiceError(f"{count} GPUs are asked for and {len(gpus)} can be seen; lower `gpus` in the scale's config.")
    deadline = time.monotonic() + timeout_s
    with contextlib.ExitStack() as held:
        names: list[str] = []
        # Every lease takes GPUs in the same order and lets them go when one is missing, so two never wait for each other.
        while len(names) < count:
            for name in gpus:
                if name in names:
                    continue
                try:
                    held.enter_context(_lock_of(name).acquire(timeout=0))
                except Timeout:
                    continue
                except OSError as error:
                    raise HarnessError(
                        f"{lease_folder()}: no lock can be had there ({error.strerror}); name another folder as DICE_LEASES."
                    ) from error
                names.append(name)
                if len(names) == count:
                    break
            else:
                held.close()
                names.clear()
                if time.monotonic() > deadline:
                    raise HarnessError(f"{count} GPUs were not free in {timeout_s:.0f} s; who holds {lease_folder()}?")
                time.sleep(1.0)
        yield names


def _lock_of(gpu: str) -> FileLock:
    """The lock of a GPU, for all users of the machine; without a fallback to a lock that would outlive its holder."""
    folder = lease_folder()
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o1777)
    return FileLock(folder / f"{gpu}.lock", mode=0o666, fallback_to_soft=False)


def share_of_cores(cores: list[int], gpus: list[str], leased: list[str]) -> set[int]:
    """The cores that go with the leased GPUs: each of the machine's GPUs has as many, next to each other; with fewer cores
    than GPUs all share all.

    Reinforcement learning judges answers on every core that it may use; two runs side by side would slow each other down.
    """
    each = len(cores) // len(gpus)
    if each == 0:
        return set(cores)
    return {core for gpu in leased for core in cores[gpus.index(gpu) * each :][:each]}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `dice lease`."""
    parser.add_argument("--gpus", type=int, required=True, help="how many; 0 runs the command as it is")
    parser.add_argument("--timeout-s", type=float, default=48 * 3600.0, help="longest wait (default: two days)")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="-- command and its arguments")


def run(args: argparse.Namespace) -> int:
    """Entry point of `dice lease`; the exit code is the command's."""
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command:
        raise DiceError("no command: dice lease --gpus 1 -- COMMAND.")
    if args.gpus < 0:
        raise DiceError(f"--gpus {args.gpus}: must not be negative.")
    if shutil.which(command[0]) is None:
        raise DiceError(f"{command[0]}: no such command.")
    if args.gpus == 0:
        return subprocess.run(command, check=False).returncode
    gpus = _visible()
    with lease(args.gpus, gpus, args.timeout_s) as names:
        print(f"dice lease: GPU {', '.join(names)}", file=sys.stderr)
        cores = os.sched_getaffinity(0)
        os.sched_setaffinity(0, share_of_cores(sorted(cores), gpus, names))
        try:
            return subprocess.run(
                command, check=False, env={**os.environ, "CUDA_VISIBLE_DEVICES": ",".join(names)}
            ).returncode
        finally:
            os.sched_setaffinity(0, cores)
