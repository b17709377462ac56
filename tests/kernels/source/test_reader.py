"""What stands in a source: items at namespace scope and functions anywhere, in any text, in linear time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

import pytest
from cuda_soup import ANY_TEXT, MACROS, REDUCTION, SOURCES, TILES
from hypothesis import given, settings

from dice.kernels.source.launch import read_launches
from dice.kernels.source.lexer import Lines, Token, read_tokens
from dice.kernels.source.reader import Reader
from dice.kernels.source.variables import lasting_variables


def read(text: str) -> Reader:
    return Reader(text, read_tokens(text), Lines(text))


def kinds(text: str) -> list[tuple[str, str]]:
    return [(item.kind, item.name) for item in read(text).items]


# ---- what stands at namespace scope


def test_the_items_of_a_source() -> None:
    assert kinds(REDUCTION) == [
        ("include", "torch/extension.h"),
        ("include", "cuda_runtime.h"),
        ("macro", "WARP"),
        ("macro", "CHECK"),
        ("device_function", "block_sum"),
        ("kernel", "row_sums"),
        ("host_function", "forward"),
        ("macro_call", "PYBIND11_MODULE"),
    ]
    assert kinds(TILES) == [
        ("scope_open", "tiles"),
        ("scope_open", ""),
        ("constant", "N"),
        ("device_variable", "weights"),
        ("host_variable", "calls"),
        ("type", "Tile"),
        ("type", "Mode"),
        ("type", "Function"),
        ("scope_close", ""),
        ("device_function", "value_of"),
        ("kernel", "multiply"),
        ("directive", ""),
        ("type", "real"),
        ("directive", ""),
        ("type", "real"),
        ("directive", ""),
        ("host_function", "run"),
        ("scope_close", ""),
    ]
    assert kinds(MACROS)[:2] == [("macro", "ELEMENTWISE"), ("macro", "RUN")]
    assert kinds(MACROS)[2:] == [("macro_call", "ELEMENTWISE")] * 2 + [("host_function", "both")]
    for source in SOURCES:
        assert read(source).refusal is None


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("#undef A", "macro", "A"),
        ("#  include <a/b.h>  // why", "include", "a/b.h"),
        ('#include "c.h"', "include", "c.h"),
        ("#pragma once", "directive", ""),
        ("__global__ void k();", "kernel_declaration", "k"),
        ("__host__ __device__ int f() { return 1; }", "host_device_function", "f"),
        ("constexpr int f(int n) { return n; }", "host_device_function", "f"),
        ("constexpr __host__ int f(int n) { return n; }", "host_function", "f"),
        ("constexpr int f(int n);", "host_declaration", "f"),
        ("__device__ float f(float);", "device_function", "f"),
        ("__device__ float g;", "device_variable", "g"),
        ("__device__ float g[2] = {f(1), 2};", "device_variable", "g"),
        ("const int n = f(3);", "constant", "n"),
        ("constexpr float a[] = {1};", "constant", "a"),
        ("const char* p = 0;", "host_variable", "p"),
        ("std::vector<int> v(3, 4);", "host_declaration", "v"),  # as C++ itself may read it
        ("std::vector<int> v = {3};", "host_variable", "v"),
        ("float (*f)(int) = nullptr;", "host_variable", "f"),
        ("struct A;", "type", "A"),
        ("struct A { int x; } a;", "type", "A"),
        ("template <class T> struct A<T*> : B { int f() { return 1; } };", "type", "A"),
        ("class alignas(16) A final : public B<int> { };", "type", "A"),
        ("union U { int a; float b; };", "type", "U"),
        ("enum { one, two };", "type", ""),
        ("typedef struct { int x; } S;", "type", "S"),
        ("template <class T> using V = std::vector<T>;", "type", "V"),
        ("template <class T> concept C = sizeof(T) > 1;", "type", "C"),
        ("using namespace at;", "using", "at"),
        ("using at::Tensor;", "using", "Tensor"),
        ("namespace F = torch::nn;", "using", "nn"),
        ("template __global__ void k<float>(float*);", "instantiation", ""),
        ("extern template struct A<int>;", "instantiation", ""),
        ("TORCH_LIBRARY(my, m) { m.def(1); }", "macro_call", "TORCH_LIBRARY"),
        ("DECLARE(a, b);", "macro_call", "DECLARE"),
        ("A::A(int x) : y{x}, z(x) { y = 1; }", "host_function", "A"),
        ("A::~A() = default;", "host_declaration", "~A"),
        ("bool operator<(A a, A b) { return a.x < b.x; }", "host_function", "operator<"),
        ("auto f() -> std::vector<int> { return {}; }", "host_function", "f"),
        ("[[nodiscard]] static inline int f() { return 1; }", "host_function", "f"),
        ('extern "C" void f(int);', "host_declaration", "f"),
        ("int f() try { return 1; } ", "host_function", "f"),
    ],
)
def test_an_item(text: str, kind: str, name: str) -> None:
    assert kinds(text) == [(kind, name)]


@pytest.mark.parametrize(
    ("text", "names", "after"),
    [
        ("namespace a::b { int x; }", ("a::b",), 1),
        ("inline namespace v1 { int x; }", ("v1",), 1),
        ("namespace [[deprecated]] a { int x; }", ("[[deprecated]]a",), 1),
        ("namespace OUTER(a = {}) { int x; }", ("OUTER(a={})",), 1),
        ('extern "C" { int x; }', (), 1),
        ("namespace { namespace a { int x; } }", ("", "a"), 2),
    ],
)
def test_scopes(text: str, names: tuple[str, ...], after: int) -> None:
    items = read(text).items
    (variable,) = [item for item in items if item.kind == "host_variable"]
    assert variable.namespaces == names
    assert [item.kind for item in items][-after:] == ["scope_close"] * after
    assert items[-1].namespaces == ()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("}", "unmatched } at line 1"),
        ("\n\nint x = 3", "without an end at line 3"),
        ("namespace a { int x;", "namespace is never closed"),
        ("namespace a", "without an end"),
        ("int x;\n{ int y; }", "block outside of any function at line 2"),
        ("void f() { ( }", "do not match"),
        ("void f() { ) }", "do not match"),
        ("void f() { ", "bracket is never closed"),
        ("template <class T void f();", "template list is never closed"),
        ("void f()\n#if X\n{ }\n#endif\n", "preprocessor line inside a declaration at line 2"),
        ("void f() {\n#if X\n {\n#else\n {{\n#endif\n } }", "depend on an #if|do not match"),
        ("void f() {\n#if X\n if (a) {\n#else\n {\n#endif\n } }", "depend on an #if|do not match"),
        ("void f() {\n#if X\n }", "not closed in its block"),
        ("__device__ struct { int x; } s;", "type defined in place"),
        ("namespace n {" * 101 + "}" * 101, "more than 100 namespaces"),
        ("#define A int\nint (a)(b)(c) { }", "unusual function at line 2"),
        ("void (*g(int x))(float) { return 0; }", "unusual function at line 1"),
    ],
)
def test_what_is_not_certain(text: str, reason: str) -> None:
    refusal = read(text).refusal
    assert refusal is not None
    assert any(part in refusal for part in reason.split("|")), refusal


def test_reading_goes_on_behind_what_cannot_be_read() -> None:
    text = "int x } { stray } __global__ void k() { a( } int y; void f() { }"
    assert [kind for kind, _ in kinds(text)][:3] == ["unreadable"] * 3
    assert kinds(text)[-1] == ("host_function", "f")
    assert "k" in [function.name for function in read(text).functions]


# ---- functions anywhere


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("struct A { A() : x{1} { } int x; void f(); void g() const { } };", ["A", "g"]),
        ("struct A { struct B { void f() { } }; int y[2] = {1, 2}; ~A() { } };", ["f", "~A"]),
        ("struct A { public: void f() { } MACRO(x) private: int g(int a = 2) noexcept { return a; } };", ["f", "g"]),
        ("void f() { struct L { void g() { } }; }", ["f", "g"]),
        ("auto g = [](int x) { return x; };", [""]),
        ("void f() { g([&] { h([=]() mutable -> int { return 1; }); }); }", ["f", "", ""]),
        ("void f() { int a[2]; a[0] = b[1]; x = y[2] { }; }", ["f"]),
        ("void f() { return [] { }; }", ["f", ""]),
        ("void f() { int a[2][2] { }; [[likely]] { } }", ["f"]),
        ("[[maybe_unused]] void f() { }", ["f"]),
        ("struct A f() { }", ["f"]),
        ("enum struct E { a }; void f() { enum class G { b }; }", ["f"]),
        (
            "template <class T> struct A { template <class U> __device__ T operator()(U u) { return u; } };",
            ["operator()"],
        ),
    ],
)
def test_functions(text: str, names: list[str]) -> None:
    assert [function.name for function in read(text).functions] == names


def test_where_a_function_begins_and_ends() -> None:
    text = "int f(int x) ; struct A { public: static void g() const { } };"
    declared = read(text).items[0].function
    assert declared is not None
    assert text[declared.start : declared.end] == "int f(int x)"
    (member,) = read(text).functions
    assert (member.head, text[member.body_start : member.end], member.return_type, member.suffix) == (
        "static void g() const",
        "{ }",
        "void",
        "const",
    )


def test_the_execution_space_of_a_lambda() -> None:
    text = "auto a = [] __device__ (int x) { }; auto b = [](int x = [] __device__ { return 1; }()) { };"
    by_start = sorted(read(text).functions, key=lambda function: function.start)
    assert [function.specifiers for function in by_start] == [("__device__",), (), ("__device__",)]


# ---- any text


def check(text: str) -> None:
    """Every place that is stated holds what is said to stand there."""
    tokens = read_tokens(text)
    reader = Reader(text, tokens, Lines(text))
    position = 0
    for item in reader.items:
        assert position <= item.start < item.end
        assert item.text == text[item.start : item.end]
        assert item.line == text[: item.start].count("\n") + 1
        assert (item.tokens[0].start, item.tokens[-1].end) == (item.start, item.end)
        position = item.end
    covered = sum(len(item.tokens) for item in reader.items)
    assert covered == len(tokens) - _empty_declarations(tokens, {id(t) for item in reader.items for t in item.tokens})
    for function in reader.functions:
        assert text[function.body_start] == tokens[function.brace].text == "{"
        assert text[function.end - 1] == tokens[function.last].text == "}"
        assert tokens[function.first].start == function.start < function.head_end <= function.body_start < function.end
    braces = [function.brace for function in reader.functions]
    assert braces == sorted(set(braces))


def _empty_declarations(tokens: Sequence[Token], in_items: set[int]) -> int:
    left_out = [token for token in tokens if id(token) not in in_items]
    assert all(token.text == ";" for token in left_out)
    return len(left_out)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(ANY_TEXT)
def test_every_text_is_read(text: str) -> None:
    check(text)


@pytest.mark.parametrize("source", SOURCES)
def test_every_beginning_of_a_source_is_read(source: str) -> None:
    for end in range(len(source)):
        check(source[:end])


# ---- in linear time


class Counted(Sequence[Token]):
    """Tokens that count how often one of them is looked at, those of slices too."""

    looks = 0

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens

    def __len__(self) -> int:
        return len(self._tokens)

    @overload
    def __getitem__(self, index: int) -> Token: ...
    @overload
    def __getitem__(self, index: slice) -> Counted: ...
    def __getitem__(self, index: int | slice) -> Token | Counted:
        if isinstance(index, int):
            Counted.looks += 1
            return self._tokens[index]
        Counted.looks += len(range(*index.indices(len(self))))
        return Counted(self._tokens[index])

    def __iter__(self) -> Iterator[Token]:
        for token in self._tokens:
            Counted.looks += 1
            yield token


def looks(text: str) -> int:
    """How often the reading of a text looks at a token."""
    tokens, lines = Counted(read_tokens(text)), Lines(text)
    Counted.looks = 0
    reader = Reader(text, tokens, lines)
    read_launches(text, tokens, lines)
    lasting_variables(tokens, reader.items, [])
    return Counted.looks


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        *((source, "") for source in SOURCES),
        ("namespace a } ", ""),
        ("namespace a [ ", ""),
        ("namespace (a) ", ""),
        ("namespace a { ", "} "),
        ("struct a { ", "}; "),
        ("struct a { void f() { ", "} }; "),
        ("struct a {\n#if A\n#endif\n", "}; "),
        ("struct a ", ""),
        ("f(struct a ", ") "),
        ("template < ", "> "),
        ("template <class T> ", ""),
        ("int x, ", ""),
        ("x < ", ""),
        ("( ", ""),
        ("{ ", ""),
        ("f( ", ") "),
        ("static int a; ", ""),
        ("void f() { static int a = g( ", "); } "),
        ("{\n#if A\n", "}\n#endif\n"),
        ("[](int x = ", "{ }) { } "),
        (", [] ", ""),
        ("k<<< ", ""),
        ("k<<<1, 2>>>( ", ") "),
        ("k<<<( ", "), 1>>>() "),
        ("f( ", ")<<<1, 2>>>() "),
        ("a::b.c<<<>>>(); ", ""),
        ("operator ", ""),
        ("requires ", ""),
    ],
)
def test_twice_the_text_is_twice_the_work(opening: str, closing: str) -> None:
    n = 200 if len(opening) < 50 else 2
    once, twice = looks(opening * n + closing * n), looks(opening * 2 * n + closing * 2 * n)
    assert twice < 2.2 * once
    assert once < 100 * n * len(read_tokens(opening + closing))
