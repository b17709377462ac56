"""A kernel that is compared with PyTorch at its first use, and what only looks like that."""

from __future__ import annotations

import ast

import pytest

from dice.kernels.checks.circumstances import circumstance_findings
from dice.kernels.checks.python_source import PythonSource
from dice.kernels.checks.self_checks import is_self_check

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
    """Whether the first `if` stands in a self-check, and the findings."""
    source = PythonSource(code)
    condition = next(node for node in ast.walk(source.tree) if isinstance(node, ast.If))
    return is_self_check(source, condition), [item.name for item in circumstance_findings(source, None)]


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
