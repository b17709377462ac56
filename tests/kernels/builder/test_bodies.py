"""Bodies of inline functions: which go, which stay, and that whatever goes is defined in the support library."""

from __future__ import annotations

import re
import subprocess

import pytest

from dice.kernels.builder.bodies import bodies, without_bodies
from dice.kernels.builder.builder import Builder


def names(text: str) -> list[str]:
    return [body.name for body in bodies(text)]


def all_taken(text: str) -> str:
    return without_bodies(text, names(text))


@pytest.mark.parametrize(
    ("text", "left", "name"),
    [
        ("inline int f(int a = 1) { return a; }", " int f(int a = 1) ;", "at::f"),
        ("inline int f() { if (1) { return '}'; } return 2; } int g();", " int f() ; int g();", "at::f"),
        ("struct A { int f() const { return 1; } int x; };", "struct A { int f() const ; int x; };", "at::A::f"),
        (
            "class A : public B { public: A() : x(1), y{2} { g(); } };",
            "class A : public B { public: A() ; };",
            "at::A::A",
        ),
        ("struct A { ~A() { g(); } };", "struct A { ~A() ; };", "at::A::~A"),
        ("struct A { explicit operator bool() const { return x; } };", "", "at::A::operatorbool"),
        ("struct A { int operator()(int i) { return i; } };", "", "at::A::operator"),
        ("struct A { A& operator=(const A& o) { return *this; } };", "", "at::A::operator="),
        ("struct A { static int f() { return 1; } };", "struct A { static int f() ; };", "at::A::f"),
        ("inline int A::f() const { return 1; } int g();", " int g();", "at::A::f"),
        ("inline ::std::vector<int> A::f() { return {}; }", "", "at::A::f"),
        ("inline ::std::vector<int> f() { return {}; }", " ::std::vector<int> f() ;", "at::f"),
        ("inline auto f() -> int { return 1; }", " auto f() -> int ;", "at::f"),
        ("int x = {1}; enum E { a, b }; int y{2}; inline int f() { return 1; }", "", "at::f"),
        ('struct __attribute__((visibility("default"))) A { int f() noexcept(true) { return 1; } };', "", "at::A::f"),
        ("template <class T = int> T g(T t) { return t; } inline int f() { return 1; }", "", "at::f"),
        ("template <class T> struct G { G() : a{1} { } }; inline int f() { return 1; }", "", "at::f"),
        ("inline int f(int (*g)() = [] { return 1; }) { return 1; }", "", "at::f"),
        ('struct A { [[deprecated("why")]] int f() const { return 1; } };', "", "at::A::f"),
        (
            "template <> struct A<int> { int f() { return 1; } };",
            "template <> struct A<int> { int f() ; };",
            "at::A<int>::f",
        ),
        (
            'inline constexpr std::string operator""s(const char* c) { return {c}; }',
            '  std::string operator""s(const char* c) ;',
            'at::operator""s',
        ),
        (
            "struct A { std::unique_ptr<B> b = nullptr; int* c = nullptr; };",
            "struct A { std::unique_ptr<B> b ; int* c = nullptr; };",
            "(initialiser)",
        ),
        ("namespace symint { int f(); } int g();", "\n int g();".replace("\n", ""), "at::symint"),
        ('extern "C++" { inline int f() { return 1; } }', "", "at::f"),
        ('inline const char* f() { return R"x(})x"; } int g();', " const char* f() ; int g();", "at::f"),
    ],
)
def test_a_body_goes(text: str, left: str, name: str) -> None:
    whole = f"namespace at {{ {text} }}"
    assert names(whole) == [name]
    if left:
        assert all_taken(whole) == f"namespace at {{ {left} }}"


