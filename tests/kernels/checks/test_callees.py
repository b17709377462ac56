"""Which functions a call may run, and which of their parameters get its arguments."""

from __future__ import annotations

import ast

import pytest

from dice.kernels.checks.callees import callees_of, given, takers
from dice.kernels.checks.python_source import PythonSource

TEXT = """
import torch

def odd(t, n=0, *rest, key=None):
    return t

class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t):
        return t

class Inner(torch.nn.Module):
    def __init__(self, width):
        self.width = width
    def forward(self, t):
        return t

same = odd
again = same
first = lambda t: t[0]

class ModelNew:
    def __init__(self):
        self.inner = Inner(3)
    def helper(self, t):
        return t
    def forward(self, x):
        return {0}
"""


def call_of(expression: str) -> tuple[PythonSource, ast.Call]:
    source = PythonSource(TEXT.format(expression))
    assert source.forward is not None
    match source.forward.body[-1]:
        case ast.Return(value=ast.Call() as call):
            return source, call
    raise AssertionError(expression)


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("odd(x)", {"odd": ["t"]}),
        ("odd(1, x)", {"odd": ["n"]}),
        ("odd(1, 2, x)", {"odd": ["rest"]}),
        ("odd(1, key=x)", {"odd": ["key"]}),
        ("odd(*x)", {"odd": ["t", "n", "rest", "key"]}),
        ("again(x)", {"odd": ["t"]}),
        ("self.helper(x)", {"helper": ["t"]}),
        ("self.inner(x)", {"forward": ["t"]}),
        ("Inner(x)", {"__init__": ["width"]}),
        ("Inner(3)(x)", {"forward": ["t"]}),
        ("Square.apply(x)", {"forward": ["t"]}),
        ("first(x)", {"": ["t"]}),
        ("torch.relu(x)", {}),
    ],
)
def test_what_gets_the_argument(expression: str, found: dict[str, list[str]]) -> None:
    source, call = call_of(expression)
    functions = callees_of(source).functions(callees_of(source).of(call))
    place = next(place for argument, place in given(call) if "x" in ast.unparse(argument))
    assert {getattr(each, "name", ""): takers(each, place) for each in functions} == found
