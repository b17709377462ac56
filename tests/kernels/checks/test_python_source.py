"""Which code of a candidate runs, and what its functions are given."""

from __future__ import annotations

import pytest

from dice.kernels.checks.python_names import identifiers
from dice.kernels.checks.python_source import PythonSource

CANDIDATE = """
import torch.nn as nn

{helper}

class ModelNew(nn.Module{keyword}):
    def forward(self, x):
        return {forward}
"""


@pytest.mark.parametrize(
    ("helper", "keyword"),
    [
        ("def f(a=ask()): pass", ""),
        ("def f(*, a=ask()): pass", ""),
        ("def f(a: ask()): pass", ""),
        ("async def f() -> ask(): pass", ""),
        ("@ask\ndef f(): pass", ""),
        ("class A(ask()): pass", ""),
        ("class A(metaclass=ask()): pass", ""),
        ("", ", metaclass=ask()"),
        ("if here:\n    def f(*, a=ask()): pass", ""),
    ],
)
def test_what_a_definition_evaluates_is_alive_when_nobody_mentions_it(helper: str, keyword: str) -> None:
    source = PythonSource(CANDIDATE.format(helper=helper, keyword=keyword, forward="x"))
    assert "ask" in identifiers(source.live)


@pytest.mark.parametrize(
    "helper",
    ["def f(a, /, b, *c, d, **e): pass", "async def f(a, /, b, *c, d, **e): pass", "f = lambda a, /, b, *c, d, **e: 0"],
)
def test_arguments_of_every_kind(helper: str) -> None:
    source = PythonSource(CANDIDATE.format(helper=helper, keyword="", forward="f(x)"))
    assert source.arguments == {"x", "a", "b", "c", "d", "e"}
