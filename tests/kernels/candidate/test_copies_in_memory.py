"""Copies of an answer in memory that Python does not know of."""

from __future__ import annotations

import ctypes

import pytest
import torch

from dice.kernels.candidate.copies_in_memory import copies_in_memory

_LIBC = ctypes.CDLL(None)
_LIBC.malloc.restype, _LIBC.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
_LIBC.free.argtypes = [ctypes.c_void_p]


class _Block:
    """Memory of C's."""

    def __init__(self, n_bytes: int) -> None:
        self.address = _LIBC.malloc(n_bytes)
        ctypes.memset(self.address, 0, n_bytes)

    def __del__(self) -> None:
        _LIBC.free(self.address)

    def put(self, numbers: torch.Tensor, offset: int) -> None:
        ctypes.memmove(self.address + offset, numbers.data_ptr(), numbers.nbytes)

    def read(self, offset: int, n: int) -> torch.Tensor:
        return torch.frombuffer(bytearray(ctypes.string_at(self.address + offset, 4 * n)), dtype=torch.float32)


def _overwrite(answer: torch.Tensor, telling: torch.Tensor | None = None, *spared: tuple[int, int]) -> int:
    """How many pieces there are, freed memory among them. NaN is put where they hold the answer."""
    telling = torch.ones_like(answer, dtype=torch.bool) if telling is None else telling
    pieces = [*copies_in_memory(answer, telling, [(answer.data_ptr(), answer.nbytes), *spared])]
    for live, earlier in pieces:  # freed memory may be another's by now
        live[(live != earlier) & torch.isin(live, answer.reshape(-1).view(torch.int32))] = -1
    return len(pieces)


@pytest.mark.parametrize("n", [16, 1000, 100_000])
@pytest.mark.parametrize("offset", [0, 4, 52])
def test_a_copy_is_found_wherever_it_begins(n: int, offset: int) -> None:
    block, answer = _Block(4 * n + 64), torch.randn(n)
    block.put(answer, offset)
    assert _overwrite(answer)
    assert bool(block.read(offset, n).isnan().all())
    assert not bool(answer.isnan().any())


def test_a_part_of_a_quarter_counts_and_a_smaller_one_does_not() -> None:
    for kept, found in ((128, True), (120, False)):
        block, answer = _Block(4 * 512), torch.randn(512)
        block.put(answer[-kept:].clone(), 4 * (512 - kept))
        for _ in range(60 if found else 10):  # it searches for another run each time
            _overwrite(answer)
        assert bool(block.read(4 * (512 - kept), kept).isnan().all()) is found


def test_numbers_of_a_table_in_another_order_are_no_copy() -> None:
    block, answer = _Block(4 * 512), torch.randn(32, 16)
    block.put(answer.flip(0).contiguous(), 0)
    _overwrite(answer)
    assert not bool(block.read(0, 512).isnan().any())


def test_what_tells_nothing_is_left() -> None:
    block, answer = _Block(4 * 64), torch.randn(64)
    block.put(answer, 0)
    telling = torch.arange(64) < 40
    assert _overwrite(answer, telling)
    assert torch.equal(block.read(0, 64).isnan(), telling)
    block.put(answer, 0)
    assert _overwrite(answer, torch.arange(64) < 15) == 0  # a coincidence


def test_spared_memory_is_left() -> None:
    block, answer = _Block(4 * 64), torch.randn(64)
    block.put(answer, 0)
    _overwrite(answer, None, (block.address + 4 * 63, 4))
    assert torch.equal(block.read(0, 64), answer)


@pytest.mark.gpu
def test_tensors_of_a_gpu_are_found_by_what_its_allocator_says() -> None:
    answer = torch.randn(1000, device="cuda")
    copy, other = answer.clone(), torch.randn(1000, device="cuda")
    assert _overwrite(answer)
    assert bool(copy.isnan().all())
    assert not bool(other.isnan().any())
    assert not bool(answer.isnan().any())
