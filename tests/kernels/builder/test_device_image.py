"""Symbols of stubs and images, and the assembly that embeds an image: made with the real binutils."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pytest

from dice.errors import HarnessError
from dice.kernels.builder.compiler import Workbench
from dice.kernels.builder.device_image import Symbol, host_symbols, image_assembly, image_symbols, readable_names
from dice.kernels.source.lexer import SplitRefused

HOST = """
#define KERNEL __attribute__((section(".text.dice_kernel"), noinline))
#define CONSTANT __attribute__((section(".dice_constant"), used))
#define DEVICE __attribute__((section(".dice_device"), used))
KERNEL void plain(int) {}
extern "C" KERNEL void linked() {}
namespace a { template <class T> KERNEL void templated(T*) {} }
template <class T> void helper(T*) {}
CONSTANT float weights[8];
DEVICE double counter;
float ordinary[3];
void run(float* x) { a::templated(x); a::templated<int>(nullptr); helper(x); plain(1); }
"""


def compiled(text: str, folder: Path, *flags: str) -> Path:
    (folder / "host.cpp").write_text(text)
    subprocess.run(["g++", "-O0", *flags, "-c", "host.cpp"], cwd=folder, check=True)
    return folder / "host.o"


def test_stubs_and_shadows_are_found_by_their_sections(bench: Workbench, tmp_path: Path) -> None:
    found = host_symbols(bench, compiled(HOST, tmp_path), frozenset({"a::templated"}))
    symbols = {symbol.name: symbol for symbol in found}
    assert symbols["_Z5plaini"] == Symbol("_Z5plaini", "kernel", symbols["_Z5plaini"].size, weak=False)
    assert symbols["linked"].kind == "kernel"
    assert (symbols["weights"].kind, symbols["weights"].size) == ("constant", 32)
    assert (symbols["counter"].kind, symbols["counter"].size) == ("device", 8)
    templates = sorted(name for name, symbol in symbols.items() if symbol.weak)
    assert readable_names(bench, templates) == ["void a::templated<float>(float*)", "void a::templated<int>(int*)"]
    assert len(symbols) == 6  # neither ordinary functions and variables, nor templates that are no kernels


def test_names_are_read_as_a_person_would(bench: Workbench) -> None:
    assert readable_names(bench, []) == []
    assert readable_names(bench, ["_Z1kPfi", "plain"]) == ["k(float*, int)", "plain"]


def test_an_image_lists_what_it_defines(bench: Workbench, tmp_path: Path) -> None:
    image = compiled(
        'extern "C" void k() {}\nextern int elsewhere;\nint w = 3; int f() { return elsewhere; }', tmp_path
    )
    assert {"k", "w"} <= image_symbols(bench, image)
    assert "elsewhere" not in image_symbols(bench, image)


def test_a_file_that_is_no_object_is_left_to_stock(bench: Workbench, tmp_path: Path) -> None:
    (tmp_path / "x.o").write_text("no object")
    with pytest.raises(SplitRefused, match="nm failed"):
        image_symbols(bench, tmp_path / "x.o")


def test_a_tool_that_is_not_there_is_a_fault_of_the_machine(
    bench: Workbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HarnessError, match="install binutils"):
        image_symbols(bench, tmp_path / "x.o")


READER = """
#include <cstddef>
#include <cstdio>
#include <cstring>
extern "C" {
struct kernel { const void* host; const char* name; };
struct variable { void* host; const char* name; std::size_t bytes, constant; };
struct wrapper { int magic, version; const char* image; void* unused; };
extern const kernel dice_image_kernels[];
extern const variable dice_image_variables[];
extern const wrapper dice_image_wrapper;
void k1() {}
void k2() {}
float weights[8];
double counter;
}
int main() {
  std::printf("%x %d %s|", dice_image_wrapper.magic, dice_image_wrapper.version, dice_image_wrapper.image);
  for (auto k = dice_image_kernels; k->host; ++k)
    std::printf("%s %d|", k->name, k->host == (void*)(std::strcmp(k->name, "k1") ? k2 : k1));
  for (auto v = dice_image_variables; v->host; ++v) std::printf("%s %zu %zu|", v->name, v->bytes, v->constant);
}
"""


def test_the_embedded_image_and_its_tables_are_read_by_cpp(tmp_path: Path) -> None:
    """In the layout of csrc/extension/launch.cpp, with the magic number and version of CUDA's fatbin wrapper."""
    (tmp_path / "image.fatbin").write_bytes(b"the image\0")
    symbols = [
        Symbol("k1", "kernel", 1, weak=False),
        Symbol("weights", "constant", 32, weak=False),
        Symbol("k2", "kernel", 1, weak=True),
        Symbol("counter", "device", 8, weak=False),
    ]
    (tmp_path / "image.s").write_text(image_assembly("image.fatbin", symbols))
    (tmp_path / "main.cpp").write_text(READER)
    subprocess.run(["g++", "main.cpp", "image.s", "-o", "main"], cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True)
    assert done.stdout == "466243b1 1 the image|k1 1|k2 1|weights 32 1|counter 8 0|"


def test_the_stack_of_the_extension_stays_non_executable(tmp_path: Path) -> None:
    """An assembly file without the note would make it executable; and the tables are nobody else's."""
    (tmp_path / "image.fatbin").write_bytes(struct.pack("<Q", 0))
    (tmp_path / "image.s").write_text(image_assembly("image.fatbin", []))
    subprocess.run(["g++", "-shared", "image.s", "-o", "x.so"], cwd=tmp_path, check=True)
    headers = subprocess.run(
        ["readelf", "-lW", "x.so"], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    (stack,) = [line for line in headers.splitlines() if "GNU_STACK" in line]
    assert " RW " in stack
    exported = subprocess.run(["nm", "-D", "x.so"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert "dice_image" not in exported
