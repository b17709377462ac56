"""The grader's ledger of launches: evidence that no number in the candidate's process can stand for.

The grader shares a page with the process and deals a secret word for each launch to come. The launch stubs
(`builder/csrc/extension/ledger.h`, same layout and arithmetic) turn the next word into a mark: the word, mixed, with the
hash of the kernel's name. What does not come from a dealt word is seen, and counts nothing.

Code that reads the page, knows this arithmetic and the kernels' names can write marks. It gains no more than by launching
an empty kernel, which is easier; whether kernels do the work is asked in other ways (`dice.kernels.checks`).
"""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

WORDS = 16383
"""Launches of one request that leave a mark; more are only counted."""
PAGE_BYTES = 8 * (WORDS + 1)
_MASK = (1 << 64) - 1


def name_hash(name: bytes) -> int:
    """FNV-1a of 64 bits, as the stubs compute it of a kernel's (mangled) name."""
    value = 0xCBF29CE484222325
    for byte in name:
        value = ((value ^ byte) * 0x100000001B3) & _MASK
    return value


def mark_of(word: int, kernel: int, refused: bool = False) -> int:
    """What a launch of the kernel with that hash leaves in the place of `word`. `refused`: by the CUDA runtime."""
    mixed = ((((word << 29) | (word >> 35)) & _MASK) * 0x9E3779B97F4A7C15) & _MASK
    return mixed ^ ((kernel + int(refused)) & _MASK)


@dataclass(frozen=True)
class Reading:
    """What a page says about one request."""

    number: int = 0
    """Launches that were begun, marked or not."""
    launches: dict[str, int] = field(default_factory=dict)
    """By kernel."""
    refused: dict[str, int] = field(default_factory=dict)
    """By kernel: launches that the CUDA runtime refused."""
    forged: str = ""
    """How the page was written to by somebody else; empty where it was not."""


class LaunchLedger:
    """The grader's side of one page. `fd`: what the candidate's process maps."""

    def __init__(self) -> None:
        self.fd = os.memfd_create("launches", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, PAGE_BYTES)
        fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        self._page = mmap.mmap(self.fd, PAGE_BYTES, mmap.MAP_SHARED)
        self._dealt = b""
        self.deal()

    def deal(self) -> None:
        """Before a request: new words, and no launch yet."""
        self._dealt = os.urandom(8 * WORDS)
        self._page[:] = bytes(8) + self._dealt

    def read(self, kernels: Mapping[int, str]) -> Reading:
        """After a request. `kernels`: readable names by hash, as the candidate's process tells them."""
        page = bytes(self._page)
        (number,) = struct.unpack_from("=Q", page)
        used = min(number, WORDS)
        forged = "" if page[8 + 8 * used :] == self._dealt[8 * used :] else "words behind the last launch were changed"
        launches: Counter[str] = Counter()
        refused: Counter[str] = Counter()
        marks, words = struct.unpack_from(f"={used}Q", page, 8), struct.unpack_from(f"={used}Q", self._dealt)
        for mark, word in zip(marks, words, strict=True):
            kernel = mark ^ mark_of(word, 0)
            if (name := kernels.get(kernel)) is not None:
                launches[name] += 1
            elif (name := kernels.get((kernel - 1) & _MASK)) is not None:
                refused[name] += 1
            else:
                forged = forged or "a launch without its secret word, or of a kernel that no extension has"
        return Reading(number, dict(launches), dict(refused), forged)

    def close(self) -> None:
        """Give the page back."""
        self._page.close()
        os.close(self.fd)
