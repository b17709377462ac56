"""The shared objects of this process, as the dynamic loader tells them: their segments, and where they keep the addresses
of functions that they call in others."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Iterator
from typing import Any

LOAD, DYNAMIC, THREAD_LOCAL, RELRO = 1, 2, 7, 0x6474E552
"""Types of segments."""
WRITABLE = 2
_STRTAB, _SYMTAB, _RELA, _RELASZ, _JMPREL, _PLTRELSZ = 5, 6, 7, 8, 23, 2
_ADDRESSES = frozenset({6, 7, 1025, 1026})
"""Relocations that put a function's address in a slot: x86-64, aarch64."""
_ENTRY = 24
"""Bytes of a relocation, and of a symbol."""


class Segment(ctypes.Structure):
    """A program header."""

    _fields_ = [("type", ctypes.c_uint32), ("flags", ctypes.c_uint32)] + [
        (name, ctypes.c_uint64) for name in ("offset", "virtual", "physical", "in_file", "in_memory", "align")
    ]


class Loaded(ctypes.Structure):
    """One object (`struct dl_phdr_info`)."""

    _fields_ = [
        ("base", ctypes.c_uint64),
        ("name", ctypes.c_char_p),
        ("segments", ctypes.POINTER(Segment)),
        ("count", ctypes.c_uint16),
        ("adds", ctypes.c_uint64),
        ("subs", ctypes.c_uint64),
        ("thread_local_id", ctypes.c_size_t),
        ("thread_local", ctypes.c_void_p),
    ]

    @property
    def path(self) -> str:
        """As the loader knows it; "" for the program itself."""
        return (self.name or b"").decode("utf-8", "replace")

    def within(self, kind: int) -> list[Segment]:
        """Its segments of a type."""
        return [segment for segment in self.segments[: self.count] if segment.type == kind]


_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Loaded), ctypes.c_size_t, ctypes.c_void_p)


def for_each_object(take: Callable[[Loaded], None]) -> None:
    """Call `take` with each object of this process."""

    def taken(loaded: Any, _: int, __: Any) -> int:
        take(loaded.contents)
        return 0

    ctypes.CDLL(None).dl_iterate_phdr(_CALLBACK(taken), None)


def slots(loaded: Loaded) -> Iterator[tuple[str, int]]:
    """Names of the functions that an object calls in others, each with the address of the word that leads there."""
    table: dict[int, int] = {}
    for segment in loaded.within(DYNAMIC):
        words = (ctypes.c_uint64 * (segment.in_memory // 8)).from_address(loaded.base + segment.virtual)
        table |= dict(zip(words[::2], words[1::2], strict=False))
    if not {_STRTAB, _SYMTAB} <= table.keys() or table[_STRTAB] < loaded.base:
        return  # the kernel's own, whose addresses are not the loader's
    for start, size in ((_JMPREL, _PLTRELSZ), (_RELA, _RELASZ)):
        if not table.get(start) or not table.get(size):
            continue
        entries = array("Q", ctypes.string_at(table[start], table[size] // _ENTRY * _ENTRY))
        for offset, info in zip(entries[::3], entries[1::3], strict=True):
            if info & 0xFFFFFFFF in _ADDRESSES:
                symbol = table[_SYMTAB] + (info >> 32) * _ENTRY
                name = ctypes.string_at(table[_STRTAB] + ctypes.c_uint32.from_address(symbol).value)
                yield name.decode("utf-8", "replace"), loaded.base + offset
