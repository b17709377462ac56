"""Room on a GPU: small problems together, large ones in turn, the whole card for one, free again when a holder dies."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest
from lock_holders import Asker, Lock

from dice.kernels.grader.gpu_memory import PARTS, SMALL_PARTS, GpuMemory, Sizes

CARD = 1 << 30
PART = CARD // PARTS
LARGE = PARTS - SMALL_PARTS


def room(folder: Path, parts: int) -> Lock:
    """So many parts, for a holder of its own."""

    def taken() -> AbstractContextManager[None]:
        memory = GpuMemory("gpu", CARD, folder)  # where it is held: a descriptor from before a fork would hold it too
        return memory.whole() if parts == PARTS else memory.room_for(parts * PART)

    return taken


def is_free(folder: Path, parts: int = PARTS) -> bool:
    with Asker(room(folder, parts)) as asker:
        return asker.says() == "has"


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
    with Asker(room(tmp_path, held)) as holder:
        assert holder.says() == "has"
        with Asker(room(tmp_path, wanted)) as asker:
            assert asker.says() == ("has" if possible else "waits")
            holder.end()
            assert possible or asker.says() == "has"
    assert is_free(tmp_path)


H200_BYTES = 150_000_000_000
ELEMENTWISE = Sizes(inputs=4096 * 393216 * 4, outputs=4096 * 393216 * 4)
"""KernelBench v0.1's largest problems of one input: level 1, numbers 19 to 32."""
SMALL = Sizes(inputs=1 << 26, outputs=1 << 26)


def test_three_of_the_benchmarks_largest_problems_run_beside_each_other_on_a_card(tmp_path: Path) -> None:
    with ExitStack() as stack:
        for _ in range(3):
            memory = GpuMemory("gpu", H200_BYTES, tmp_path)
            stack.enter_context(memory.room_for(ELEMENTWISE.on_card(longer=False)))
        small = GpuMemory("gpu", H200_BYTES, tmp_path)  # in the parts that are kept for it
        stack.enter_context(small.room_for(SMALL.on_card(longer=False)))


@pytest.mark.parametrize("side", ["inputs", "weights", "outputs"])
def test_each_tensor_takes_room_on_both_sides_and_more_where_more_follows(side: str) -> None:
    one, two = (Sizes(**{"inputs": 0, side: n * CARD}) for n in (1, 2))
    assert two.on_card(longer=False) - one.on_card(longer=False) >= 2 * CARD
    assert two.on_card(longer=True) >= two.on_card(longer=False) > CARD


def test_a_problem_larger_than_the_card_gets_the_card(tmp_path: Path) -> None:
    with GpuMemory("gpu", CARD, tmp_path).room_for(100 * CARD):
        assert not is_free(tmp_path, 1)
    assert is_free(tmp_path)


def test_a_large_problem_is_not_overtaken(tmp_path: Path) -> None:
    with Asker(room(tmp_path, 1)) as holder:
        assert holder.says() == "has"
        with Asker(room(tmp_path, PARTS)) as large:
            assert large.says() == "waits"
            with Asker(room(tmp_path, 1)) as small:
                assert small.says() == "waits"  # there is room for it, but the large one came first
                holder.end()
                assert large.says() == "has"
                large.end()
                assert small.says() == "has"


def test_a_small_problem_does_not_wait_behind_a_large_one_that_waits(tmp_path: Path) -> None:
    with Asker(room(tmp_path, LARGE)) as holder, ExitStack() as stack:
        assert holder.says() == "has"
        assert stack.enter_context(Asker(room(tmp_path, LARGE))).says() == "waits"
        for _ in range(SMALL_PARTS):
            assert stack.enter_context(Asker(room(tmp_path, 1))).says() == "has"
        assert stack.enter_context(Asker(room(tmp_path, 1))).says() == "waits"


def test_a_killed_holder_leaves_its_room(tmp_path: Path) -> None:
    with Asker(room(tmp_path, PARTS)) as holder:
        assert holder.says() == "has"
        assert not is_free(tmp_path)
        holder.kill()
        assert is_free(tmp_path)


def test_an_error_inside_gives_the_room_back(tmp_path: Path) -> None:
    memory = GpuMemory("gpu", CARD, tmp_path)
    with pytest.raises(ValueError, match="inside"), memory.room_for(PART):
        raise ValueError("inside")
    assert is_free(tmp_path)
    memory.close()
