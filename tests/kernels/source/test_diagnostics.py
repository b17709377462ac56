"""Compiler messages read into places and texts: g++'s as it writes them here, nvcc's as its manual and runs show them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from dice.kernels.source.diagnostics import Diagnostic, errors, read_gcc, read_nvcc

NVCC = """\
In file included from a.h:3
cuda.cu(12): error: identifier "blockIdy" is undefined
      int i = blockIdy.x;
              ^

cuda.cu(14): warning #177-D: variable "unused" was declared but never referenced
/tmp/a b/x.cuh(3): catastrophic error: cannot open source file "none.h"
cuda.cu(20): error #20014-D: calling a __host__ function from a __global__ function
ptxas error   : Entry function '_Z1kv' uses too much shared data (0x20000 bytes, 0xc000 max)
ptxas info    : 0 bytes gmem
ptxas /tmp/x.ptx, line 20; error   : Not a name of any known instruction: 'foo'
ptxas fatal   : Ptx assembly aborted due to errors
catastrophic error: cannot write
2 errors detected in the compilation of "cuda.cu".
"""


def test_what_nvcc_says() -> None:
    assert [(d.tool, d.file, d.line, d.error) for d in read_nvcc(NVCC)] == [
        ("nvcc", "cuda.cu", 12, True),
        ("nvcc", "cuda.cu", 14, False),
        ("nvcc", "/tmp/a b/x.cuh", 3, True),
        ("nvcc", "cuda.cu", 20, True),
        ("ptxas", "", 0, True),
        ("ptxas", "", 0, True),
        ("ptxas", "", 0, True),
        ("nvcc", "", 0, True),
    ]
    texts = [d.text for d in read_nvcc(NVCC)]
    assert texts[0] == 'identifier "blockIdy" is undefined'
    assert texts[4].startswith("Entry function '_Z1kv' uses too much shared data")
    assert texts[5] == "Not a name of any known instruction: 'foo'"
    assert len(errors(read_nvcc(NVCC))) == 7


@pytest.mark.parametrize(
    "code",
    [
        "int f() { return missing; }",
        "missing f();",
        "namespace n { } int f() { return n::missing; }",
        "struct S { }; int f(S s) { return s.missing; }",
        "void f(missing::A a);",
        "int f() { return 1 }",
    ],
)
def test_what_gcc_says(tmp_path: Path, code: str) -> None:
    (tmp_path / "a.cpp").write_text(f"\n{code}\n")
    command = ["g++", "-fsyntax-only", "a.cpp"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stderr
    found = read_gcc(said)
    assert {(d.tool, d.file, d.line, d.error) for d in found} == {("g++", "a.cpp", 2, True)}
    assert all(f"error: {d.text}\n" in said for d in found)


def test_a_missing_header_and_a_warning(tmp_path: Path) -> None:
    (tmp_path / "a.cpp").write_text("int f() { int unused; return 1; }\n#include <missing.h>\n")
    command = ["g++", "-Wall", "-fsyntax-only", "a.cpp"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stderr
    fatal = [d for d in read_gcc(said) if d.error]
    assert [(d.file, d.line, d.text) for d in fatal] == [("a.cpp", 2, "missing.h: No such file or directory")]
    (tmp_path / "a.cpp").write_text("int f() { int unused; return 1; }\n")
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stderr
    (warning,) = read_gcc(said)
    assert (warning.line, warning.error, errors([warning])) == (1, False, [])
    assert warning.names == ["unused"]


def test_names_are_what_stands_in_quotes() -> None:
    assert Diagnostic("g++", "a", 1, True, "‘f’ and 'g' with \"h i\" but not j").names == ["f", "g", "h i"]
