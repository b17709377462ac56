"""Shared by the tests of a GPU's locks: somebody else who holds one, and whether it can be had."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

Lock = Callable[[], AbstractContextManager[None]]


def held_elsewhere(lock: Lock) -> tuple[BaseProcess, Connection]:
    """A process that holds the lock until it is told to end."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()

    def hold() -> None:
        with lock():
            theirs.send("held")
            theirs.recv()

    process = context.Process(target=hold)
    process.start()
    assert ours.recv() == "held"
    return process, ours


def acquired_within(lock: Lock, seconds: float) -> bool:
    """Whether the lock can be had in that time; it is given back at once."""
    done = threading.Event()

    def take() -> None:
        with lock():
            done.set()

    threading.Thread(target=take, daemon=True).start()
    return done.wait(seconds)
