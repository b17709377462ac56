"""The clocks of this process, set ahead for the candidate's code: what it does after an hour is seen at once.

However a program asks for the time, by Python, NumPy or C++, it calls one of a few functions of the C library, through a
word in memory that the dynamic loader has filled. In the objects that a candidate's code goes through, these words lead to
functions that add to what the clock says (csrc/extension/clocks.cpp). Not reached: system calls and the processor's counter,
read without the C library.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import re
from collections.abc import Collection

from dice.kernels.candidate.loaded_objects import RELRO, Loaded, for_each_object, slots

_GOES_THROUGH = re.compile(
    r"(?:^|/)(?:$|python[\d.]*$|libpython[\d.]*\.so|libstdc\+\+\.so|libc\+\+\.so|_datetime\.|_multiarray_umath\.)"
)
"""Paths of objects by which Python, NumPy and C++ ask for the time. PyTorch's and the driver's own clocks stay."""


class _Clock(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("function", ctypes.c_void_p)]


class Clocks(ctypes.Structure):
    """The controls of csrc/extension/clocks.cpp."""

    _fields_ = [("set_ahead", ctypes.CFUNCTYPE(None, ctypes.c_longlong)), ("clocks", ctypes.POINTER(_Clock))]

    def functions(self) -> dict[str, int]:
        """Addresses of those that add to what a clock says, by the name of the C library's."""
        found: dict[str, int] = {}
        while name := self.clocks[len(found)].name:
            found[name.decode()] = self.clocks[len(found)].function
        return found


def set_ahead(clocks: Clocks, seconds: int, own: Collection[str]) -> int:
    """Set the clocks ahead of those of the machine, for the objects in the paths `own` and those by which they ask; how many
    words lead to them now."""
    functions, led = clocks.functions(), 0
    led_to = set(functions.values())

    def lead(loaded: Loaded) -> None:
        nonlocal led
        if loaded.path not in own and not goes_through(loaded.path):
            return
        protected = [(loaded.base + one.virtual, one.in_memory) for one in loaded.within(RELRO)]
        for name, slot in slots(loaded):
            if name in functions:
                word = ctypes.c_uint64.from_address(slot)
                if word.value not in led_to:
                    _write(word, slot, functions[name], any(start <= slot < start + size for start, size in protected))
                led += 1

    for_each_object(lead)
    clocks.set_ahead(seconds)
    return led


def goes_through(path: str) -> bool:
    """Whether an object is one by which a program asks for the time."""
    return _GOES_THROUGH.search(path) is not None


def _write(word: ctypes.c_uint64, address: int, value: int, protected: bool) -> None:
    if not protected:
        word.value = value
        return
    page = address - address % mmap.PAGESIZE
    _protect(page, mmap.PROT_READ | mmap.PROT_WRITE)
    word.value = value
    _protect(page, mmap.PROT_READ)


def _protect(page: int, rights: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(mmap.PAGESIZE), rights):
        number = ctypes.get_errno()
        raise OSError(number, f"mprotect: {os.strerror(number)}")
