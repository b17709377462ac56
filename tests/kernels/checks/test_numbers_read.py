"""Which expressions read numbers of a tensor, however they are spelled, and which ask for less."""

from __future__ import annotations

import ast

import pytest

from dice.kernels.checks.numbers_read import NumbersRead, tensors_given
from dice.kernels.checks.python_source import PythonSource

TEXT = """
import numpy as np
import torch
from torch.utils.cpp_extension import load_inline

ext = load_inline(name="ext", cpp_sources="", functions=["f"])

def odd(t):
    return t[0] > 3

def wide(t):
    return t.shape[0] > 3

def later(n=0, *, t):
    for value in t.tolist():
        if value > 3:
            return True
    return False

class Holder:
    def __init__(self, kept):
        self.kept = kept
    def is_odd(self):
        return odd(self.kept)

class Inner:
    def forward(self, t):
        return t.mean() > 0

class ModelNew:
    def forward(self, x, n):
        a = x.flatten()
        b = a[:3].tolist()
        shape = x.shape
        self.inner = Inner()
        self.seen = x
        flag = False
        if x[1] < 0:
            flag = True
        box = {{}}
        box["x"] = x
        first = torch.zeros(1)
        first.copy_(x[0])
        return {0}
    @property
    def odd_now(self):
        return odd(self.seen)
"""


def reads(expression: str) -> bool:
    source = PythonSource(TEXT.format(expression))
    value = next(node.value for node in source.in_forward if isinstance(node, ast.Return))
    assert value is not None
    return NumbersRead(source, {"x"}).by(value)


@pytest.mark.parametrize(
    "expression",
    [
        "float(x[0, 0]) > 3",
        "x.numpy()[0, 0]",
        "repr(x)",
        "torch.linalg.norm(x) > 1",
        "b[0] == 1",
        "np.any(a.numpy() > 0)",
        "[1 for value in b if value > 2]",
        "n > 1 and x.max() > 1",
        "odd(x)",
        "later(t=x)",
        "Holder(x).is_odd()",
        "self.inner(x)",
        "self.odd_now",
        "flag",
        "box['x'][0] > 3",
        "first > 3",
        "len([1]) > 2 or bool((x == 0).any())",
    ],
)
def test_numbers_are_read(expression: str) -> None:
    assert reads(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "n > 1",
        "x.shape[0] > 8",
        "shape[0] % 4 == 0",
        "len(x) > 2",
        "x.dtype == torch.float16 and x.is_contiguous()",
        "x is not None",
        "isinstance(x, torch.Tensor)",
        "x.data_ptr() % 16 == 0",
        "odd(n)",
        "wide(x)",
        "ext.f(x)",
        "(n > 2 and torch.relu(x)) or ext.f(x)",
    ],
)
def test_less_is_asked(expression: str) -> None:
    assert not reads(expression)


def test_the_problem_says_which_parameters_are_tensors() -> None:
    reference = PythonSource(
        "import torch\nclass Model:\n    def forward(self, x, n, s): return x\n"
        "def get_inputs():\n    return [torch.rand(3), 5, -1.0]\n",
        "Model",
    )
    source = PythonSource(TEXT.format("x").replace("x, n)", "x, n, s)"))
    assert tensors_given(source, reference) == {"x"}
    assert tensors_given(source, None) == set()
