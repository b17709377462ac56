"""Functions taken apart; g++ says whether a parameter's type and name are what the language makes of them."""

import random
import subprocess

import pytest

from dice.kernels.source.cuda_source import CudaSource
from dice.kernels.source.declaration import parse_parameter
from dice.kernels.source.lexer import SplitRefused, tokenize

TYPES = (
    "int",
    "unsigned",
    "long long",
    "unsigned long int",
    "float",
    "S",
    "ns::S",
    "::ns::S",
    "T<int>",
    "T<T<float, 2>, (3 > 2)>",
    "ns::V<int>::type",
    "decltype(0 + 1)",
    "struct S",
    "typename ns::V<int>::type",
)
GIVEN = """
#include <type_traits>
#define __restrict__ __restrict
struct S {};
namespace ns { struct S {}; template <class> struct V { using type = int; }; }
template <class, int = 1> struct T {};
"""


DECLARATORS = (
    "{}",
    "*{}",
    "* const {}",
    "**{}",
    "* __restrict__ {}",
    "*const *{}",
    "&{}",
    "&&{}",
    "*&{}",
    "{}[4]",
    "{}[2][(3 > 2)]",
    "*{}[4]",
    "(&{})[3]",
    "(&&{})[3]",
    "(*{})[3]",
    "(*{})(int, float&)",
    "(&{})(S)",
    "(*{}[2])(int)",
    "*(*{})(int)",
    "(*(*{})(int))(float)",
)


def cases():
    """(parameter, its name or None) for every type with every declarator, with and without a name."""
    draw = random.Random(7)
    for base in TYPES:
        for form in DECLARATORS:
            kind = draw.choice([base, f"const {base}", f"{base} const", f"volatile {base}"])
            space = draw.choice([" ", "  ", " /* c */ ", "\n"])
            yield f"{kind}{space}{form.format('name')}", "name"
            yield f"{kind}{space}{form.format('')}".rstrip(), None


def test_types_and_names_of_parameters_are_those_of_the_language():
    texts = [
        *cases(),
        ("const float* __restrict__ const x", "x"),
        ("S (&shared)[2][16]", "shared"),
        ("float (*table)[4]", "table"),
        ("S S::*member", "member"),
        ("int (*(*deep)(int))(float)", "deep"),
        ("T<int (*)(S)> of_functions", "of_functions"),
        ("T<int, (1 > 0)> compared", "compared"),
        ("unsigned char bytes[]", "bytes"),
        ("int x[2][3]", "x"),
        ("long double d", "d"),
    ]
    lines = [GIVEN]
    for number, (text, name) in enumerate(texts):
        parameter = parse_parameter(text, tokenize(text))
        assert parameter.name == name, text
        both = f"static void f({text}); static void g({parameter.type}); "
        lines.append(f'#line {number} "texts"\ntemplate <int> struct A{number} {{ {both}')
        lines.append(f"static_assert(std::is_same_v<decltype(&f), decltype(&g)>); }}; template struct A{number}<0>;")
    done = subprocess.run(
        ["g++", "-std=c++20", "-fsyntax-only", "-w", "-x", "c++", "-"],
        input="\n".join(lines),
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[:500]


@pytest.mark.parametrize(
    ("text", "name", "default"),
    [
        ("int n = 3", "n", "3"),
        ("float e = 1e-5f", "e", "1e-5f"),
        ("T<int, 2> x = T<int, 2>{}", "x", "T<int, 2>{}"),
        ("std::vector<int> v = {1, 2}", "v", "{1, 2}"),
        ("bool b = (a == c)", "b", "(a == c)"),
        ("int = 0", None, "0"),
        ("c10::optional<at::Tensor> w = c10::nullopt", "w", "c10::nullopt"),
        ("alignas(16) float x", "x", None),
        ("const __grid_constant__ Params p", "p", None),
        ("Args&&... args", "args", None),
        ("std::function<void(*)(int)> f", "f", None),
    ],
)
def test_a_parameter(text, name, default):
    parameter = parse_parameter(text, tokenize(text))
    assert (parameter.name, parameter.default) == (name, default)
    assert parameter.is_pack == ("..." in text)


def only(text):
    (item,) = CudaSource(text).items
    assert item.function is not None, item.kind
    return item.function


def test_a_kernel_with_everything():
    function = only(
        'template <typename T, int N = (4 > 2), template <class> class C, class... R>\nextern "C" static __global__ void\n'
        "__launch_bounds__(N * 2, 1) k(const T* __restrict__ x, R... rest) noexcept { x; }"
    )
    assert (function.name, function.declarator, function.return_type) == ("k", "k", "void")
    assert function.specifiers == ("static", "__global__")
    assert (function.launch_bounds, function.linkage_c, function.suffix) == ("N * 2, 1", True, "noexcept")
    named = [(p.name, p.is_pack) for p in function.template_parameters]
    assert named == [("T", False), ("N", False), ("C", False), ("R", True)]
    assert [p.name for p in function.parameters] == ["x", "rest"]
    assert function.text[function.body_start : function.end] == "{ x; }"
    assert function.head.endswith("noexcept")
    assert function.is_template


@pytest.mark.parametrize(
    ("text", "name", "declarator", "return_type"),
    [
        ("void f(void);", "f", "f", "void"),
        ("std::vector<std::pair<int, int>> f();", "f", "f", "std :: vector < std :: pair < int , int > >"),
        ("auto f(int x) -> decltype(x);", "f", "f", "auto"),
        ("decltype(auto) f();", "f", "f", "decltype ( auto )"),
        ("unsigned long f();", "f", "f", "unsigned long"),
        ("const float& ns::A<int>::get() const { }", "get", "ns::A<int>::get", "const float &"),
        ("A::A(int x) : y{x}, z(x) { }", "A", "A::A", ""),
        ("A<int>::~A() { }", "~A", "A<int>::~A", ""),
        ("bool operator<(A a, A b) { return a.x < b.x; }", "operator<", "operator<", "bool"),
        ("A operator()(int i) const { }", "operator()", "operator()", "A"),
        ("A& A::operator=(const A& a) { }", "operator=", "A::operator=", "A &"),
        ("template <> void f<int, (3 > 2)>(int x) { }", "f", "f<int, (3 > 2)>", "void"),
        ("[[nodiscard]] __attribute__((noinline)) int f(int);", "f", "f", "int"),
        ("template <typename T> requires std::integral<T> && (sizeof(T) > 1) T f(T x) { }", "f", "f", "T"),
    ],
)
def test_names_and_return_types(text, name, declarator, return_type):
    function = only(text)
    assert (function.name, function.declarator, function.return_type) == (name, declarator, return_type)


def test_a_specialisation_has_no_parameters_of_its_own():
    function = only("template <> __global__ void k<float>(float* x) { }")
    assert function.is_specialisation
    assert not function.is_template
    assert (function.name, function.declarator) == ("k", "k<float>")


def test_a_prototype_of_a_definition():
    function = only(
        "template <int N> static __device__ __forceinline__ float f(const float* x, int n = N) { return 0; }"
    )
    assert function.declaration() == "template <int N> static float f(const float* x, int n = N);"
    assert only('extern "C" __global__ void k(int n) { }').declaration() == 'extern "C" void k(int n);'


@pytest.mark.parametrize("text", ["", "= 3"])
def test_what_is_no_parameter(text):
    with pytest.raises(SplitRefused):
        parse_parameter(text, tokenize(text))
