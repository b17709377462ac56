"""Answers that are not computed: caches, inputs that are not read, outputs that nobody writes."""

from __future__ import annotations

import pytest

from dice.kernels.checks.answers import answer_findings
from dice.kernels.checks.python_source import PythonSource

FILE = """
import collections, functools, operator, weakref
import torch
import torch.nn as nn
@functools.lru_cache(maxsize=8)
def made(a, b=0):
    return ext.make(a)
@functools.wraps(made)
def plain(a, b=0):
    return ext.make(a)
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen, self.memo, self.linear = {{}}, None, nn.Linear(4, 4)
        self.weak, self.plain = weakref.WeakKeyDictionary(), dict()
        self.ordered, self.default = collections.OrderedDict(), collections.defaultdict(list)
        self.table = torch.ones(4)
    def forward(self, x, n):
{body}
        return ext.relu(x, n)
"""
REFERENCE = PythonSource(
    """
import torch
class Model(torch.nn.Module):
    def forward(self, x, n):
        return torch.relu(x) * n
def get_inputs():
    return [torch.rand(4, 4), torch.rand(4)]
""",
    "Model",
)


def found(body: str) -> set[str]:
    text = FILE.format(body="\n".join(f"        {line}" for line in body.splitlines()))
    return {each.name for each in answer_findings(PythonSource(text), REFERENCE)}


@pytest.mark.parametrize(
    "body",
    [
        "self.seen[id(x)] = 1",
        "self.seen[hash(x)] = 1",
        "self.seen[str(x)] = 1",
        "self.seen[repr(x)] = 1",
        "self.seen[x.data_ptr()] = 1",
        "self.seen[x.untyped_storage()] = 1",
        "self.seen[x.storage()] = 1",
        "self.seen[x._cdata] = 1",
        "self.seen[x._version] = 1",
        "self.seen[x.sum().item()] = 1",
        "self.seen[tuple(x.tolist())] = 1",
        "self.seen[x.numpy().tobytes()] = 1",
        "self.seen[x.shape, x.data_ptr()] = 1",
        "key = (x.shape, id(x))\nself.seen[key] = 1",
        "self.seen.get(id(x))",
        "self.seen.setdefault(id(x), 1)",
        "self.seen.pop(id(x))",
        "self.seen.__contains__(id(x))",
        "self.seen.__getitem__(id(x))",
        "getattr(self, str(id(x)))",
        "hasattr(self, str(id(x)))",
        "setattr(self, str(id(x)), 1)",
        "self.weak[x] = 1",
        "self.seen[x] = 1",
        "self.plain[x] = 1",
        "self.ordered[x] = 1",
        "self.default[x] = 1",
        "torch.equal(self.memo, x)",
        "torch.allclose(x, self.memo)",
        "if self.memo == x._version: return ext.copy(self.table)",
        "if self.memo._cdata == x._cdata: return ext.copy(self.table)\nself.memo = x",
        "if self.memo is x: return ext.copy(self.table)",
        "if x is not self.memo: self.memo = x",
        "if operator.is_(self.memo, x): return ext.copy(self.table)",
        "if operator.is_not(self.memo, x): self.memo = x",
        "if operator.eq(self.memo, x._version): return ext.copy(self.table)",
        "if operator.ne(self.memo, x._version): self.memo = 1",
        "if self.memo < x._version: self.memo = x._version",
        "if self.memo <= x._version: self.memo = x._version",
        "if x._version > self.memo: self.memo = x._version",
        "if x._version >= self.memo: self.memo = x._version",
        "made(x)",
        "made(1, x)",
    ],
)
def test_what_is_kept_is_asked_for_the_input(body: str) -> None:
    assert "result_cache" in found(body)


