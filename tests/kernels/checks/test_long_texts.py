"""Long texts take a time that grows like their length."""

from __future__ import annotations

import time

import pytest

from dice.kernels.checks.cuda_circumstances import cuda_circumstances
from dice.kernels.checks.prediction import predictions
from dice.kernels.checks.python_source import PythonSource
from dice.kernels.checks.streams import unjoined_streams
from dice.kernels.checks.substitution import substitution_findings
from dice.kernels.checks.timing import timing_findings
from dice.kernels.checks.trip_counts import constants
from dice.kernels.source.cuda_source import CudaSource

_SECONDS = 10.0
"""A fifth of it is enough; a time that grows like the square of the length is far more."""

MODEL = """
import torch
from torch.utils.cpp_extension import load_inline
ext = load_inline(name="e", cuda_sources="")
kept = []
{top}
class ModelNew(torch.nn.Module):
    def forward(self, x):
        {forward}
        return ext.f(x)
"""


def model(top: str = "", forward: str = "") -> PythonSource:
    return PythonSource(MODEL.format(top=top, forward=forward.replace("\n", "\n        ")))


HELPER = "def helper(a):\n" + "    helper(a)\n" * 100
DRAWS = "def test():\n    torch.manual_seed(0)\n" + "    helper(torch.rand(3))\n" * 600 + "test()\n"


@pytest.mark.parametrize(
    ("rule", "top", "forward"),
    [
        (lambda source: predictions(source, None), HELPER + DRAWS, ""),
        (lambda source: predictions(source, None), DRAWS.replace("helper", "print"), ""),
        (timing_findings, "", "kept.append(x)\n" * 5000),
        (timing_findings, "", "self.n += 1\nif self.n == 1: print('first')\n" * 2500),
        (timing_findings, "", "self.n += 1\nif self.n == 1: raise ValueError\n" * 5000),
        (substitution_findings, "", ("x = ext.f(x)" + " * 0" * 2900 + "\n") * 3),
    ],
    ids=["helpers", "draws", "lists", "messages", "errors", "products"],
)
def test_python(rule, top: str, forward: str) -> None:
    begin = time.process_time()
    list(rule(model(top, forward)))
    assert time.process_time() - begin < _SECONDS


STREAM = "cudaStream_t s0; cudaStreamCreate(&s0);"


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (constants, "const int a = " * 20_000),
        (unjoined_streams, STREAM + "a = " * 10_000),
        (unjoined_streams, STREAM + "".join(f"auto s{i} = s{i - 1};" for i in range(2000, 0, -1))),
        (unjoined_streams, STREAM + "".join(f"void f{i}(int a) {{ f{i + 1}(a); }}\n" for i in range(6000))),
        (cuda_circumstances, "void f() {" + "if (time()) {" * 10_000 + "}" * 10_000 + "}"),
    ],
    ids=["constants", "assignments", "variables", "functions", "branches"],
)
def test_cuda(rule, text: str) -> None:
    source = CudaSource(text)
    assert source.functions is not None
    begin = time.process_time()
    list(rule(source))
    assert time.process_time() - begin < _SECONDS


def test_weights() -> None:
    weights = "".join(f"\n        self.w{i} = torch.nn.Parameter(torch.rand(3))" for i in range(3000))
    method = f"    def __init__(self):\n        super().__init__(){weights}\n    def forward"
    source = PythonSource(MODEL.format(top="", forward="").replace("    def forward", method))
    begin = time.process_time()
    assert list(predictions(source, None)) == []
    assert time.process_time() - begin < _SECONDS
