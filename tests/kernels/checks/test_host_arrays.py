"""NumPy that computes with an input in forward."""

from __future__ import annotations

import dataclasses

import pytest

from dice.kernels.checks.host_arrays import host_array_findings
from dice.kernels.checks.python_source import PythonSource
from dice.kernels.checks.seen import Seen

CANDIDATE = """
import numpy as np
import torch
import torch.nn as nn


def product(left, right):
    return left @ right


class ModelNew(nn.Module):
    def forward(self, x, taps, lengths):
        {body}
"""
REFERENCE = """
import torch
import torch.nn as nn

K = 3


class Model(nn.Module):
    def forward(self, x, taps, lengths):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(8, 32), torch.randn(K, 3), torch.randint(0, 8, (500,))]
"""
NOTHING = Seen(imports=None, imported=frozenset(), slept=None, lines=frozenset(), kernels=frozenset(), as_exact=None)


def lines_found(body: str, seen: Seen | None = NOTHING) -> list[bool]:
    """Whether each finding is fatal."""
    code = CANDIDATE.format(body=body.replace("\n", "\n        "))
    found = host_array_findings(PythonSource(code), PythonSource(REFERENCE, entry="Model"), seen)
    return [item.fatal["strict"] for item in found]


@pytest.mark.parametrize(
    "body",
    [
        "y = x.numpy()\ny *= 2\nreturn torch.from_numpy(y)",
        "y = x.numpy()\nreturn torch.from_numpy(-y)",
        "return torch.from_numpy(np.maximum(x.cpu().numpy(), 0))",
        "v = x.numpy()\nw = v\nreturn torch.from_numpy(w * 2)",
        "v = np.asarray(x.detach().cpu())\nreturn torch.from_numpy(v.cumsum(1))",
        "y = x.contiguous()\nreturn torch.from_numpy(product(y.numpy(), y.numpy().T))",
        "a, b = x.numpy(), 1\nreturn torch.from_numpy(np.einsum('ij,ij->i', a, a))",
        "v = x.__array__()[:, 3:]\nreturn torch.as_tensor(v - v.mean())",
        "v = getattr(x, 'numpy')()\nreturn torch.as_tensor(v - 1)",
        "v = getattr(x.numpy(), 'cumsum')(1)\nreturn torch.as_tensor(v)",
    ],
)
def test_numpy_computes(body: str) -> None:
    assert lines_found(body) == [True]
    assert lines_found(body, None) == [False]


@pytest.mark.parametrize(
    "body",
    [
        "y = x.numpy()\nn = -y.shape[0]\nn += 1\nreturn x",
        "n = np.prod(x.shape)\nreturn ext.relu(x, int(n * 2))",
        "w = taps.cpu().numpy()\nreturn ext.blur(x, (w / w.sum()).tolist())",
        "ends = np.cumsum(lengths.cpu().numpy())\nreturn ext.relu(x, int(ends[-1]))",
        "return ext.relu(torch.from_numpy(x.numpy().copy()))",
        "return ext.relu(torch.from_numpy(getattr(x.numpy(), 'copy')()))",
        "first = x.numpy()[0, 0].item() * 2\nreturn ext.relu(x, first)",
        "table = np.arange(9.0) ** 2\nreturn ext.relu(x, torch.from_numpy(table))",
    ],
)
def test_the_host_plans_or_hands_on(body: str) -> None:
    assert lines_found(body) == []


def test_a_line_that_a_run_left_out_computes_nothing() -> None:
    body = "if x.dim() > 9:\n    return torch.from_numpy(x.numpy() * 2)\nreturn ext.relu(x)"
    ran = dataclasses.replace(NOTHING, lines=frozenset({13, 15}))
    assert lines_found(body, ran) == []
    assert lines_found(body, dataclasses.replace(NOTHING, lines=frozenset({13, 14}))) == [True]
