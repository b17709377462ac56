"""What has as many elements as values say."""

from __future__ import annotations

import ast

import pytest

from dice.kernels.checks.python_source import PythonSource
from dice.kernels.checks.selections import asked_of, asks_size, has_selections, is_made_to_size, masks, selects


def forward(body: str) -> PythonSource:
    return PythonSource(f"import torch\nclass ModelNew:\n    def forward(self, x, n):\n        {body}\n")


@pytest.mark.parametrize(
    "body", ["return x[x > 3]", "m = ~x\n        return x[m]", "return x.nonzero()", "return torch.where(x)"]
)
def test_a_selection(body: str) -> None:
    assert has_selections(forward(body))


@pytest.mark.parametrize("body", ["return x[:3, n]", "return torch.where(x > 3, x, n)", "return x > 3"])
def test_no_selection(body: str) -> None:
    assert not has_selections(forward(body))


def test_calls_and_attributes() -> None:
    call = ast.parse("torch.unique(x).numel()", mode="eval").body
    assert asks_size(call)
    assert not asks_size(ast.parse("x.dtype", mode="eval").body)
    (inner,) = asked_of(call)
    assert isinstance(inner, ast.Call)
    assert selects(inner)
    assert not is_made_to_size(inner)
    assert len(asked_of(inner)) == 2
    assert masks(forward("m = x > 3\n        return m"))
