"""Brackets without a partner: what is found, what stays uncertain, and g++ as the judge of what is found."""

from __future__ import annotations

import random
import subprocess

import pytest

from dice.kernels.source.brackets import line_of_unpaired

PROGRAM = """\
struct Pair { int a[2]; float (*f)(int); };
template <typename T> T twice(T x) { return x + x; }
int sum(const int* x, int n) {
    int total = 0;
    for (int i = 0; i < n; ++i) {
        if (x[i] > (n >> 1)) total += x[(i * 2) % n]; // a comment with a (
        else { total -= twice<int>(x[i]); }
    }
    const char* text = "a { string [";
    auto more = [&](int y) { return y + total + text[0] + '('; };
    return more({3}) /* } */ + R"(]})"[0];
}
"""


@pytest.mark.parametrize(
    "text",
    [
        "",
        PROGRAM,
        "#define CALL(x) f((x))\nvoid g() { CALL(1); }",
        "std::vector<::at::Tensor> x{};",
        "#include <torch/extension.h>\nvoid f() { k<<<dim3(1), 2>>>(x[0]); }",
    ],
)
def test_all_have_partners(text: str) -> None:
    assert line_of_unpaired(text) is None


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("void f() {", 1),
        ("void f()\n}\n", 2),
        ("\nvoid f(int x { }\n", 2),
        ("int a[3\n;\nvoid f() { }", 1),
        ("void f() { int a[(3]); }", 1),
        ("void f() { }\nvoid g(]\n) { }", 2),
        ("#define CALL(x) f((x))\nvoid g() {\n  CALL(1;\n}", 3),
        ("#include <torch/extension.h>\n__global__ void k(float*({, int n) { }", 2),
    ],
)
def test_one_has_none(text: str, line: int) -> None:
    assert line_of_unpaired(text) == line


@pytest.mark.parametrize(
    "text",
    [
        "#if A\nvoid f(int x) {\n#else\nvoid f() {\n#endif\n",
        "#define FIRST {\nvoid f() FIRST }",
        "#define LAST }\nvoid f() { LAST",
        '#include "own.h"\nvoid f() {',
        "__BEGIN_DECLS void f() { } }",
        "void f() { pthread_cleanup_push(a, b); }}",
        "void f() <% }",
        "int a<:3];",
        "int a??(3];",
        'void f() { "',
        "void f() { /* ",
        'void f() { R"x(',
    ],
)
def test_what_could_be_otherwise_is_not_certain(text: str) -> None:
    assert line_of_unpaired(text) is None


def _refused(text: str) -> bool:
    command = ["g++", "-std=c++17", "-fsyntax-only", "-x", "c++", "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False).returncode != 0


def test_gcc_refuses_whatever_is_found() -> None:
    assert not _refused(PROGRAM)
    draw = random.Random(0)
    places = [i for i, letter in enumerate(PROGRAM) if letter in "()[]{}"]
    found = 0
    for _ in range(30):
        place = draw.choice(places)
        text = PROGRAM[:place] + draw.choice(["", draw.choice("()[]{}")]) + PROGRAM[place + 1 :]
        if line_of_unpaired(text) is not None:
            found += 1
            assert _refused(text), text
    assert found > 15