@pytest.mark.parametrize(
    "body",
    [
        "self.seen[id(self.linear)] = 1",
        "self.seen[x.shape] = 1",
        "self.seen[x.dtype, x.device] = 1",
        "self.seen[x.shape.numel()] = 1",
        "self.seen[x.itemsize] = 1",
        "self.seen[str(x.shape)] = 1",
        "self.seen[hash(x.device)] = 1",
        "y = x + 1\nself.seen[str(y.shape)] = 1",
        "self.seen[str(self)] = 1",
        "self.seen[make(3)] = 1",
        "self.seen[len(x)] = 1",
        "self.seen[id()] = 1",
        "seen = {}\nseen[id(x)] = 1",
        "seen = {}\nseen.get(id(x))",
        "self.seen.get(1, id(x))",
        "self.seen.get()",
        "self.seen.copy(id(x))",
        "getattr(self, 'a', id(x))",
        "print(self, id(x))",
        "self.table[x] = 1",
        "y = x + 1\nself.seen[y] = 1",
        "torch.equal(x, n)",
        "torch.add(self.memo, x)",
        "if self.memo > x._version: pass",
        "if self.memo == x: pass",
        "if operator.eq(self.memo, x): pass",
        "if operator.lt(self.memo, x._version): pass",
        "if x is n: pass",
        "made(x.shape)",
        "plain(x)",
        "p = ext.launch(x.data_ptr(), 3)\nself.seen[p] = 1",
    ],
)
def test_what_is_kept_may_be_asked_for_other_things(body: str) -> None:
    assert "result_cache" not in found(body)


@pytest.mark.parametrize("decorator", ["functools.cache", "functools.lru_cache", "functools.lru_cache(maxsize=None)"])
def test_a_forward_that_remembers(decorator: str) -> None:
    text = FILE.format(body="        pass")
    own = text.replace("    def forward", f"    @{decorator}\n    def forward")
    assert "result_cache" in {each.name for each in answer_findings(PythonSource(own), None)}
    other = text.replace("    def forward", "    @torch.no_grad()\n    def forward")
    assert "result_cache" not in {each.name for each in answer_findings(PythonSource(other), None)}


@pytest.mark.parametrize(
    ("body", "read"),
    [
        ("return ext.relu(x)", False),
        ("return ext.relu(x, n.shape)", False),
        ("return ext.relu(x, torch.empty_like(n))", False),
        ("return ext.relu(x, torch.zeros_like(n))", False),
        ("return ext.relu(x, torch.ones_like(n))", False),
        ("return ext.relu(x, torch.full_like(n, 2))", False),
        ("return ext.relu(x, torch.rand_like(n))", False),
        ("return ext.relu(x, torch.randn_like(n))", False),
        ("return ext.relu(x, len(n))", False),
        ("n = 3\nreturn ext.relu(x)", False),
        ("return ext.relu(x, torch.full_like(x, n))", True),
        ("return ext.relu(x, torch.neg(n))", True),
        ("return ext.relu(x, n.sum())", True),
        ("return ext.relu(x, n=n)", True),
    ],
)
def test_an_input_whose_values_nobody_reads(body: str, read: bool) -> None:
    text = FILE.format(body="\n".join(f"        {line}" for line in body.splitlines()))
    text = text.replace("        return ext.relu(x, n)\n", "")
    assert ("constant_output" not in {each.name for each in answer_findings(PythonSource(text), REFERENCE)}) is read
    assert "constant_output" not in {each.name for each in answer_findings(PythonSource(text), None)}


@pytest.mark.parametrize(
    ("body", "blamed"),
    [
        ("return torch.empty(4)", True),
        ("return torch.empty_like(x)", True),
        ("return torch.empty_strided((4,), (1,))", True),
        ("out = torch.empty(4)\nreturn out", True),
        ("out = torch.empty(4)\next.fill(out)\nreturn out", False),
        ("out = torch.zeros(4)\nreturn out", False),
        ("return torch.zeros(4)", False),
        ("return", False),
        ("out = torch.empty(4)\nif n is None: out = ext.relu(x)\nreturn out", False),
        ("if x.numel() == 0: return torch.empty(0)", False),
        ("if x.numel() == 1: return torch.empty(0)", True),
        ("if x.numel() != 0: return torch.empty(0)", True),
        ("if x.dim() == 0: return torch.empty(0)", True),
        ("if x.numel() == n: return torch.empty(0)", True),
        ("if x.numel() == 0 == n: return torch.empty(0)", True),
        ("if x.numel() == 0 or n: return torch.empty(0)", True),
        ("if numel(x) == 0: return torch.empty(0)", True),
        ("if x.size == 0: return torch.empty(0)", True),
        ("if x.numel() == 0: pass\nelse: return torch.empty(0)", True),
        ("while x.numel() == 0: return torch.empty(0)", True),
    ],
)
def test_an_output_that_nobody_writes(body: str, blamed: bool) -> None:
    assert ("uninitialised_output" in found(body)) is blamed
