"""Caches of the last answer, however what is remembered is named."""

from __future__ import annotations

import ast

import pytest

from dice.kernels.checks.answers import answer_findings
from dice.kernels.checks.python_source import PythonSource
from dice.kernels.checks.remembered import Remembered

FILE = """
import copy, operator, weakref
import torch
import torch.nn as nn
KEPT = []
class Note:
    key = answer = None
    def holds(self, given):
        return self.key is given
class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.memo, self.note, self.n, self.linear = None, Note(), n, nn.Linear(n, n)
        self.room = torch.empty(n)
    def last(self):
        return self.memo
    def again(self):
        return self.again()
    def forward(self, x, seen=[None, None]):
{body}
        return ext.relu(x)
"""


def found(body: str) -> bool:
    text = FILE.format(body="\n".join(f"        {line}" for line in body.splitlines()))
    return "result_cache" in {each.name for each in answer_findings(PythonSource(text), None)}


@pytest.mark.parametrize(
    "body",
    [
        "memo = self.memo\nif memo is not None and memo[0] is x: return ext.copy(memo[1])\nself.memo = (x, x)",
        "memo = self.memo\nif memo[1] == x._version: return ext.copy(memo[2])\nself.memo = (x, x._version, x)",
        "old, version = self.memo\nif version == x._version: return old\nself.memo = x, x._version",
        "if (memo := self.memo) and x is memo[0]: return memo[1]",
        "if self.last()[0] is x: return self.last()[1]",
        "if operator.is_(self.memo, x): return ext.copy(KEPT[0])",
        "if id(self.memo) == id(x): return ext.copy(KEPT[0])\nself.memo = x",
        "if self.memo.data_ptr() == x.data_ptr(): return ext.copy(KEPT[0])\nself.memo = x.detach()",
        "if self.memo['key'].data_ptr() == x.data_ptr(): return ext.copy(KEPT[0])\nself.memo = dict(key=x)",
        "if self.memo() is x: return ext.copy(KEPT[0])\nself.memo = weakref.ref(x)",
        "for old, answer in KEPT:\n    if old is x: return ext.copy(answer)",
        "if seen[0] is x: return seen[1]\nseen[:] = x, ext.relu(x)",
        "if self.note.holds(x): return self.note.answer\nself.note.key = x",
        "y = x\nif self.note.key is y: return self.note.answer",
        "if self.memo < x._version: self.memo = x._version",
        "if torch.equal(seen[0], x): return seen[1]",
    ],
)
def test_what_is_remembered_is_asked_for_the_input(body: str) -> None:
    assert found(body)


@pytest.mark.parametrize(
    "body",
    [
        "memo = self.memo\nif memo is None: self.memo = memo = torch.empty_like(x)\next.relu_into(x, memo)",
        "out = self.room\nif out.data_ptr() == x.data_ptr(): out = out.clone()",
        "if self.memo is None or self.memo.shape != x.shape: self.memo = torch.empty_like(x)",
        "self.memo = torch.empty_like(x)\nif self.memo.data_ptr() == x.data_ptr(): x = x.clone()",
        "if x.max().item() >= self.linear.in_features: raise IndexError",
        "if x.min().item() < self.n: raise ValueError",
        "if x.max().item() == torch.inf: raise ValueError",
        "size = self.memo\nif size != x.numel(): self.memo = x.numel()",
        "out = ext.relu(x)\nif out is x: return out.clone()",
        "if x.dtype is torch.float32 and x.device == self.room.device: return ext.relu(x)",
    ],
)
def test_what_outlives_a_call_may_be_asked_other_things(body: str) -> None:
    assert not found(body)


def of(expression: str, body: str = "pass") -> tuple[Remembered, ast.expr]:
    """What forward remembers, where all names are made from its input but `other`; and an expression of it."""
    text = FILE.format(body=f"        {body}\n        sought = ({expression},)")
    source = PythonSource(text)
    names = {each for each in source.in_forward if isinstance(each, ast.Name) and each.id != "other"}
    (sought,) = [each for each in source.values("sought") if isinstance(each, ast.Tuple)]
    return Remembered(source, names), sought.elts[0]


@pytest.mark.parametrize(
    ("expression", "kept"),
    [
        ("self.memo[0]", True),
        ("self.never", True),
        ("getattr(self, 'never')", True),
        ("KEPT", True),
        ("self.last()", True),
        ("self.last()[0]", True),
        ("*self.last()", True),
        ("torch.inf", False),
        ("self.linear.in_features", False),
        ("Note", False),
        ("x", False),
        ("self.again()", False),
    ],
)
def test_what_the_file_itself_keeps(expression: str, kept: bool) -> None:
    remembered, node = of(expression)
    assert remembered.is_kept(node) is kept


@pytest.mark.parametrize(
    ("expression", "is_input"),
    [
        ("x", True),
        ("y", True),
        ("z", False),
        ("u", False),
        ("other", False),
        ("(1, x)", True),
        ("(1, z)", False),
        ("[1, x]", True),
        ("{'a': 1, 'b': x}", True),
        ("x.detach()", True),
        ("z.detach()", False),
        ("x.sum()", False),
        ("weakref.ref(x, print)", True),
        ("weakref.ref(z)", False),
        ("weakref.proxy(x)", True),
        ("copy.copy(x)", True),
        ("copy.deepcopy(x)", True),
        ("tuple([x])", True),
        ("list((x,))", True),
        ("dict({'a': x})", True),
        ("dict(a=x)", True),
        ("dict(a=z)", False),
        ("torch.add(x, 1)", False),
    ],
)
def test_an_input_in_another_form_is_one_and_what_is_computed_is_not(expression: str, is_input: bool) -> None:
    remembered, node = of(expression, "z = x + 1; y = z; y = x; u = v; v = u; other = x")
    assert remembered.is_input(node) is is_input