@pytest.mark.parametrize(
    "text",
    [
        "namespace at { inline constexpr int f() { return 1; } }",
        "namespace at { inline auto f() { return 1; } }",
        "namespace at { inline decltype(auto) f() { return 1; } }",
        "namespace at { static inline int f() { return 1; } }",
        "namespace at { inline __attribute__((always_inline)) int f() { return 1; } }",
        "namespace at { template <class T> int f() { return 1; } }",
        "namespace at { template <> inline int f<int>() { return 1; } }",
        "namespace at { template <> inline int A<int>::f() { return 1; } }",
        "namespace at { template <class T> struct A { int f() { return 1; } }; }",
        "namespace at { struct A { friend int f() { return 1; } A() = default; }; }",
        "namespace at { namespace { inline int f() { return 1; } } }",
        'namespace at { namespace b __attribute__((visibility("hidden"))) { inline int f() { return 1; } } }',
        "namespace at { struct { int f() { return 1; } } a; }",
        "namespace at { inline int f() try { return 1; } catch (...) { return 2; } }",
        "namespace other { inline int f() { return 1; } }",
        "inline int f() { return 1; }",
        '# 1 "/torch/include/c10/util/Half-inl.h"\nnamespace c10 { inline int f() { return 1; } }',
    ],
)
def test_a_body_that_others_must_see_stays(text: str) -> None:
    assert names(text) == []
    assert all_taken(text) == text


def test_lines_and_macros_keep_their_places() -> None:
    text = "namespace at {\ninline int f() {\n  int a;\n#define M 1\n  return M;\n}\nint g();\n}\n"
    assert all_taken(text) == "namespace at {\n int f() ;\n\n#define M 1\n\n\nint g();\n}\n"


def test_what_the_support_library_lacks_keeps_its_body() -> None:
    text = "namespace at { inline int f() { return 1; } inline int g() { return 2; } }"
    assert without_bodies(text, {"at::g"}) == "namespace at { inline int f() { return 1; }  int g() ; }"


def preprocessed(cpu_builder: Builder) -> str:
    precompiled = cpu_builder.precompiled
    folder = precompiled.slim_folder()
    text = "#include <torch/types.h>\n#include <torch/extension.h>\n#include <c10/util/Logging.h>\n"
    command = ["c++", "-isystem", str(folder), *precompiled.toolchain.cxx_flags("cpp"), "-E", "-dD", "-x", "c++", "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def test_nearly_all_that_may_go_is_in_the_support_library(cpu_builder: Builder) -> None:
    gone = set(names(preprocessed(cpu_builder)))
    assert {"at::Tensor::abs", "at::TensorBase::size", "std::__cxx11::to_string", "std::atomic<bool>::load"} <= gone
    library = cpu_builder.precompiled.support_library()
    symbols = subprocess.run(
        ["nm", "-DC", "--defined-only", str(library)], capture_output=True, text=True, check=True
    ).stdout
    # `at::Tensor::abs[abi:cxx11](...) const`: the name is what stands before the parameters
    defined = {re.sub(r"\[abi:\w+\]|\s|\(.*", "", line[19:]) for line in symbols.splitlines()}
    assert set((library.parent / "functions.txt").read_text().splitlines()) == defined
    assert len(gone & defined) > 5000
    assert len(gone - defined) < 100  # nm spells some names otherwise


def test_the_support_library_shows_nothing_of_the_standard_library_but_what_units_lack(cpu_builder: Builder) -> None:
    nm = ["nm", "-Dp", "--defined-only", str(cpu_builder.precompiled.support_library())]
    listed = [subprocess.run([*nm, *more], capture_output=True, text=True, check=True).stdout for more in ((), ("-C",))]
    both = zip(*(text.splitlines() for text in listed), strict=True)
    library = re.compile(r"_ZN?K?St|_ZNK?9__gnu_cxx")
    shown = {re.sub(r"\[abi:\w+\]|\s|\(.*", "", name[19:]) for symbol, name in both if library.match(symbol[19:])}
    assert "std::__cxx11::to_string" in shown
    assert sorted(shown - set(names(preprocessed(cpu_builder)))) == []
