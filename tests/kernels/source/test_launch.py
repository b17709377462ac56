"""Launches taken apart: their parts, their places, and what only looks like one."""

from __future__ import annotations

from itertools import pairwise

import pytest
from cuda_soup import ANY_TEXT, REDUCTION, SOURCES, TILES
from hypothesis import given, settings

from dice.kernels.source.launch import BrokenLaunch, Launch, read_launches
from dice.kernels.source.lexer import Lines, Refuted, SplitRefused, read_tokens


def read(text: str) -> tuple[list[Launch], list[BrokenLaunch]]:
    return read_launches(text, read_tokens(text), Lines(text))


def test_the_launches_of_sources() -> None:
    (launch,), broken = read(REDUCTION)
    assert not broken
    assert launch.callee == "row_sums<scalar_t>"
    assert launch.parts == ("dim3(x.size(0), 1)", "256", "0", "at::cuda::getCurrentCUDAStream()")
    assert launch.arguments.split(",")[0] == "x.data_ptr<scalar_t>()"
    assert REDUCTION[launch.end :].startswith(";\n  });")
    (launch,), broken = read(TILES)
    assert (launch.callee, launch.arguments, broken) == ("multiply", "Tile{}, out", [])


@pytest.mark.parametrize(
    ("text", "callee", "configuration", "arguments"),
    [
        ("k<<<1, 2>>>()", "k", "1, 2", ""),
        ("x = k<<<1>>>(a)", "k", "1", "a"),
        ("return k<<<1, 2>>>(a)", "k", "1, 2", "a"),
        ("if (c) k<<<1, 2>>>(a)", "k", "1, 2", "a"),
        ("else k<int, (2 > 1)><<<1, 2>>>(a)", "k<int, (2 > 1)>", "1, 2", "a"),
        ("else if (c) (k)<<<1, 2>>>(a)", "(k)", "1, 2", "a"),
        ("; ::ns::k<T><<<1, 2>>>(a)", "::ns::k<T>", "1, 2", "a"),
        ("return ::k<<<1, 2>>>(a)", "::k", "1, 2", "a"),
        ("A<int>::k<<<1, 2>>>(a)", "A<int>::k", "1, 2", "a"),
        ("this->table[f(2)].go<<<1, 2>>>(a)", "this->table[f(2)].go", "1, 2", "a"),
        ("pick<T>(n)<<<1, 2>>>(a)", "pick<T>(n)", "1, 2", "a"),
        ("pick[n](m)[0]<<<1, 2>>>(a)", "pick[n](m)[0]", "1, 2", "a"),
        ("(c ? k : l)<<<1, 2>>>(a)", "(c ? k : l)", "1, 2", "a"),
        ("while (c) (*f)<<<1, 2>>>(a)", "(*f)", "1, 2", "a"),
        ("k<<<(a > b), f<g<T>>(c), d[{1, 2}]>>>(e, {f})", "k", "(a > b), f<g<T>>(c), d[{1, 2}]", "e, {f}"),
        ("k<<<a, sizeof(A<B<T>>)>>>(c)", "k", "a, sizeof(A<B<T>>)", "c"),
        ("k<<<dim3{1, 2}, 3>>>(c)", "k", "dim3{1, 2}, 3", "c"),
        ("k<<<a, A<B>>>>(c)", "k", "a, A<B>", "c"),
        ("k <<< /* g */ 1, 2 >>> ( a )", "k", "1, 2", "a"),
        ("k<<<1 << 2, 8 >> 1>>>(a)", "k", "1 << 2, 8 >> 1", "a"),
        ("ns::k<float, 4><<<dim3(a, b), c>>>(x, f<int>(y))", "ns::k<float, 4>", "dim3(a, b), c", "x, f<int>(y)"),
        ("(*table[i])<<<g, b, n * sizeof(T), s>>>(x)", "(*table[i])", "g, b, n * sizeof(T), s", "x"),
        ("if (n) k<<<g, std::max<int>(a, b)>>>(x)", "k", "g, std::max<int>(a, b)", "x"),
        ("return (k)<<<1, 1>>>(x)", "(k)", "1, 1", "x"),
        ("self->table[2].k<<<1, 1>>>(x)", "self->table[2].k", "1, 1", "x"),
        ("else ::k<<<(a > b), 1>>>(x)", "::k", "(a > b), 1", "x"),
        ("#define RUN(f, ...) f##_k<<<1, 2>>>(__VA_ARGS__)", "f##_k", "1, 2", "__VA_ARGS__"),
    ],
)
def test_a_launch(text: str, callee: str, configuration: str, arguments: str) -> None:
    for before in ("", "int y;\n"):
        (launch,), broken = read(before + text)
        assert (launch.callee, launch.configuration, launch.arguments, broken) == (callee, configuration, arguments, [])


