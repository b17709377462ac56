"""A process and its descendants: list them, measure their memory, end them. Reads /proc."""

from __future__ import annotations

import contextlib
import math
import os
import select
import signal
import time

_END_TIMEOUT_S = 5.0
"""After this time, processes that cannot be ended are left."""


def descendants(pid: int) -> list[int]:
    """Process ids below `pid`, itself not included. Threads that are not group leaders are not listed."""
    found: list[int] = []
    frontier = [pid]
    while frontier:
        parent = frontier.pop()
        try:
            threads = os.listdir(f"/proc/{parent}/task")
        except OSError:
            continue
        for thread in threads:
            try:
                with open(f"/proc/{parent}/task/{thread}/children") as stream:
                    children = [int(word) for word in stream.read().split()]
            except OSError:
                continue
            found += children
            frontier += children
    return found


def threads(pids: list[int]) -> int:
    """Threads of the processes together."""
    count = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            count += len(os.listdir(f"/proc/{pid}/task"))
    return count


def freeze(root: int) -> list[int]:
    """Stop every process below `root`, and wait until none of them runs or can make another. Returns those to `thaw`.

    Raises OSError where one may not be stopped, or is busy in the kernel for too long; then none stays stopped.
    """
    stopped: list[int] = []
    deadline = time.monotonic() + _END_TIMEOUT_S
    try:
        while True:
            below = descendants(root)
            new = [pid for pid in below if pid not in stopped]
            for pid in new:
                stopped.append(pid)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
            if not new and not any(_may_run(pid) for pid in below):
                return stopped
            if time.monotonic() > deadline:
                raise TimeoutError(f"processes below {root} do not stop")
            time.sleep(0)
    except BaseException:
        thaw(stopped)
        raise


def thaw(pids: list[int]) -> None:
    """Let stopped processes go on."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def _may_run(pid: int) -> bool:
    """Whether a thread of the process is neither stopped nor gone."""
    states = set()
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/stat", errors="replace") as stream:
                states.add(stream.read().rpartition(")")[2].split()[0])
    return bool(states - set("TtZX"))


def memory_bytes(pids: list[int], limit: int) -> int:
    """Memory of the processes together, anonymous and shared: an upper bound up to `limit`, exact above.

    Exact: pages that several processes map are counted by share (Pss), so forked copies weigh nothing.
    """
    bound = sum(_kib(f"/proc/{pid}/status", ("RssAnon:", "RssShmem:")) for pid in pids) << 10
    if bound <= limit:
        return bound
    return sum(_kib(f"/proc/{pid}/smaps_rollup", ("Pss_Anon:", "Pss_Shmem:")) for pid in pids) << 10


def _kib(path: str, fields: tuple[str, ...]) -> int:
    try:
        with open(path, errors="replace") as stream:  # a process may give itself a name that is no text
            return sum(int(line.split()[1]) for line in stream if line.startswith(fields))
    except OSError:
        return 0


def names(pids: list[int]) -> list[str]:
    """Command names of those that are still there; bytes that are no UTF-8 are replaced."""
    found = []
    for pid in pids:
        try:
            with open(f"/proc/{pid}/comm", errors="replace") as stream:
                found.append(stream.read().strip())
        except OSError:
            continue
    return found


def end_descendants(uid: int | None) -> None:
    """End every process below this one, for machines without PID namespaces.

    `uid`: a user that owns nothing else, when this process may become it; then none can fork its way out.
    """
    deadline = time.monotonic() + _END_TIMEOUT_S
    while (below := descendants(os.getpid())) and time.monotonic() < deadline:
        if uid is not None:
            pid = os.fork()
            if pid == 0:
                try:
                    os.setresuid(uid, uid, uid)
                    os.kill(-1, signal.SIGKILL)
                finally:
                    os._exit(0)
            os.waitpid(pid, 0)
        for child in below:
            try:
                os.kill(child, signal.SIGKILL)
            except OSError:
                continue
        if not reap():
            return
        time.sleep(0.005)


def reap() -> bool:
    """Collect the children that have ended. Returns whether others are still there."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def ends(pidfd: int, timeout_s: float) -> bool:
    """Whether the process behind a descriptor ends within that time; for one that is process 1 of a PID namespace, whether
    everything in it does."""
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(math.ceil(timeout_s * 1000)))


def kernel_kills() -> int:
    """Processes that the kernel killed for lack of memory since boot; 0 where it does not say."""
    with contextlib.suppress(OSError), open("/proc/vmstat") as stream:
        for line in stream:
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0
