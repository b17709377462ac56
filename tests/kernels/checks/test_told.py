"""What calls with the same inputs tell alike: noting it in a set counts no calls."""

from __future__ import annotations

import ast

import pytest

from dice.kernels.checks.between_calls import between_calls
from dice.kernels.checks.python_source import PythonSource
from dice.kernels.checks.told import is_called_by_others, is_told

CANDIDATE = """
import torch
from torch.utils.cpp_extension import load_inline

ext = load_inline(name="ext", cpp_sources="", functions=["f"])


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = set()
        self.last = None

    def note(self, given):
        self.seen.add(given.device)

    def forward(self, x):
        x = x.contiguous()
        key = x.shape
        self.seen.add(key)
        self.note(x)
        return ext.f(x)
"""


def is_counted(code: str) -> bool:
    return "seen" in {name for _, name in between_calls(PythonSource(code)).stepped}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("key = x.shape", "key = x.shape[0], str(x.dtype), x.device.index, 1"),
        ("key = x.shape", "key = tuple(x.shape)"),
        ("key = x.shape", "key = x.size(0), x.dim()"),
        ("x = x.contiguous()", "x = x.view(-1, 64).float()"),
        ("super().__init__()", "super(ModelNew, self).__init__()"),
    ],
)
def test_what_is_told_again(old: str, new: str) -> None:
    assert not is_counted(CANDIDATE.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("key = x.shape", "key = x[: len(self.seen)].shape"),
        ("key = x.shape", "key = (x.shape, len(self.seen))"),
        ("key = x.shape", "key = x.shape[len(self.seen) :]"),
        ("key = x.shape", "key = x.shape\n        for _ in self.seen:\n            key = (key, 1)"),
        ("x = x.contiguous()", "x = x[: len(self.seen)]"),
        ("x = x.contiguous()", "x = x.expand(len(self.seen), 64)"),
        ("x = x.contiguous()", "x.unsqueeze_(0)"),
        ("x = x.contiguous()", "x.data = x[: len(self.seen)]"),
        ("x = x.contiguous()", "for x in self.seen:\n            pass"),
        ("forward(self, x)", "forward(self, x=None)"),
        ("self.note(x)", "self.note(x[: len(self.seen)])"),
        ("self.note(x)", "self(x[: len(self.seen)])"),
        ("self.note(x)", "me = self\n        me(x[: len(self.seen)])"),
        ("self.note(x)", "self.seen.clear()"),
        ("self.note(x)", "self.seen = set()"),
        ("self.note(x)", "self.seen, self.last = self.last, self.seen"),
        ("class ModelNew", "class set(list):\n    add = list.append\n\n\nclass ModelNew"),
        ("self.seen = set()", "self.seen = Seen()"),
    ],
)
def test_what_may_be_new_in_each_call(old: str, new: str) -> None:
    changed = CANDIDATE.replace(old, new, 1)
    assert changed != CANDIDATE
    assert is_counted(changed)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("x.shape", True),
        ("(x.dtype, 3)", True),
        ("x.size(0)", True),
        ("x.sum()", False),
        ("self.last", False),
        ("(x.shape, self.last)", False),
    ],
)
def test_what_an_expression_is_made_of(value: str, told: bool) -> None:
    source = PythonSource(CANDIDATE.replace("key = x.shape", f"key = {value}", 1))
    (key,) = [node.value for node in source.in_forward if isinstance(node, ast.Assign) and "key" in ast.unparse(node)]
    assert is_told(source, key) == told


def test_a_model_that_is_called_by_its_own_code_is_told_anything() -> None:
    assert is_called_by_others(PythonSource(CANDIDATE))
    assert not is_called_by_others(PythonSource(CANDIDATE.replace("self.note(x)", "self(x)", 1)))
