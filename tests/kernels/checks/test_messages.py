"""Calls that are counted for a message, by name."""

from __future__ import annotations

import pytest

from dice.kernels.checks.python_source import PythonSource
from dice.kernels.checks.timing import timing_findings

CANDIDATE = """
from collections import Counter, defaultdict
import time
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(name="e", cuda_sources="__global__ void relu_kernel(float* x) {{ x[0] = 0; }}", functions=["relu"])
calls = {made}


class ModelNew(nn.Module):
    def more(self):
        return 1

    def forward(self, x):
        calls["relu"] += 1
        if {asked}:
            {said}
        return ext.relu(x)
"""


@pytest.mark.parametrize(
    ("made", "asked", "said", "found"),
    [
        ("Counter()", "calls['relu'] % 1000 == 0", "print(ModelNew.__name__, calls['relu'])", False),
        ("{'relu': 0}", "calls[ext.relu.__name__] == 1", "print('first')", False),
        ("[0]", "calls[0] == 1", "print(f'{calls[0]} calls')", False),
        ("defaultdict(int)", "calls['relu'] == 1", "print('first', flush=True)", False),
        ("defaultdict(more)", "calls['relu'] == 1", "print('first')", True),
        ("Table()", "calls['relu'] == 1", "print('first')", True),
        ("Counter()", "calls[more()] == 1", "print('first')", True),
        ("Counter()", "calls['relu'] == 1", "print(calls[more()])", True),
        ("Counter()", "calls['relu'] > 500", "return x", True),
        (
            "[0]",
            "verbose and calls[0] % 9 == 0",
            "print('%d calls, %f s' % (calls[0], self.seconds / calls[0]))",
            False,
        ),
        ("[0]", "verbose or not calls[0] > 9", "print(self.seconds)", True),
        ("[0]", "calls[0] == 9 or more()", "print(self.seconds)", True),
        ("[0]", "calls[0] == 9", "print(self.more)", True),
        ("[0]", "calls[0] % 9 == 0", "torch.cuda.synchronize(); print(time.perf_counter() - self.begun)", False),
        ("[0]", "calls[0] % 9 == 0", "print(time.perf_counter(self.more))", True),
        ("[0]", "calls[0] % 9 == 0", "torch.cuda.empty_cache(); print('cleared')", True),
        ("[torch.cuda.Stream()]", "calls[0] % 9 == 0", "torch.cuda.synchronize()", True),
        ("[Thread(target=more)]", "calls[0] % 9 == 0", "torch.cuda.synchronize()", True),
    ],
)
def test_calls_counted_by_name(made: str, asked: str, said: str, found: bool) -> None:
    source = PythonSource(CANDIDATE.format(made=made, asked=asked, said=said))
    assert [item.name for item in timing_findings(source)] == ["call_counting"] * found
