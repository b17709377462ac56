"""Narrowing in braces, judged as nvcc judges it. The reference is nvcc's own front end, one function a line."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from dice.kernels.source import narrowing

HEAD = """#include <array>
#include <cstdint>
#include <initializer_list>
#include <vector>
namespace at { struct IntArrayRef { IntArrayRef(std::initializer_list<long>) {} }; }
namespace at { struct Tensor { void view(IntArrayRef) {} }; }
namespace torch { inline void zeros(at::IntArrayRef) {} inline void pad(at::Tensor, at::IntArrayRef) {} }
struct Pair { int a, b; }; struct Made { Made(int, int) {} };
inline void takes_pair(Pair) {} inline void takes_made(Made) {}
struct dim3 { unsigned x, y, z; dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {} };
struct float4 { float x, y, z, w; };
"""
ALLOWED = [
    "int n{w}; (void)n;",
    "int n{d}; (void)n;",
    "const unsigned int n = {w}; (void)n;",
    "float f{(d + 1.0)}; (void)f;",
    "int n{w > 3 ? w : 2}; (void)n;",
    "int a[] = {w, 2}; (void)a;",
    "int a[2][2] = {{1, 2}, {w, 3}}; (void)a;",
    "dim3 g{w, 1}; (void)g;",
    "dim3 g = {w, 1}; (void)g;",
    "auto g = dim3{1, w}; (void)g;",
    "float4 v = {d, d, d, d}; (void)v;",
    "auto n = int{w}; (void)n;",
]
REFUSED = [
    "std::vector<int> v{w, 1}; (void)v;",
    "std::vector<int> v = {1, w}; (void)v;",
    "std::vector<std::vector<int>> v{{w, 1}, {1}}; (void)v;",
    "for (int i : std::initializer_list<int>{w}) (void)i;",
    "torch::zeros({w, u});",
    "torch::pad(at::Tensor(), {1, u});",
    "at::Tensor().view({u});",
    "at::IntArrayRef s{u, 2}; (void)s;",
    "torch::zeros({2, (d * 2.0)});",
]
UNSURE = [
    "takes_pair({w, 1});",
    "takes_made({w, 1});",
    "Pair p; p = {w, 1}; (void)p;",
    "auto f = [&]() -> int { return {w}; }; f();",
    "auto f = [&]() -> Pair { return {w, 1}; }; f();",
    "auto p = new int{w}; (void)p;",
    "std::vector<Pair> v{{w, 1}}; (void)v;",
]
SILENT = ["int n{3}; (void)n;", "std::vector<int> v{1, (int)w}; (void)v;", "int n(w); (void)n;", "int n = w; (void)n;"]
CASES = [*ALLOWED, *REFUSED, *UNSURE, *SILENT]


def unit(cases: list[str]) -> str:
    lines = [
        f"void f{i}(long w, unsigned long u, double d) {{ (void)u; (void)d; {case} }}" for i, case in enumerate(cases)
    ]
    return f'{HEAD}#line 1 "cuda.cu"\n' + "\n".join(lines) + "\n"


def warnings(folder: Path, text: str) -> str:
    (folder / "unit.cpp").write_text(text)
    command = ["g++", "-std=c++17", "-fsyntax-only", *narrowing.FLAGS, "unit.cpp"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


def judgements(folder: Path) -> list[narrowing.Judgement]:
    text = unit(CASES)
    output = warnings(folder, text).splitlines(keepends=True)
    own = [[line for line in output if line.startswith(f"cuda.cu:{i + 1}:")] for i in range(len(CASES))]
    return [narrowing.judge(text, "cuda.cu", "".join(lines))[0] for lines in own]


def test_by_what_the_braces_initialise(tmp_path: Path) -> None:
    wanted = ["allowed"] * len(ALLOWED) + ["refused"] * len(REFUSED) + ["unsure"] * len(UNSURE)
    assert judgements(tmp_path) == wanted + ["allowed"] * len(SILENT)


def test_the_message_names_the_place(tmp_path: Path) -> None:
    text = unit(["int n{w}; (void)n;", "torch::zeros({u});"])
    judgement, message = narrowing.judge(text, "cuda.cu", warnings(tmp_path, text))
    assert judgement == "refused"
    assert message.startswith("cuda.cu(2): error: narrowing conversion of")


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
def test_nvcc_agrees_wherever_the_judgement_is_certain(tmp_path: Path) -> None:
    text = re.sub(r"struct (dim3|float4) .*\n", "", unit(CASES))  # nvcc has its own
    (tmp_path / "unit.cu").write_text(text)
    command = ["nvcc", "-std=c++17", "-arch=sm_90", "-cuda", "unit.cu", "-o", "unit.ii"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    refused = {
        int(line) - 1 for line in re.findall(r"^cuda\.cu\((\d+)\): error", said.stdout + said.stderr, re.MULTILINE)
    }
    wrong = [
        CASES[i]
        for i, judgement in enumerate(judgements(tmp_path))
        if judgement != "unsure" and (judgement == "refused") != (i in refused)
    ]
    assert not wrong, said.stderr
