"""Whether a source waits behind its work, in the order in which its functions run."""

from __future__ import annotations

import pytest

from dice.kernels.checks.stream_order import Mark, waits_at_last
from dice.kernels.source.cuda_source import CudaSource

LANE = "struct Lane { void put() { work(); } void join() { wait(); } };\n"
GUARD = "struct Guard { Guard() { work(); } ~Guard() { wait(); } };\n"


def at_last(text: str) -> bool:
    """`work()` and `wait()` are the marks."""
    source = CudaSource(text)
    marks: dict[int, Mark] = {}
    for index, token in enumerate(source.tokens):
        if token.text == "work":
            marks[index] = "work"
        elif token.text == "wait":
            marks[index] = "wait"
    return waits_at_last(source, marks)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("void f() { work(); wait(); }", True),
        ("void f() { wait(); work(); }", False),
        ("void f() { wait(); }", True),
        ("void f() { g(); }", True),
        ("void f() { work(); }", False),
        ("void a() { work(); }\nvoid b() { wait(); }\nvoid f() { a(); b(); }", True),
        ("void a() { work(); }\nvoid b() { wait(); }\nvoid f() { b(); a(); }", False),
        (LANE + "void f() { Lane l; l.put(); l.join(); }", True),
        (LANE + "void f() { Lane l; l.join(); l.put(); }", False),
        (GUARD + "void f() { Guard g; }", True),
        (GUARD + "void f() { static Guard g; work(); }", False),
        (GUARD + "void f() { Guard g; work(); }", True),
        ("void f() { auto a = [&] { work(); }; wait(); a(); }", False),
        ("void f() { auto a = [&] { wait(); }; work(); a(); }", True),
        ("void f() { for (int i = 0; i < 9; ++i) { wait(); work(); } }", False),
        ("void f() { for (int i = 0; i < 9; ++i) { if (i) wait(); work(); } }", True),
        ("void f() { for (int i = 0; i < 9; ++i) work(); wait(); }", True),
        ("void a() { b(); work(); }\nvoid b() { a(); wait(); }", True),  # nobody runs them
        ("void unused() { work(); }\nvoid f() { work(); wait(); }", True),
    ],
)
def test_the_last_one_counts(text: str, expected: bool) -> None:
    assert at_last(text) is expected
