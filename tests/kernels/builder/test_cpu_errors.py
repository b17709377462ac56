"""Whose failure it is when the CPU back end cannot build a source; g++ is asked behind a header that stands for ours."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from dice.kernels.builder.compiler import ToolRun
from dice.kernels.builder.cpu_errors import check_rules, declared_by_torch, own_error
from dice.kernels.builder.outcome import FinalRefusal


@pytest.fixture
def check(tmp_path: Path) -> Callable[[str], ToolRun]:
    (tmp_path / "dice_cpu").mkdir()
    (tmp_path / "dice_cpu" / "cuda_unit.h").write_text(
        "#pragma once\n#define __global__\nstruct uint3 { };\nstruct dim3 { };"
    )

    def run(unit: str) -> ToolRun:
        command = ["g++", "-std=c++17", "-fsyntax-only", "-Wfatal-errors", f"-I{tmp_path}", "-x", "c++", "-"]
        done = subprocess.run(command, input=unit, capture_output=True, text=True, check=False)
        return ToolRun(done.returncode, done.stdout + done.stderr, 0.0, 0.0)

    return run


@pytest.mark.parametrize(
    "text",
    [
        "__global__ void k(float* x) {\n  x[0] = 1\n}",
        "__global__ void k(float* x) { x[0] = ; }",
        "__global__ void k(float* x) { if (x { } }",
        "void f() {",
        "void f() { undeclared(3);",
    ],
)
def test_what_is_no_cpp_is_the_candidates(text: str, check: Callable[[str], ToolRun]) -> None:
    error = own_error(text, "cuda.cu", check, alone=True)
    assert error is not None
    assert error.rule == "not C++ in any reading"
    assert error.message.startswith(("cuda.cu:", "cuda.cu(1): error: a bracket here"))  # as g++ says it, or as we do


def test_gcc_is_asked_once(check: Callable[[str], ToolRun]) -> None:
    """To go on behind an open bracket takes it seconds."""
    asked: list[str] = []

    def counted(unit: str) -> ToolRun:
        asked.append(unit)
        return check(unit)

    error = own_error("void f(unknown({, int n) {\n undeclared(n); }", "cuda.cu", counted, alone=True)
    assert error is not None
    assert error.message == "cuda.cu(1): error: a bracket here has no partner"
    assert len(asked) == 1
    # a header of the candidate's own may close it
    assert own_error("void f(unknown({, int n) {\n undeclared(n); }", "cuda.cu", counted, alone=False) is None


@pytest.mark.parametrize(
    "text",
    [
        "__global__ void k(float* x) { x[0] = 1; }\nvoid f(float* x) { k<<<1, 2>>>(x); }",
        "#include <none.h>\nvoid f() { }",
        "void f() { undeclared(3); }",
        "__nv_pure__ int f() { return 1; }",
        "API_EXPORT int f() { return 1; }",
        "void f() { k<<<1, 2; }",
    ],
)
def test_what_headers_could_explain_is_not(text: str, check: Callable[[str], ToolRun]) -> None:
    assert own_error(text, "cuda.cu", check, alone=True) is None


def test_a_broken_rule_of_cuda() -> None:
    with pytest.raises(FinalRefusal) as broken:
        check_rules("\n__global__ int k() { }", "cuda.cu")
    assert broken.value.message == "cuda.cu(2): error: a __global__ function must have a void return type"
    assert broken.value.rule == "a rule of CUDA"
    check_rules("__global__ void k() { }", "cuda.cu")
    check_rules("void f() { ( }", "cuda.cu")  # not read: nothing is certain
    check_rules("void f() { auto g = [] __device__ { }; }", "cuda.cu")


def test_names_that_pytorch_declares(tmp_path: Path) -> None:
    assert declared_by_torch("anything", tmp_path)
    (tmp_path / "ATen" / "cuda" / "detail").mkdir(parents=True)
    (tmp_path / "ATen" / "cuda" / "detail" / "a.cuh").write_bytes(b"\xff void known(int);")
    (tmp_path / "ATen" / "other.h").write_text("void elsewhere();")
    (tmp_path / "ATen" / "cuda" / "b.h").write_text("void plain();")
    assert declared_by_torch("known", tmp_path)
    assert declared_by_torch("plain", tmp_path)
    for name in ("know", "nown", "elsewhere"):
        assert not declared_by_torch(name, tmp_path)
