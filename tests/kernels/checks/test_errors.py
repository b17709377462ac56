"""Branches that can only end the call with an error."""

from __future__ import annotations

import ast

import pytest

from dice.kernels.checks.errors import ends_with_an_error
from dice.kernels.checks.python_source import PythonSource

CANDIDATE = """
import contextlib
import torch
import torch.nn as nn


class Late(AttributeError):
    pass


class ModelNew(nn.Module):
    def step(self, x):
        return x

    def forward(self, x):
        {body}
        return x
"""


@pytest.mark.parametrize(
    ("body", "ends"),
    [
        ("if x.sum() > 3: raise ValueError", True),
        ("if x.sum() > 3: return x", False),
        ("if x.sum() > 3: raise ValueError\n        else: x = x + 1", False),
        ("if x.sum() > 3:\n            x = x + 1\n            raise ValueError", False),
        (
            "try:\n            if x.sum() > 3: raise ValueError\n        except ValueError:\n            x = x + 1",
            False,
        ),
        (
            "try:\n            if x.sum() > 3: raise ValueError\n        except* ValueError:\n            x = x + 1",
            False,
        ),
        ("with contextlib.suppress(ValueError):\n            if x.sum() > 3: raise ValueError", False),
        ("with torch.no_grad():\n            if x.sum() > 3: raise ValueError", True),
        ("if x.sum() > 3: raise StopIteration", False),
        ("if x.sum() > 3: raise Late(x)", False),
        ("x = next(map(self.step, [x]), x)\n        if x.sum() > 3: raise ValueError", False),
        ("x = list(map(float, x))\n        if x.sum() > 3: raise ValueError", True),
        ("x = getattr(self, 'step', x)\n        if x.sum() > 3: raise ValueError", False),
        ("x = getattr(self, 'other', x)\n        if x.sum() > 3: raise ValueError", True),
    ],
    ids=[
        "raises",
        "returns",
        "goes another way",
        "works first",
        "is caught",
        "in a group",
        "suppressed",
        "passes on",
        "ends a loop",
        "an own one",
        "ends a map",
        "of Python's",
        "no such attribute",
        "of no function",
    ],
)
def test_a_branch_that_only_raises(body: str, ends: bool) -> None:
    source = PythonSource(CANDIDATE.format(body=body))
    branch = next(node for node in source.in_forward if isinstance(node, ast.If))
    assert ends_with_an_error(source, branch) is ends
