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

class ModelNew:
    def forward(self, x, n):
        a = x.flatten()
        b = a[:3].tolist()
        shape = x.shape
        return {0}
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
        "odd(x)",
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
