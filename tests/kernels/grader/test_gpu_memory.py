"""Room on a GPU: small problems together, large ones in turn, the whole card for one, free again when a holder dies."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from lock_holders import Lock, acquired_within, held_elsewhere

from dice.kernels.grader.gpu_memory import BYTES_PER_INPUT_BYTE, PARTS, SMALL_PARTS, GpuMemory

CARD = 1 << 30
PART = CARD // PARTS // BYTES_PER_INPUT_BYTE
"""Input bytes for which one part is enough."""
LARGE = PARTS - SMALL_PARTS


def room(folder: Path, parts: int) -> Lock:
    """So many parts, for a holder of its own."""

    def taken() -> AbstractContextManager[None]:
        memory = GpuMemory("gpu", CARD, folder)  # where it is held: a descriptor from before a fork would hold it too
        return memory.whole() if parts == PARTS else memory.room_for(parts * PART)

    return taken


@pytest.mark.parametrize(
    ("held", "wanted", "possible"),
    [
        (1, 1, True),
        (LARGE // 2, LARGE // 2, True),
        (LARGE // 2, LARGE // 2 + 1, False),
        (LARGE, 1, True),
        (1, LARGE, True),
        (1, PARTS, False),
        (PARTS, 1, False),
    ],
)
def test_who_has_room_beside_whom(tmp_path: Path, held: int, wanted: int, possible: bool) -> None:
    process, pipe = held_elsewhere(room(tmp_path, held))
    try:
        assert acquired_within(room(tmp_path, wanted), 5 if possible else 0.3) is possible
    finally:
        pipe.send("end")
        process.join()
    assert acquired_within(room(tmp_path, PARTS), 5)


def test_a_problem_larger_than_the_card_gets_the_card(tmp_path: Path) -> None:
    with GpuMemory("gpu", CARD, tmp_path).room_for(100 * CARD):
        assert not acquired_within(room(tmp_path, 1), 0.2)
    assert acquired_within(room(tmp_path, PARTS), 5)


def test_a_large_problem_is_not_overtaken(tmp_path: Path) -> None:
    process, pipe = held_elsewhere(room(tmp_path, 1))
    large = threading.Event()

    def take() -> None:
        with GpuMemory("gpu", CARD, tmp_path).whole():
            large.set()

    waiting = threading.Thread(target=take)
    waiting.start()
    assert not large.wait(0.3)
    assert not acquired_within(room(tmp_path, 1), 0.3)  # there is room for it, but the large one came first
    pipe.send("end")
    process.join()
    assert large.wait(5)
    waiting.join()


def test_a_small_problem_does_not_wait_behind_a_large_one_that_waits(tmp_path: Path) -> None:
    process, pipe = held_elsewhere(room(tmp_path, LARGE))
    assert not acquired_within(room(tmp_path, LARGE), 0.2)  # it goes on waiting, its turn taken
    small = [GpuMemory("gpu", CARD, tmp_path) for _ in range(SMALL_PARTS)]
    with contextlib.ExitStack() as stack:
        for memory in small:
            stack.enter_context(memory.room_for(PART))
        assert not acquired_within(room(tmp_path, 1), 0.2)
    pipe.send("end")
    process.join()


def test_a_killed_holder_leaves_its_room(tmp_path: Path) -> None:
    process, _ = held_elsewhere(room(tmp_path, PARTS))
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert acquired_within(room(tmp_path, PARTS), 5)


def test_an_error_inside_gives_the_room_back(tmp_path: Path) -> None:
    memory = GpuMemory("gpu", CARD, tmp_path)
    with pytest.raises(ValueError, match="inside"), memory.room_for(PART):
        raise ValueError("inside")
    assert acquired_within(room(tmp_path, PARTS), 5)
    memory.close()
