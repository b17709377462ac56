"""Macros that decide what a source means: expanded by the preprocessor, and only where that is certain."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from cuda_soup import MACROS, REDUCTION, TILES

from dice.kernels.builder.compiler import Workbench
from dice.kernels.builder.preprocessor import expanded
from dice.kernels.source.lexer import SplitRefused, read_tokens
from dice.kernels.source.macros import DEFINE, Preprocess, expand_macros, macros_change_the_split

Expand = Callable[[str], str]


@pytest.fixture
def expand(preprocess: Preprocess) -> Expand:
    return lambda text: " ".join(expand_macros(text, read_tokens(text), preprocess).split())


def test_without_a_preprocessor_nothing_is_expanded() -> None:
    with pytest.raises(SplitRefused, match="must be expanded"):
        expand_macros("#define N 1\n", read_tokens("#define N 1\n"), None)


def test_a_source_with_its_macros_expanded(expand: Expand) -> None:
    done = expand(MACROS)
    assert "#" not in done
    assert "__global__ void relu(float* x, int n) { int i = blockIdx.x" in done
    assert "x[i] = (v * v);" in done
    assert "relu<<<((n) + 255) / 256, 256>>>(x, n);" in done


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("#define N 2\n#include <a.h>\nint x[N];", "#include <a.h> int x[2];"),
        ('#include "b.h" // why\n#pragma unroll\nint x;', '#include "b.h" // why #pragma unroll int x;'),
        ("#if defined(A)\nint a;\n#else\nint b;\n#endif\n#define A\n", "int b;"),
        ("#define A 3\n#if A > 2 && !defined(A)\n#include <a>\n#elif A\n#include <b>\n#endif", "#include <b>"),
        ("#define S(x) #x\nauto s = S(a   b); // S(c)", 'auto s = "a b";'),
        ("#define P(a, b) a##b\nint P(x, 1);", "int x1;"),
        ("#define A(...) f(__VA_ARGS__)\nA(1, (2, 3));", "f(1, (2, 3));"),
        ("#define A 1\n#undef A\nint x = A;", "int x = A;"),
        ('auto s = R"(#define N 2\nN)";', 'auto s = R"(#define N 2 N)";'),
        ("int x = __CUDA_ARCH__ + __GNUC__;", "int x = __CUDA_ARCH__ + __GNUC__;"),
        ("#define é 1\nint x = é; // ü", "int x = 1;"),
    ],
)
def test_expansion(expand: Expand, text: str, result: str) -> None:
    assert expand(text) == result


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("#ifdef __CUDA_ARCH__\n#endif", "a condition depends on __CUDA_ARCH__"),
        ("#define A\n#if A && B\n#endif", "a condition depends on B"),
        ("#if 0\n#elif defined(C)\n#endif", "a condition depends on C"),
        ("#define A(x) x\nA(", "cannot be expanded"),
        ("#if 1\n", "cannot be expanded"),
        ("#error no\n", "cannot be expanded"),
        pytest.param(
            "".join(f"#define A{n + 1} {f'A{n} ' * 16}\n" for n in range(8)) + "A8",
            "grow too large",
            marks=pytest.mark.slow,  # it takes its 30 seconds
        ),
    ],
)
def test_what_is_not_expanded(expand: Expand, text: str, reason: str) -> None:
    with pytest.raises(SplitRefused, match=reason):
        expand(text)


def test_no_text_can_pass_for_a_line_that_is_kept(expand: Expand) -> None:
    """The marks of kept lines hold a hash of the text: those of another text are names like any other."""
    text = "#define P(a, b) a##b\n#include <a>\nint P(__dice_, kept_line_7__), __dice_0_7__;"
    assert expand(text) == "#include <a> int __dice_kept_line_7__, __dice_0_7__;"


def test_text_that_is_no_unicode_stays(expand: Expand) -> None:
    assert expand('#define N 1\nauto s = "\ud800" N;') == 'auto s = "\ud800" 1;'


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        (MACROS, True),
        (REDUCTION, False),
        (TILES, False),
        ("#define K(x) __global__ void x() {}\nK(a)", True),
        ("#define API __device__\nAPI int f();", True),
        ("#define END }\nvoid f() { END", False),  # the function's own brackets do not match
        ("#define END }\nvoid f() { } END", True),
        ("#define N 4\nint x[N];", False),
        ("#define K(x) x<<<1, 2>>>()\nvoid f() { K(a); }", False),
        ("#define BODY { }\nvoid f() { BODY }", False),
        ("#define BODY { }\nvoid f() BODY", True),
        ("#undef A\nint A;", False),
        ('#define K __global__\nauto s = "K"; // K', False),
    ],
)
def test_whether_macros_shape_the_items(text: str, changes: bool) -> None:
    assert macros_change_the_split(read_tokens(text)) == changes


@pytest.mark.parametrize(
    ("line", "name", "takes_arguments"),
    [("#define A(x) x", "A", True), ("# define A (x)", "A", False), ("#undef A_1", "A_1", False)],
)
def test_definitions(line: str, name: str, takes_arguments: bool) -> None:
    match = DEFINE.match(line)
    assert match is not None
    assert (match.group(1), match.group(2) is not None) == (name, takes_arguments)
    assert DEFINE.match("#ifdef A") is None


def test_macros_are_expanded_by_the_compiler_of_the_build(bench: Workbench) -> None:
    compiler = bench.folder / "another"
    compiler.write_text('#!/bin/sh\nfor out; do :; done\necho "by another" > "$out"\n')
    compiler.chmod(0o755)
    assert expanded(str(compiler), bench, "int x;\n") == "by another\n"
