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
    return more({3}) /* } */ + "]})"[0];
}
"""


@pytest.mark.parametrize(
    "text",
    [
        "",
        PROGRAM,
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
        ('const char* f() { return "("; } }', 1),
        ("void f() { g('x'); } }", 1),
        ("void f() { }\nvoid g(]\n) { }", 2),
        ("#include <cmath> // for sinf\nvoid g() {\n#pragma unroll 4\n  call(1, INFINITY;\n}", 4),
        ("#include <torch/extension.h>\n__global__ void k(float*({, int n) { }", 2),
    ],
)
def test_one_has_none(text: str, line: int) -> None:
    assert line_of_unpaired(text) == line


# Most of these compile, by themselves or behind the header that they name; found by somebody paid to get through.
@pytest.mark.parametrize(
    "text",
    [
        "#define ID(x) x\nint main() ID({) return 0; ID(})",
        "#define STR(x) #x\nconst char *s = STR({);",
        "#include <sys/cdefs.h>\nconst char *s = __STRING([);",
        "#include <cstdio>\nint main() __P({) return 0; __P(})",
        "#include <c10/macros/Macros.h>\nconst char *s = C10_STRINGIZE([);",
        "#include <cassert>\nint f(int *a) { assert(a[0 > 1); return a[0]; }",
        "#include <sys/cdefs.h>\n#define OP __BEGIN_DECLS\nOP\nint x;\n}",
        "#include <sys/cdefs.h>\n__BEGIN_DECLS int x; }",
        "#include <torch/headeronly/macros/Macros.h>\n_HIDDEN_NS_1(mine)\nint x;\n}",
        "#define X '\\x22','\"' /*\n( */\nint a[] = {X};",
        "#define X don't /*\nint f() {\n#define B }\n/* */\n return 0; }",
        '#define X R"(" /* )"\nint f() {\n#define B }\n/* */\n return 0; }',
        "#include <sys//types.h> /* types\n( */\nint a;",
        '#define X "a\\ \n( b" // "\nconst char *s = X;',
        "\ufeff#define O (\nint a;",
        "int a;\n\0#define O (",
        "#/**/if 0\n(\n#/**/endif",
        "#\\\nif 0\n(\n#\\\nendif",
        '#import "one.h"\nint f() O_ return 0; }',
        '#define H "one.h"\n#include H\nint f() O_ return 0; }',
        "#include </tmp/one.h>\nint f() O_ return 0; }",
        "int a; /\\\n/ (",
        "// \\\v\n(\nint a;",
        'const char *s = R\\\n"(" ( ")";',
        'const char *s = R"( ( )" ")";{',
        "const int N = 3;\nint a<:::N];",
        "#define P(a,b) a##b\nint a P(<,:) 3 ];",
        "#define D(x)\nD(1'_) int a = '('; // '",
        '#define \u00e9R\nconst char *s[] = { \u00e9R"(", (")") };',
        "[[foo::bar([)]]] int x;",
        "auto l = [] [ [foo::b({)}] ] (int) { return 1; };",
        "[/**/[foo::bar( [ ( ] ) )]] int x;",
        "#include <cstdint>\n[\n#include <cstdint>\n[foo::bar( [ ( ] ) )]] int x;",
        "#define STRIP_ERROR_MESSAGES 1\n#include <c10/util/Exception.h>\nvoid f(int x) { TORCH_CHECK(x, [); }",
        "#include <torch/extension.h>\nvoid f(int x) { TORCH_CHECK(x, [); }",
        "#define N 16\nvoid f() {",
        "#include <cassert>\nvoid f() { assert_perror([); }",
        "#include <cstdio>\nint x = __glibc_has_extension([);",
        "#include <cuda_runtime.h>\n__annotate__([) int x;",
        "#include <cuda_runtime.h>\n__global__ void __launch_bounds__([) k() { }",
        "#include <immintrin.h>\nvoid f() { }}",
        "#include <torch/extension.h>\nint x = Py_ARITHMETIC_RIGHT_SHIFT([, 1, 1);",
        "#include <torch/extension.h>\nstruct A { C10_DECLARE_TLS_class_static([, int, q); };",
        "#include <torch/extension.h>\nvoid f() { Py_BEGIN_ALLOW_THREADS PyEval_RestoreThread(_save); }\n }",
        "#include <vector>\nvoid f() { __glibcxx_function_requires([) }",
        "#include <torch/extension.h>\nROCm_Bug([) int x;",
        "#include <cmath> /*\n{ */\nvoid f() { } }",
        "#include <torch/extension.h>\nint f(int *a) { assert(a[0 > 1); return a[0]; }",
        "#include <cuda_runtime.h>\nvoid f() { atexit([); }",
        "void f() { OPEN } } }",
        "%:define O (\nint a;",
        "void $f() { } }",
        "void f() {{ g(1'_('); }",
        'void f() {{ g(x"("); }',
        "#if A\nvoid f(int x) {\n#else\nvoid f() {\n#endif\n}",
        "#define FIRST {\nvoid f() FIRST }",
        "void f() { pthread_cleanup_push(a, b); }}",
        "void f() <% }",
        "int a??(3];",
    ],
)
def test_what_the_preprocessor_may_pair_is_not_certain(text: str) -> None:
    assert line_of_unpaired(text) is None


@pytest.mark.parametrize(
    "text", ['void f() { "', "void f() { /* ", 'void f() { R"x(', "void f() { int a = 1'0;", "f() { # }}"]
)
def test_nor_is_what_is_broken_otherwise(text: str) -> None:
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
