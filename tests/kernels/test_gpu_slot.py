"""The GPU lock: shared for correctness, alone for timing, fair, and free again when its holder dies."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from dice.kernels.gpu_slot import GpuSlot


def held_elsewhere(folder: Path, kind: str) -> tuple[BaseProcess, Connection]:
    """A process that holds the lock until it is told to end."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()

    def hold() -> None:
        with getattr(GpuSlot("gpu", folder), kind)():
            theirs.send("held")
            theirs.recv()

    process = context.Process(target=hold)
    process.start()
    assert ours.recv() == "held"
    return process, ours


def acquired_within(slot: GpuSlot, kind: str, seconds: float) -> bool:
    """Whether the lock can be had in that time; it is given back at once."""
    done = threading.Event()

    def take() -> None:
        with getattr(slot, kind)():
            done.set()

    threading.Thread(target=take, daemon=True).start()
    return done.wait(seconds)


@pytest.mark.parametrize(
    ("held", "wanted", "possible"),
    [
        ("shared", "shared", True),
        ("shared", "exclusive", False),
        ("exclusive", "shared", False),
        ("exclusive", "exclusive", False),
    ],
)
def test_who_may_be_there_together(tmp_path: Path, held: str, wanted: str, possible: bool) -> None:
    process, pipe = held_elsewhere(tmp_path, held)
    slot = GpuSlot("gpu", tmp_path)
    try:
        assert acquired_within(slot, wanted, 0.3) is possible
    finally:
        pipe.send("end")
        process.join()
    assert acquired_within(GpuSlot("gpu", tmp_path), "exclusive", 5)


def test_other_gpus_are_other_locks(tmp_path: Path) -> None:
    process, pipe = held_elsewhere(tmp_path, "exclusive")
    assert acquired_within(GpuSlot("another", tmp_path), "exclusive", 5)
    pipe.send("end")
    process.join()


def test_a_killed_holder_leaves_no_lock(tmp_path: Path) -> None:
    process, _ = held_elsewhere(tmp_path, "exclusive")
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert acquired_within(GpuSlot("gpu", tmp_path), "exclusive", 5)


def test_readers_that_keep_coming_do_not_starve_a_writer(tmp_path: Path) -> None:
    stop = threading.Event()

    def read() -> None:
        slot = GpuSlot("gpu", tmp_path)
        while not stop.is_set():
            with slot.shared():
                time.sleep(0.02)
        slot.close()

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    try:
        assert acquired_within(GpuSlot("gpu", tmp_path), "exclusive", 5)
    finally:
        stop.set()
        for reader in readers:
            reader.join()


def test_a_lent_slot_lets_a_writer_in_and_comes_back(tmp_path: Path) -> None:
    slot = GpuSlot("gpu", tmp_path)
    with slot.shared():
        assert not acquired_within(GpuSlot("gpu", tmp_path), "exclusive", 0.2)
        with slot.lent():
            assert acquired_within(GpuSlot("gpu", tmp_path), "exclusive", 5)
        assert acquired_within(GpuSlot("gpu", tmp_path), "shared", 5)
    slot.close()
