"""The grader's ledger of launches: what marks say, and that nobody else's writing passes for one."""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dice.kernels.builder.headers import CSRC
from dice.kernels.sandbox.launch_ledger import PAGE_BYTES, WORDS, LaunchLedger, mark_of, name_hash
from dice.kernels.sandbox.linux import map_shared

KERNELS = {name_hash(b"_Z4reluPf"): "relu", name_hash(b"copy"): "copy"}
STUB = """
#include "ledger.h"
extern "C" void launch(void* page, const char* name, int refused, int times) {
  for (int i = 0; i < times; ++i) dice_ledger::mark(static_cast<dice_ledger::Page*>(page), name, refused);
}
"""


@pytest.fixture(scope="module")
def stub(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., None]:
    """The real stub's arithmetic, compiled."""
    folder = tmp_path_factory.mktemp("stub")
    (folder / "stub.cpp").write_text(STUB)
    command = ["g++", "-std=c++17", "-shared", "-fPIC", f"-I{CSRC / 'extension'}", "stub.cpp", "-o", "stub.so"]
    subprocess.run(command, cwd=folder, check=True)
    library = ctypes.CDLL(str(folder / "stub.so"))
    library.launch.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_int]
    return library.launch


@pytest.fixture
def ledger() -> Iterator[LaunchLedger]:
    made = LaunchLedger()
    yield made
    made.close()


def page_of(ledger: LaunchLedger) -> mmap.mmap:
    """The candidate's view."""
    return mmap.mmap(ledger.fd, PAGE_BYTES, mmap.MAP_SHARED)


def test_launches_are_counted_by_kernel_and_anew_after_each_deal(
    ledger: LaunchLedger, stub: Callable[..., None]
) -> None:
    page = map_shared(ledger.fd, PAGE_BYTES)
    stub(page, b"_Z4reluPf", 0, 3)
    stub(page, b"copy", 1, 1)
    stub(page, b"copy", 0, 2)
    seen = ledger.read(KERNELS)
    assert (seen.number, seen.launches, seen.refused, seen.forged) == (6, {"relu": 3, "copy": 2}, {"copy": 1}, "")
    ledger.deal()
    assert ledger.read(KERNELS).launches == {}
    stub(page, b"copy", 0, 1)
    assert ledger.read(KERNELS).launches == {"copy": 1}


def test_launches_beyond_the_last_word_are_only_counted(ledger: LaunchLedger, stub: Callable[..., None]) -> None:
    stub(map_shared(ledger.fd, PAGE_BYTES), b"copy", 0, WORDS + 10)
    seen = ledger.read(KERNELS)
    assert (seen.number, seen.launches, seen.forged) == (WORDS + 10, {"copy": WORDS}, "")


@pytest.mark.parametrize(
    "forge",
    [
        lambda page: page.__setitem__(slice(0, 8), struct.pack("=Q", 1)),  # a count, without a mark
        lambda page: page.__setitem__(slice(8, 16), struct.pack("=Q", 1)),  # one more in the first word
        lambda page: page.__setitem__(slice(0, 16), struct.pack("=QQ", 1, 0)),
        lambda page: page.__setitem__(slice(0, 16), struct.pack("=QQ", 1, name_hash(b"copy"))),
        lambda page: page.__setitem__(slice(8 * 500, 8 * 501), bytes(8)),
        lambda page: page.__setitem__(slice(PAGE_BYTES - 1, PAGE_BYTES), bytes([page[PAGE_BYTES - 1] ^ 1])),
        lambda page: page.__setitem__(slice(0, PAGE_BYTES), bytes(PAGE_BYTES)),
        lambda page: page.__setitem__(slice(0, 8), b"\xff" * 8),
        lambda page: page.__setitem__(slice(0, PAGE_BYTES), os.urandom(PAGE_BYTES)),
    ],
)
def test_what_is_written_without_the_words_is_seen(ledger: LaunchLedger, forge: Callable[[mmap.mmap], None]) -> None:
    forge(page_of(ledger))
    seen = ledger.read(KERNELS)
    assert seen.forged
    assert seen.launches == {}


def test_a_mark_of_an_earlier_deal_is_none_of_this_one(ledger: LaunchLedger, stub: Callable[..., None]) -> None:
    stub(map_shared(ledger.fd, PAGE_BYTES), b"copy", 0, 1)
    page = page_of(ledger)
    kept = page[:16]
    ledger.deal()
    page[:16] = kept
    assert ledger.read(KERNELS).forged


def test_a_kernel_that_no_extension_has_is_no_launch(ledger: LaunchLedger, stub: Callable[..., None]) -> None:
    stub(map_shared(ledger.fd, PAGE_BYTES), b"made_up", 0, 1)
    assert ledger.read(KERNELS).forged


def test_the_page_cannot_be_resized_and_marks_differ(ledger: LaunchLedger) -> None:
    with pytest.raises(PermissionError):
        os.ftruncate(ledger.fd, 8)
    assert (
        len({mark_of(word, kernel, refused) for word in (0, 1) for kernel in KERNELS for refused in (False, True)}) == 8
    )
    assert name_hash(b"") == 0xCBF29CE484222325  # FNV-1a's own test vectors
    assert name_hash(b"foobar") == 0x85944171F73967E8


def test_the_header_is_where_the_builder_looks(tmp_path: Path) -> None:
    assert (CSRC / "extension" / "ledger.h").is_file()
    assert f"kWords = {WORDS};" in (CSRC / "extension" / "ledger.h").read_text()
