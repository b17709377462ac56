"""Branches that only look at a result, and what only looks like that."""

from __future__ import annotations

import ast

import pytest

from dice.kernels.checks.python_source import PythonSource
from dice.kernels.checks.result_checks import only_checks_results

CANDIDATE = """
import os
import torch
import torch.nn.functional as F
from torch.utils.cpp_extension import load_inline

ext = load_inline(name="ext", cpp_sources="", functions=["f"])
DEBUG = os.environ.get("DEBUG") == "1"


class Wrong(AssertionError):
    pass


def validate(a, y):
    if y.shape != a.shape:
        raise Wrong(f"shape {tuple(y.shape)}")
    if not bool(torch.all(y >= a)):
        raise Wrong("too small")


class ModelNew(torch.nn.Module):
    calls = 0

    def forward(self, x):
        y = ext.f(x)
        self.calls += 1
        if DEBUG and self.calls % 64 == 0:
            validate(x, y)
        return y
"""


def checks(code: str) -> bool:
    source = PythonSource(code)
    branches = [node for node in ast.walk(source.forward or source.tree) if isinstance(node, ast.If)]
    return only_checks_results(source, branches[0])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("validate(x, y)", "assert torch.isfinite(y).all(), 'not finite'"),
        ("validate(x, y)", "torch.testing.assert_close(y, F.relu(x), rtol=1e-4, atol=1e-5)"),
        (
            "validate(x, y)",
            "if not torch.equal(y, x):\n                raise Wrong('no')",
        ),
    ],
)
def test_nothing_is_left(old: str, new: str) -> None:
    assert checks(CANDIDATE.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("validate(x, y)", "assert torch.all(y.zero_() >= 0)"),
        ("validate(x, y)", "assert torch.all(torch.relu(x, out=y) >= 0)"),
        ("validate(x, y)", "assert torch.all(F.relu(y, True) >= 0)"),
        ("validate(x, y)", "assert torch.all(F.relu_(y) >= 0)"),
        ("validate(x, y)", "assert ext.f(y).sum() >= 0"),
        ("validate(x, y)", "assert (y := x) is not None"),
        ("validate(x, y)", "assert [self.note(y) for _ in x]"),
        ("validate(x, y)", "self.validate(x, y)"),
        ("validate(x, y)", "y = x"),
        ("validate(x, y)", "return x"),
        ("validate(x, y)", "validate(x, y.zero_())"),
        ("        return y", "        y = torch.empty_like(x)\n        return y"),
        ("        return y", "        return torch.empty_like(x)"),
        ("self.calls % 64 == 0", "self.late(y)"),
        ("y >= a)):", "y >= a)):\n        y[0] = 0"),
        ("    if y.shape", "    y.zero_()\n    if y.shape"),
        ("    if y.shape", "    global KEPT\n    KEPT = y\n    if y.shape"),
        ("(a, y):", "(a, y, kept=[]):"),
        ("def validate", "@note\ndef validate"),
        ("class ModelNew", "validate = note\n\n\nclass ModelNew"),
        ("(AssertionError):\n    pass", "(AssertionError):\n    def __init__(self, y):\n        y.zero_()"),
        ("(AssertionError)", "(StopIteration)"),
        ("(AssertionError)", "(torch.Tensor)"),
        (
            "class ModelNew",
            "class Own:\n    def __ge__(self, other):\n        return note(other)\n\n\nclass ModelNew",
        ),
        (
            "validate(x, y)",
            "try:\n                validate(x, y)\n            except Wrong:\n                y = x",
        ),
    ],
)
def test_something_is_left(old: str, new: str) -> None:
    changed = CANDIDATE.replace(old, new, 1)
    assert changed != CANDIDATE
    assert not checks(changed)
