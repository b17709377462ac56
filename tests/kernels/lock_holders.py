"""Shared by the tests of a GPU's locks: another process that asks for one."""

from __future__ import annotations

import fcntl
import multiprocessing
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from multiprocessing.connection import Connection

from waiting import PATIENCE_S

Lock = Callable[[], AbstractContextManager[None]]


class Asker:
    """A process that asks for `lock`, says `waits` if it is not free, says `has` when it has it, and holds it."""

    def __init__(self, lock: Lock) -> None:
        context = multiprocessing.get_context("fork")
        self.words, theirs = context.Pipe()
        self.process = context.Process(target=_ask, args=(lock, theirs), daemon=True)
        self.process.start()
        theirs.close()

    def says(self) -> str:
        """Its next word."""
        assert self.words.poll(PATIENCE_S), "it says nothing"
        return self.words.recv()

    def end(self) -> None:
        """Have it give the lock back."""
        self.words.send("end")
        self.process.join()

    def kill(self) -> None:
        """End it as `kill -9` does, holding the lock or waiting for it."""
        self.process.kill()
        self.process.join()

    def __enter__(self) -> Asker:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


def _ask(lock: Lock, words: Connection) -> None:
    flock, sleep, said = fcntl.flock, time.sleep, []

    def waits() -> None:
        if not said:
            said.append(words.send("waits"))

    def heard_flock(fd: int, operation: int) -> None:
        try:
            flock(fd, operation | fcntl.LOCK_NB)
        except BlockingIOError:
            if operation & fcntl.LOCK_NB:
                raise
            waits()
            flock(fd, operation)

    def heard_sleep(seconds: float) -> None:
        waits()
        sleep(seconds)

    fcntl.flock, time.sleep = heard_flock, heard_sleep  # of this process
    with lock():
        words.send("has")
        words.recv()
