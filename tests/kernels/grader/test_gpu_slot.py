"""The GPU lock: shared for correctness, alone for timing, timings in a row, and free again when its holder dies."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest
from lock_holders import Lock, acquired_within, held_elsewhere

from dice.kernels.grader.gpu_slot import GpuSlot


def lock(folder: Path, kind: str, key: str = "gpu") -> Lock:
    """A lock of that kind, of a holder of its own."""
    return lambda: getattr(GpuSlot(key, folder), kind)()


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
    process, pipe = held_elsewhere(lock(tmp_path, held))
    try:
        assert acquired_within(lock(tmp_path, wanted), 0.3) is possible
    finally:
        pipe.send("end")
        process.join()
    assert acquired_within(lock(tmp_path, "exclusive"), 5)


def test_other_gpus_are_other_locks(tmp_path: Path) -> None:
    process, pipe = held_elsewhere(lock(tmp_path, "exclusive"))
    assert acquired_within(lock(tmp_path, "exclusive", "another"), 5)
    pipe.send("end")
    process.join()


def test_a_killed_holder_leaves_no_lock(tmp_path: Path) -> None:
    process, _ = held_elsewhere(lock(tmp_path, "exclusive"))
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert acquired_within(lock(tmp_path, "exclusive"), 5)


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
        assert acquired_within(lock(tmp_path, "exclusive"), 5)
    finally:
        stop.set()
        for reader in readers:
            reader.join()


def test_a_lent_slot_lets_a_writer_in_and_comes_back(tmp_path: Path) -> None:
    slot = GpuSlot("gpu", tmp_path)
    with slot.shared():
        assert not acquired_within(lock(tmp_path, "exclusive"), 0.2)
        with slot.lent():
            assert acquired_within(lock(tmp_path, "exclusive"), 5)
        assert acquired_within(lock(tmp_path, "shared"), 5)
    slot.close()


def test_timings_that_wait_are_done_together(tmp_path: Path) -> None:
    """A reader that came between two writers goes after both; then it does get in."""
    order: list[str] = []

    def use(kind: str, name: str) -> None:
        slot = GpuSlot("gpu", tmp_path)
        with getattr(slot, kind)():
            order.append(name)
            time.sleep(0.1)
        slot.close()

    slot = GpuSlot("gpu", tmp_path)
    threads = []
    with slot.shared():
        for kind, name in (("exclusive", "timing 1"), ("shared", "reader"), ("exclusive", "timing 2")):
            threads.append(threading.Thread(target=use, args=(kind, name)))
            threads[-1].start()
            time.sleep(0.1)
        assert not order
    for thread in threads:
        thread.join(10)
    slot.close()
    assert order == ["timing 1", "timing 2", "reader"]
