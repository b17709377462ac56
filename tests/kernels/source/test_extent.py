"""Where a declaration ends."""

from __future__ import annotations

import pytest

from dice.kernels.source.extent import Extents
from dice.kernels.source.lexer import Lines, read_tokens


def read(text: str, *, in_class: bool = False) -> tuple[str, str | None, str, str | None]:
    """The declaration at the beginning of a text, its block, what it is, and what is not certain."""
    tokens = read_tokens(text)
    extents = Extents(tokens, Lines(text))
    last, brace, kind = extents.read(0, len(tokens), in_class=in_class)
    block = None if brace is None else text[tokens[brace].start : tokens[brace + tokens[brace].reach].end]
    return text[: tokens[last].end], block, kind, extents.refusal


@pytest.mark.parametrize(
    ("declaration", "block", "kind"),
    [
        ("int x;", None, "other"),
        ("int x = f({1; 2}, [] { return 3; });", None, "other"),
        ("int x{1}, y = {2};", None, "other"),
        ("int a[] = {1, 2};", None, "other"),
        ("bool b = i < 3 && j > 2;", None, "other"),
        ("bool b = i < 3;", None, "other"),
        ("std::map<int, std::vector<int>> m = {{1, {2}}};", None, "other"),
        ("void f(int x = 3);", None, "other"),
        ("auto f = [](int x) { return x; };", None, "other"),
        ("using F = void (*)(int);", None, "other"),
        ('asm("nop");', None, "other"),
        ("extern struct A a;", None, "other"),
        ("struct A a = {1};", None, "other"),
        ("struct A f(int);", None, "other"),
        ("struct { int x; } s = {1};", "{ int x; }", "type"),
        ("struct A : B<(1 > 2)> { int x; };", "{ int x; }", "type"),
        ("enum E : int { a };", "{ a }", "type"),
        ("class __align__(16) A { };", "{ }", "type"),
        ("typedef struct A { int x; } B;", "{ int x; }", "type"),
        ("void f() { g(); }", "{ g(); }", "function"),
        ("struct A f() { }", "{ }", "function"),
        ("__global__ void __launch_bounds__(256) k(int x) { }", "{ }", "function"),
        ("void __attribute__((noinline)) f() { }", "{ }", "function"),
        ("template <int N = (3 > 2), class T = A<B<int>>> void f() { }", "{ }", "function"),
        ("decltype(x) f() { }", "{ }", "function"),
        ("bool operator<(A a, A b) { }", "{ }", "function"),
        ("A& operator=(const A& a) { }", "{ }", "function"),
        ("bool operator==(A a) const { }", "{ }", "function"),
        ("int operator()(int i) const noexcept { }", "{ }", "function"),
        ("auto f(int x = 3) -> decltype(x) { }", "{ }", "function"),
        ("void f() noexcept(noexcept(g())) { }", "{ }", "function"),
        ("A::A(int x) : y{x}, z(x), B<int>{x} { y = z; }", "{ y = z; }", "function"),
        ("PYBIND11_MODULE(a, m) { m.def(1); }", "{ m.def(1); }", "function"),
        ("DECLARE(a, b)", None, "call"),
    ],
)
def test_a_declaration(declaration: str, block: str | None, kind: str) -> None:
    for behind in ("", " int y; }", "\nvoid g() { }", "\n#define X\n"):
        assert read(declaration + behind) == (declaration, block, kind, None)


@pytest.mark.parametrize(
    ("text", "whole", "kind"),
    [
        ("A() const { }", "A() const { }", "function"),
        ("A() noexcept { }", "A() noexcept { }", "function"),
        ("slots: int f() const { }", "slots: int f() const { }", "function"),
        ("MACRO(x) int y;", "MACRO(x)", "call"),
        ("explicit A(int x) : y{x} { } int z;", "explicit A(int x) : y{x} { }", "function"),
    ],
)
def test_a_member(text: str, whole: str, kind: str) -> None:
    done = read(text, in_class=True)
    assert (done[0], done[2], done[3]) == (whole, kind, None)


@pytest.mark.parametrize(
    ("text", "whole", "reason"),
    [
        ("int x }", "int x", "a declaration without an end at line 1"),
        ("int x = 3", "int x = 3", "a declaration without an end at line 1"),
        ("int f( int y;", "int f(", "a bracket is never closed"),
        ("{ int x; } int y;", "{ int x; }", "a block outside of any function at line 1"),
        ("A<B int x;", "A<B int x;", "a template list is never closed"),
        ("int\n\n#pragma x\n x;", "int\n\n#pragma x\n x;", "a preprocessor line inside a declaration at line 3"),
        ("void f() {\n#if A\n}\n#endif\n}", "void f() {\n#if A\n}\n#endif\n}", "brackets that depend on an #if"),
        ("void f() {\n#if A\n}", "void f() {\n#if A\n}", "an #if that is not closed in its block"),
        ("void f() {\n#endif\n}", "void f() {\n#endif\n}", "brackets that depend on an #if"),
        (
            "void f() {\n#if A\n(\n#else\n(\n#endif\n) }",
            "void f() {\n#if A\n(\n#else\n(\n#endif\n) }",
            "depend on an #if",
        ),
    ],
)
def test_what_is_not_certain(text: str, whole: str, reason: str) -> None:
    read_text, _, _, refusal = read(text)
    assert (read_text, reason in (refusal or "")) == (whole, True), refusal


def test_conditionals_that_open_and_close_alike_are_certain() -> None:
    text = "void f() {\n#if A\n g();\n#elif B\n { h(); }\n#else\n#ifdef C\n i();\n#endif\n#endif\n}"
    assert read(text) == (text, text[9:], "function", None)


def test_the_first_refusal_stays() -> None:
    extents = Extents([], Lines(""))
    extents.refuse("one")
    extents.refuse("two")
    assert extents.refusal == "one"


def test_brackets_without_a_partner() -> None:
    tokens = read_tokens("f(a) ) g{ h")
    extents = Extents(tokens, Lines(""))
    assert extents.is_paired(0, 3)
    assert not extents.is_paired(0, 4)
    assert not extents.is_paired(4, 4)
    assert extents.is_paired(5, 5)
    assert not extents.is_paired(5, 6)
    assert extents.is_paired(7, 7)
