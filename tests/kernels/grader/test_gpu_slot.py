"""The GPU lock: shared for correctness, alone for timing, timings in a row, and free again when its holder dies."""

from __future__ import annotations

from multiprocessing.connection import wait
from pathlib import Path

import pytest
from lock_holders import Asker, Lock

from dice.kernels.grader.gpu_slot import GpuSlot


def lock(folder: Path, kind: str, key: str = "gpu") -> Lock:
    """A lock of that kind, of a holder of its own."""
    return lambda: getattr(GpuSlot(key, folder), kind)()


def is_free(folder: Path) -> bool:
    with Asker(lock(folder, "exclusive")) as asker:
        return asker.says() == "has"


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
    with Asker(lock(tmp_path, held)) as holder, Asker(lock(tmp_path, wanted)) as asker:
        assert holder.says() == "has"
        first = asker.says()
        assert first == ("has" if possible else "waits")
        holder.end()
        assert possible or asker.says() == "has"
    assert is_free(tmp_path)


def test_other_gpus_are_other_locks(tmp_path: Path) -> None:
    with Asker(lock(tmp_path, "exclusive")) as one, Asker(lock(tmp_path, "exclusive", "another")) as other:
        assert one.says() == other.says() == "has"


def test_a_killed_holder_leaves_no_lock(tmp_path: Path) -> None:
    with Asker(lock(tmp_path, "exclusive")) as holder:
        assert holder.says() == "has"
        assert not is_free(tmp_path)
        holder.kill()
        assert is_free(tmp_path)


def test_a_reader_that_comes_after_a_writer_does_not_pass_it(tmp_path: Path) -> None:
    with Asker(lock(tmp_path, "shared")) as reader:
        assert reader.says() == "has"
        with Asker(lock(tmp_path, "exclusive")) as writer:
            assert writer.says() == "waits"
            with Asker(lock(tmp_path, "shared")) as late:
                assert late.says() == "waits"  # beside the first reader there would be room
                reader.end()
                assert writer.says() == "has"
                writer.end()
                assert late.says() == "has"


def test_a_lent_slot_lets_a_writer_in_and_comes_back(tmp_path: Path) -> None:
    slot = GpuSlot("gpu", tmp_path)
    with slot.shared():
        assert not is_free(tmp_path)
        with slot.lent():
            assert is_free(tmp_path)
        assert not is_free(tmp_path)
        with Asker(lock(tmp_path, "shared")) as beside:
            assert beside.says() == "has"
    slot.close()


def test_timings_that_wait_are_done_together(tmp_path: Path) -> None:
    """A reader that came between two writers goes after both; then it does get in."""
    slot = GpuSlot("gpu", tmp_path)
    with slot.shared():
        askers = []
        for kind in ("exclusive", "shared", "exclusive"):
            askers.append(Asker(lock(tmp_path, kind)))
            assert askers[-1].says() == "waits"
    reader = askers[1]
    for turn in range(3):
        (first, *others) = wait([asker.words for asker in askers])
        assert not others
        asker = next(asker for asker in askers if asker.words is first)
        assert asker.says() == "has"
        assert (asker is reader) == (turn == 2)
        askers.remove(asker)
        asker.end()
    slot.close()


def test_a_slot_that_is_lent_twice_comes_back_once(tmp_path: Path) -> None:
    """A candidate may ask for a build, for which the slot is lent, while it is lent already."""
    slot = GpuSlot("gpu", tmp_path)
    with slot.shared():
        with slot.lent():
            with slot.lent():
                assert is_free(tmp_path)
            assert is_free(tmp_path), "two processes that wait for each other"
        assert not is_free(tmp_path)
    assert is_free(tmp_path)
    slot.close()
