"""Choices by numbers of an input: by how many there are, by single ones, by what a kernel made of them."""

from __future__ import annotations

import pytest

from dice.kernels.checks.decided_by_numbers import choices_by_numbers
from dice.kernels.checks.python_source import PythonSource

TEXT = """
import torch
from torch.utils.cpp_extension import load_inline

ext = load_inline(name="ext", cpp_sources="", functions=["f", "g", "h"])


def many(values):
    return len(values) > 3


class {1}:
    def forward(self, x, lengths):
        {0}


def get_inputs():
    return [torch.randn(8, 8), torch.randint(1, 9, (8,))]
"""


def found(body: str, reference: str = "return torch.relu(x)") -> bool:
    source = PythonSource(TEXT.format(body.replace("\n", "\n        "), "ModelNew"))
    problem = PythonSource(TEXT.format(reference, "Model"), "Model")
    return next(choices_by_numbers(source, problem, set(), {"f", "g"}), None) is not None


@pytest.mark.parametrize(
    "condition",
    [
        "len(x[x > 3.9])",
        "x[x > 3.9].numel() > 0",
        "torch.where(x > 3.9)[0].shape[0]",
        "x.masked_select(x > 3.9).numel()",
        "torch.unique(x).numel() < 64",
        "many(x[x > 3])",
        "x[: int(x.max())].size(0)",
        "x.new_zeros(int(x.max())).numel() > 4",
        "'inf' in str(x)",
        "3.0 in x.flatten().tolist()",
    ],
)
def test_kernels_or_pytorch(condition: str) -> None:
    assert found(f"if {condition}:\n    return torch.relu(x)\nreturn ext.f(x)")


@pytest.mark.parametrize(
    "condition", ["float(x[0, 0]) > 3", "torch.isnan(x.sum())", "x[0].tolist()[0] > 3", "x.numpy()[0, 0] > 3"]
)
def test_one_kernel_or_another(condition: str) -> None:
    assert found(f"if {condition}:\n    return ext.g(x)\nreturn ext.f(x)")
    assert found(f"return (ext.g if {condition} else ext.f)(x)")


@pytest.mark.parametrize("condition", ["y.sum().item() > 3", "float(y[0, 0]) > 2", "len(y[y > 3])", "'nan' in repr(y)"])
def test_the_answer_of_a_kernel_or_pytorchs(condition: str) -> None:
    assert found(f"y = ext.f(x)\nif {condition}:\n    return torch.relu(x)\nreturn y")
    assert found(f"y = torch.empty_like(x)\next.f(x, y)\nif {condition}:\n    return y\nreturn torch.relu(x)")


@pytest.mark.parametrize(
    "body",
    [
        "if len(x) > 3 and x[0].numel() > 3 and x[:, 2:].size(1):\n    return torch.relu(x)\nreturn ext.f(x)",
        "if x.dtype in (torch.half, torch.float):\n    return torch.relu(x)\nreturn ext.f(x)",
        "if (x != 0).all():\n    return ext.f(x)\nreturn ext.g(x)",
        "if lengths.max() > 3:\n    return ext.f(x)\nreturn ext.g(x)",
        "if int(lengths[0]) > 3:\n    return ext.f(x)\nreturn ext.g(x)",
        "y = ext.f(x)\nif y.isnan().any():\n    raise ValueError\nreturn y",
        "y = ext.f(x)\nif float(y[0, 0]) > 3:\n    print('large')\nreturn y",
        "y = ext.f(x)\nif float(y[0, 0]) > 3:\n    y = torch.clamp(y, max=3)\nreturn y",
        "if ext.h(x) > 3:\n    return torch.relu(x)\nreturn ext.f(x)",
        "places = (x > 3).nonzero()\nif places.size(0):\n    x = ext.f(x, places)\nreturn ext.g(x)",
    ],
)
def test_nothing_that_hides_a_way(body: str) -> None:
    assert not found(body)


def test_a_reference_that_selects() -> None:
    body = "places = x[x > 3]\nif places.numel() < 9:\n    return torch.relu(places)\nreturn ext.f(places)"
    assert found(body)
    assert not found(body, "return torch.relu(x[x > 3])")
