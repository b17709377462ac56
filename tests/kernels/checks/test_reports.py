"""Branches that only report, and what only looks like that."""

from __future__ import annotations

import ast

import pytest

from dice.kernels.checks.python_source import PythonSource
from dice.kernels.checks.reports import only_reports

CANDIDATE = """
import logging
import time
import torch
from torch.utils.cpp_extension import load_inline

ext = load_inline(name="ext", cpp_sources="", functions=["f"])
LOG = logging.getLogger(__name__)


class ModelNew(torch.nn.Module):
    def __init__(self, every=1000, log=None):
        super().__init__()
        self.every = every
        self.calls, self.rows, self.since = 0, 0, time.monotonic()
        self.log = log or LOG

    def forward(self, x):
        y = ext.f(x)
        self.calls += 1
        self.rows += x.size(0)
        if self.calls >= self.every:
            seconds = time.monotonic() - self.since
            self.log.info("%.0f rows a second", self.rows / seconds)
            self.since, self.rows = time.monotonic(), 0
            self.calls = 0
        return y
"""


def reports(code: str) -> bool:
    source = PythonSource(code)
    return only_reports(source, next(node for node in source.nodes if isinstance(node, ast.If)))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("log or LOG", "LOG"),
        ("self.log.info", "LOG.warning"),
        ("self.calls = 0\n        return", "self.every = self.every\n        return"),
        ("self.rows += x.size(0)", "self.rows += x.shape[0]"),
        ("self.calls >= self.every", "self.calls % self.every == 0"),
    ],
)
def test_nobody_else_reads_what_is_noted(old: str, new: str) -> None:
    changed = CANDIDATE.replace("self.every = every", "self.every = 1000") if "self.every" in new else CANDIDATE
    assert reports(changed.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return y", "return y if self.rows else x"),
        ("return y", "return y if getattr(self, 'rows') else x"),
        ("return y", "return y if getattr(self, 'ro' + 'ws') else x"),
        ("return y", "return y if vars(self)['rows'] else x"),
        ("return y", "return y if self.__dict__['rows'] else x"),
        ("return y", "return y if note(self) else x"),
        ("self.calls = 0\n        return", "y = x\n        return"),
        ("self.calls = 0\n        return", "y *= 0\n        return"),
        ("self.calls = 0\n        return", "x *= 0\n        return"),
        ("self.calls = 0\n        return", "y[0] = 0\n        return"),
        ("self.calls = 0\n        return", "self.kept = y\n        return"),
        ("self.calls = 0\n        return", "self.weight = 0\n        return"),
        ("self.calls = 0\n        return", "self.calls = (y := 0)\n        return"),
        ("self.calls = 0\n        return", "return x\n        return"),
        ("self.rows += x.size(0)", "self.rows = y"),
        ("self.rows += x.size(0)", "self.rows = rows = y"),
        ("super().__init__()", "super().__init__()\n        self.register_buffer('rows', torch.ones(1))"),
        ("self.calls >= self.every", "self.calls >= self.every and self.late(y)"),
        ("self.calls >= self.every", "(y := x) is not None"),
        ("self.rows / seconds", "y.mul_(0)"),
        ("log=None", "log=Own()"),
        ("self.log = log or LOG", "log = Own()\n        self.log = log or LOG"),
        ("class ModelNew", "@with_log\nclass ModelNew"),
        ("class ModelNew", "def make():\n    return ModelNew(log=Own())\n\n\nclass ModelNew"),
        ("class ModelNew", "class Own(int):\n    def __iadd__(self, n):\n        return n\n\n\nclass ModelNew"),
        ("class ModelNew", "class Own(logging.Handler):\n    pass\n\n\nLOG.addHandler(Own())\n\n\nclass ModelNew"),
        ("    def forward", "    @property\n    def rows(self):\n        return 0\n\n    def forward"),
    ],
)
def test_somebody_follows_it(old: str, new: str) -> None:
    changed = CANDIDATE.replace(old, new, 1)
    assert changed != CANDIDATE
    assert not reports(changed)
