"""Lines of sources as lines of the author's file."""

from __future__ import annotations

import pytest

from dice.kernels.page.own_lines import line_of_evidence, own_errors, own_line

CODE = '''import torch
cpp = """
torch::Tensor f(torch::Tensor x);
"""
first = """
__global__ void k(float* x) {
    int unknown = nothing;
}
"""
second = """__device__ int g() {
    return 1
}
"""
shifted = """one\\ntwo
three"""
'''


def line(text: str, code: str = CODE) -> int:
    return next(number for number, row in enumerate(code.split("\n"), 1) if text in row)


def test_errors_of_gcc_have_the_line_of_the_file() -> None:
    message = (
        "cuda.cu: In function ‘int g()’:\n"
        "cuda.cu:3:19: error: ‘nothing’ was not declared in this scope\n"
        "    3 |     int unknown = nothing;\n"
        "      |                   ^~~~~~~\n"
        "cuda.cu:6:13: error: expected ‘;’ before ‘}’ token\n"
        "    6 |     return 1\n"
    )
    found = own_errors(CODE, message, 1)
    assert [error.line for error in found] == [line("nothing"), line("return 1")]
    assert found[0].source == "int unknown = nothing;"
    assert "nothing" in found[0].text


@pytest.mark.parametrize("folder", ["", "/tmp/build-1/stock/build/"])
def test_errors_of_nvcc_have_it_too(folder: str) -> None:
    message = (
        f'{folder}cuda.cu(6): error: identifier "nothing" is undefined\n      int unknown = nothing;\n          ^\n\n'
        "1 error detected in the compilation of cuda.cu.\n"
    )
    assert [error.line for error in own_errors(CODE, message, 1)] == [line("nothing")]


def test_two_errors_of_one_text_have_their_own_lines() -> None:
    code = 's = """\nint a = nothing;\nint b;\nint c = nothing;\n"""\n'
    gcc = "".join(
        f"cuda.cu:{number}:9: error: ‘nothing’ was not declared in this scope\n    {number} | int {name} = nothing;\n"
        for number, name in ((2, "a"), (4, "c"))
    )
    nvcc = "".join(
        f'cuda.cu({number}): error: identifier "nothing" is undefined\n  int {name} = nothing;\n          ^\n\n'
        for number, name in ((2, "a"), (4, "c"))
    )
    for message in (gcc, nvcc):
        found = own_errors(code, message, 1)
        assert [(error.line, error.source) for error in found] == [(2, "int a = nothing;"), (4, "int c = nothing;")]


def test_headers_of_others_and_messages_without_a_place_give_nothing() -> None:
    assert own_errors(CODE, "/usr/include/x.h:3:1: error: no\n   3 | torch::Tensor f(torch::Tensor x);\n", 1) == []
    assert own_errors(CODE, "ld: cannot find -lfoo", 1) == []
    assert own_errors("not python", "cuda.cu:1:1: error: no\n", 1) != []


def test_of_equal_lines_the_nearest_counts() -> None:
    code = 's = """\na\nx\nb\nx\n"""\n'
    assert own_line(code, "cuda.cu", 3, "x") == 3
    assert own_line(code, "cuda.cu", 9, "x") == 5


def test_without_its_text_a_line_is_told_where_one_source_can_be_meant() -> None:
    assert own_line(CODE, "cuda.cu", 3) == line("nothing")
    assert own_line(CODE, "main.cpp", 99) is None
    assert own_line(CODE, "cuda.cu", 99) is None


@pytest.mark.parametrize("first_line", [1, 4])
def test_a_rule_of_ours_prints_no_text_and_counts_from_the_first_line(first_line: int) -> None:
    (error,) = own_errors(CODE, f"cuda.cu({first_line + 2}): error: a launch needs a kernel", first_line)
    assert (error.line, error.source) == (line("nothing"), "int unknown = nothing;")


def test_a_string_whose_lines_are_not_lines_of_the_file_is_passed_over() -> None:
    assert own_line(CODE, "cuda.cu", 2, "two") is None
    assert own_line(CODE, "cuda.cu", 3, "three") is None


def test_evidence_names_a_line_of_the_file_or_of_a_source() -> None:
    assert line_of_evidence(CODE, "line 5: first = ...") == 5
    assert line_of_evidence(CODE, "C++ line 3:     int unknown = nothing;") == line("nothing")
    assert line_of_evidence(CODE, "line 0: ") is None
    assert line_of_evidence(CODE, "3 launches") is None
