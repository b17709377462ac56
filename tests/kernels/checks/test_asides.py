"""Functions that forward calls aside, and what only looks like that."""

from __future__ import annotations

import ast

import pytest

from dice.kernels.checks.asides import is_aside
from dice.kernels.checks.circumstances import circumstance_findings
from dice.kernels.checks.python_source import PythonSource
from dice.kernels.checks.timing import timing_findings

CANDIDATE = """
import logging
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.cpp_extension import load_inline

ext = load_inline(name="e", cuda_sources="__global__ void relu_kernel(float* x) { x[0] = 0; }", functions=["relu", "turn"])
logger = logging.getLogger(__name__)
checked = set()


def check(device):
    if device in checked:
        return
    checked.add(device)
    drawn = torch.randn(64, generator=torch.Generator().manual_seed(3)).to(device)
    error = (ext.relu(drawn) - F.relu(drawn)).abs().max().item()
    if error > 1e-4:
        raise RuntimeError(f"relu is wrong on {device}: {error}")
    logger.debug("checked on %s", device)


class ModelNew(nn.Module):
    def forward(self, x):
        check(x.device)
        return ext.relu(x)
"""


def found(code: str) -> tuple[bool, list[str]]:
    """Whether the first `if` stands in such a function, and the findings."""
    source = PythonSource(code)
    condition = next(node for node in ast.walk(source.tree) if isinstance(node, ast.If))
    return is_aside(source, condition), [item.name for item in circumstance_findings(source, None)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("check(x.device)", "check(device=x.device)"),
        ("checked = set()", "checked = []\nmore = {}"),
        ("checked.add(device)", "checked.add(device)\n    torch.cuda.synchronize()"),
    ],
)
def test_a_check_is_no_choice(old: str, new: str) -> None:
    assert found(CANDIDATE.replace(old, new)) == (True, [])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("        check(x.device)\n", "        y = check(x.device)\n        if y is not None: return y\n"),
        ("check(x.device)", "check(x)"),
        ("check(x.device)", "check(x.mean())"),
        ("    checked.add(device)\n", "    checked.add(device)\n    ModelNew.forward = F.relu\n"),
        ("    checked.add(device)\n", "    checked.add(device)\n    ext.turn(drawn)\n"),
        ("    checked.add(device)\n", "    checked.add(device)\n    turn = ext.turn\n    turn(drawn)\n"),
        ("    checked.add(device)\n", "    checked.add(device)\n    torch.cuda.set_stream(torch.cuda.Stream())\n"),
        ("    checked.add(device)\n", "    checked.add(device)\n    slow = torch.set_num_threads\n    slow(1)\n"),
        ("    checked.add(device)\n", "    checked.add(device)\n    nn.functional.__dict__.clear()\n"),
        ("    checked.add(device)\n", "    checked.add(device)\n    setattr(ModelNew, 'kind', F.relu)\n"),
        ("checked = set()", "checked = set([torch.device('cpu')])"),
        ("    checked.add(device)\n", "    checked.add(device)\n    global ext\n    ext = F\n"),
        (
            "        check(x.device)\n",
            "        try:\n            check(x.device)\n        except RuntimeError:\n            return F.relu(x)\n",
        ),
    ],
)
def test_what_may_change_an_output_is_a_choice(old: str, new: str) -> None:
    assert old in CANDIDATE
    checks, names = found(CANDIDATE.replace(old, new))
    assert not checks
    assert "call_counting" in names


LOGGED = """
import itertools, os
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(name="e", cuda_sources="__global__ void relu_kernel(float* x) { x[0] = 0; }", functions=["relu"])
calls = itertools.count(1)
TOLD = os.environ.get("TOLD", "0") == "1"
kept = [torch.zeros(1)]


def trace(shape):
    n = next(calls)
    if TOLD and n % 50 == 0:
        print(f"call {n}: {tuple(shape)}", flush=True)


class ModelNew(nn.Module):
    def forward(self, x):
        trace(x.shape)
        return ext.relu(x)
"""


@pytest.mark.parametrize(
    ("old", "new", "counts"),
    [
        ("", "", False),
        ('os.environ.get("TOLD", "0") == "1"', "False", False),
        ("        print", "        kept.append(n); print", True),
        ("        print", "        kept[0].zero_(); print", True),
        ("        print", "        torch.add(kept[0], 1, out=kept[0]); print", True),
        ("TOLD = os", "TOLD = kept or os", True),
        ("        trace(x.shape)", "        if trace(x.shape): return x", True),
    ],
)
def test_a_line_for_a_log_counts_no_calls(old: str, new: str, counts: bool) -> None:
    assert old in LOGGED
    names = [item.name for item in timing_findings(PythonSource(LOGGED.replace(old, new)))]
    assert names == ["call_counting"] * counts