def test_the_places_of_a_launch() -> None:
    text = "f(); ns::k<T> <<<1, b>>> (x, y);"
    (launch,) = read(text)[0]
    places = (launch.start, launch.opening, launch.closing, launch.end)
    assert [text[a:b] for a, b in pairwise(places)] == ["ns::k<T> ", "<<<1, b>>>", " (x, y)"]
    assert launch.parts == ("1", "b")


@pytest.mark.parametrize(
    ("text", "reason", "line"),
    [
        ("k<<<>>>();", "a launch with 0 configuration values", 1),
        ("\nk<<<1, >>>();", "a launch with 1 configuration values", 2),
        ("k<<<1, 2, 3, 4, 5>>>();", "a launch with 5 configuration values", 1),
        ("k<<<1, 2, 3, 4, 5, SHAPE>>>();", "a launch with 6 configuration values", None),
        ("\n\nk<<<1, 2>> >();", "expected a >>>", 3),
        ("k<<<1, 2> >>();", "expected a >>>", 1),
        ("k<<<1, 2;", "expected a >>>", 1),
        ("k<<<1, 2)>>>();", "expected a >>>", 1),
        ("k<<<1, 2>>>;", "expected a >>>", 1),
        ("k<<<(1, 2>>>();", "a bracket is never closed", None),
        ("k<<<1, 2>>>(x;", "a bracket is never closed", None),
        ("= <<<1, 2>>>();", "a launch without a kernel name at line 1", None),
        ("<<<1, 2>>>();", "a launch without a kernel name at line 1", None),
        (")<<<1, 2>>>();", "brackets do not match before a launch", None),
        ("a > <<<1, 2>>>();", "brackets do not match before a launch", None),
    ],
)
def test_what_only_looks_like_a_launch(text: str, reason: str, line: int | None) -> None:
    launches, (broken,) = read(text)
    assert launches == []
    assert text[broken.start :].startswith("<<<")
    assert broken.error.reason == reason
    assert (broken.error.line if isinstance(broken.error, Refuted) else None) == line


def test_all_are_in_order_of_their_places() -> None:
    text = (
        "a<<<1, 2>>>();\n#define B b<<<1, 2>>>()\nc<<<>>>();\n"
        "d<<<1, 2>>>(e<<<1, 2>>>());\n#define F <<<\nf(g<<<1, 1>>>())<<<1, 2>>>();"
    )
    launches, broken = read(text)
    assert [launch.callee for launch in launches] == ["a", "b", "d", "e", "f(g<<<1, 1>>>())", "g"]
    assert [text[it.start - 1] for it in broken] == ["c", " "]
    launches, (broken,) = read("a<<<1, b<<<2, 3>>>(c)")
    assert (launches[0].callee, broken.error.reason) == ("b", "expected a >>>")


@pytest.mark.parametrize(
    ("opening", "closing"), [("k<<<1, 2>>>(", ")"), ("k<<<(", "), 1>>>()"), ("f(", ")<<<1, 2>>>()")]
)
def test_launches_nested_deep_are_bounded_in_space(opening: str, closing: str) -> None:
    text = opening * 300 + closing * 300
    launches, broken = read(text)
    assert 0 < len(launches) < 300 == len(launches) + len(broken)
    assert {it.error.reason for it in broken} == {"launches nested too deep"}
    assert sum(it.end - it.start for it in launches) < 20 * len(text)


def check(text: str) -> None:
    """Every part of every launch is the text of its place."""
    launches, broken = read(text)
    for it in launches:
        assert text[it.opening : it.opening + 3] == "<<<"
        assert text[it.closing - 3 : it.closing] == ">>>"
        assert text[it.start : it.opening].startswith(it.callee)
        assert it.configuration in text[it.opening + 3 : it.closing - 3]
        assert it.arguments in text[it.closing : it.end]
        assert text[it.end - 1] == ")"
        assert 1 <= len(it.parts) <= 4
        assert all(part and part in it.configuration for part in it.parts)
    for it in broken:
        assert text[it.start : it.start + 3] == "<<<"
        assert isinstance(it.error, SplitRefused)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(ANY_TEXT)
def test_every_text_is_read(text: str) -> None:
    check(text)


@pytest.mark.parametrize("source", SOURCES)
def test_every_beginning_of_a_source_is_read(source: str) -> None:
    for end in range(len(source)):
        check(source[:end])
