"""Copies of an answer in memory to which no object of Python's leads: what C++ keeps in tensors or on its heap.

The host's memory is searched for a run of the answer's numbers, another one each time, and compared around each place where
it stands. On a GPU the pieces that PyTorch's allocator has given away are compared from their beginnings.
"""

from __future__ import annotations

import builtins
import ctypes
import mmap
import secrets
from collections.abc import Iterable, Iterator, Sequence

import torch

from dice.kernels.candidate.kept_answers import FEWEST, SHARE
from dice.kernels.candidate.noise import leave_noise
from dice.kernels.sandbox.gpu_buffer import gpu_memory

Range = tuple[int, int]
"""Address and size in bytes."""
_RUN = 4
"""Numbers that are searched for."""
_MOST_PLACES = 64
"""At which one run is found."""
_MOST_BYTES = 4 << 30
"""That are searched, the smallest regions first."""
_FREED = 8
"""Answers of earlier calls that may lie in memory which nobody has any more."""
_WORD = 4
_MS_ASYNC = 1

_open = builtins.open  # before a candidate puts other functions in their places
_snapshot = torch.cuda.memory_snapshot
_below = secrets.randbelow


def copies_in_memory(
    answer: torch.Tensor, telling: torch.Tensor, spared: Iterable[Range]
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Pieces of memory, int32 words [n], that hold a share of a contiguous fp32 answer, each with a copy that has other
    words in those places alone.

    telling: which numbers count, of the answer's shape. spared: memory that is left out, the answer's own among it.
    """
    words, counts = answer.detach().reshape(-1).view(torch.int32), telling.reshape(-1)
    if int(counts.sum()) < FEWEST:
        return
    ranges = [*spared]
    if not answer.is_cuda:
        leave_noise([answer.nbytes] * _FREED, answer.device)
    pieces = [*(_given_away(answer) if answer.is_cuda else _around_a_run(words, counts))]
    seen = set[int]()
    for address, first, length in pieces:
        if address in seen or any(
            begin < address + length * _WORD and address < begin + size for begin, size in ranges
        ):
            continue
        seen.add(address)
        if not answer.is_cuda and not _is_mapped(address, address + length * _WORD):
            continue
        live = _words_at(address, length, answer.is_cuda)
        found = (live == words[first : first + length]) & counts[first : first + length]
        if int(found.sum()) >= SHARE * int(counts.sum()):
            earlier = live.clone()
            earlier[found] = ~earlier[found]
            yield live, earlier


def _words_at(address: int, length: int, on_gpu: bool) -> torch.Tensor:
    if on_gpu:
        return gpu_memory(address, length * _WORD).view(torch.int32)
    return torch.frombuffer((ctypes.c_uint8 * (length * _WORD)).from_address(address), dtype=torch.int32)


def _given_away(answer: torch.Tensor) -> Iterator[tuple[int, int, int]]:
    """Beginnings of the pieces of the answer's GPU that are in use and large enough for all of it."""
    for segment in _snapshot():
        if segment["device"] == answer.device.index:
            address = segment["address"]
            for block in segment["blocks"]:
                if block["state"] == "active_allocated" and block["size"] >= answer.numel() * _WORD:
                    yield address, 0, answer.numel()
                address += block["size"]


def _around_a_run(words: torch.Tensor, counts: torch.Tensor) -> Iterator[tuple[int, int, int]]:
    """Where the answer would lie around each place that has a run of it: address, first word, number of words."""
    whole = counts.unfold(0, _RUN, 1).all(1) if counts.numel() >= _RUN else counts[:0]
    starts = whole.nonzero().reshape(-1)
    if not starts.numel():
        return
    start = int(starts[_below(starts.numel())])
    run = words[start : start + _RUN].numpy().tobytes()
    for begin, end in _writable():
        for place in _places(run, begin, end):
            first = max(0, start - (place - begin) // _WORD)
            address = place - (start - first) * _WORD
            yield address, first, min(words.numel() - first, (end - address) // _WORD)


def _writable() -> list[Range]:
    """Begin and end of this process's private memory that may be written, without the variables of shared objects."""
    found = list[Range]()
    with _open("/proc/self/maps") as lines:
        for line in lines:
            place, flags, _, _, inode, *_ = line.split()
            begin, end = (int(part, 16) for part in place.split("-"))
            if flags == "rw-p" and inode == "0":
                found.append((begin, end))
    found.sort(key=lambda region: region[1] - region[0])
    left, kept = _MOST_BYTES, list[Range]()
    for begin, end in found:
        left -= end - begin
        if left < 0:
            break
        kept.append((begin, end))
    return kept


def _is_mapped(begin: int, end: int) -> bool:
    """Whether this memory is there. Python gives its own back whenever objects go."""
    page = mmap.PAGESIZE
    begin -= begin % page
    return ctypes.PyDLL(None).msync(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), _MS_ASYNC) == 0


def _places(run: bytes, begin: int, end: int) -> Sequence[int]:
    """Aligned addresses of a run in one region."""
    if not _is_mapped(begin, end):
        return []
    search = ctypes.PyDLL(None).memmem  # no other thread of Python's runs, and may give memory back
    search.restype, search.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t] * 2
    found, needle = list[int](), ctypes.create_string_buffer(run, len(run))
    while len(found) < _MOST_PLACES and end - begin >= len(run):
        place = search(begin, end - begin, needle, len(run))
        if place is None:
            break
        if place % _WORD == 0:
            found.append(place)
        begin = place + 1
    return found
