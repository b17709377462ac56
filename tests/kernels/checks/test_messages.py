"""Branches on a counter that only write a message, as logging is written, and what only looks like one."""

from __future__ import annotations

import pytest

from dice.kernels.checks import static_findings
from dice.kernels.checks.loggers import is_logger
from dice.kernels.checks.python_source import PythonSource

MODEL = '''
import logging
import sys
import time
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(name="e", cpp_sources="torch::Tensor relu(torch::Tensor x);", cuda_sources="""
#include <torch/extension.h>
__global__ void k(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] > 0 ? x[i] : 0;
}
torch::Tensor relu(torch::Tensor x) {
    auto y = torch::empty_like(x);
    k<<<(x.numel() + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
    return y;
}
""", functions=["relu"])
seen = []
FILE

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
        self.parts = PARTS

METHODS

    def forward(self, x):
        self.calls += 1
        y = ext.relu(x)
        if TEST:
            BODY
        return y
'''
TEST = "self.calls % 100 == 0"
LOGGER = 'log = logging.getLogger("relu")\n'


def findings(body: str, *, test: str = TEST, file: str = "", methods: str = "", parts: str = "[]") -> set[str]:
    given = {"FILE": file, "METHODS": methods, "PARTS": parts, "TEST": test, "BODY": body}
    code = MODEL
    for name, text in given.items():
        code = code.replace(name, text, 1)
    return {each.name for each in static_findings(code) if each.fatal["strict"]}


@pytest.mark.parametrize(
    "given",
    [
        {"body": "print(self.calls)", "test": "not self.calls % 100"},
        {"body": "print(f'{self.calls}'); sys.stdout.flush()"},
        {"body": 'log.log(logging.INFO, "%d", self.calls)', "file": LOGGER},
        {"body": 'log.info("%f", y.mean().item())', "file": LOGGER},
        {"body": 'log.info("%f", round(self.calls / 3, 2))', "file": LOGGER},
        {
            "body": 'log.debug("%d", self.calls)',
            "file": LOGGER,
            "test": f"log.isEnabledFor(logging.DEBUG) and {TEST}",
        },
        {"body": 'log.info("%d", self.calls)', "file": 'log = logging.getLogger("a").getChild("b")'},
        {"body": 'log.info("%d", self.calls)', "file": LOGGER + 'log = logging.getLogger("a")\nlog.propagate = False'},
        {
            "body": 'named.info("%d", self.calls)',
            "file": LOGGER + 'named = logging.LoggerAdapter(log, {"of": "relu"})',
        },
        {
            "body": 'log.info("%d", self.calls)',
            "file": "def made():\n    found = logging.getLogger('a')\n    if not found.handlers:\n"
            "        handler = logging.StreamHandler(sys.stderr)\n"
            "        handler.setFormatter(logging.Formatter('%(message)s'))\n        found.addHandler(handler)\n"
            "    return found\nlog = made()",
        },
        {"body": "print(self)", "methods": '    def extra_repr(self):\n        return f"calls={self.calls}"'},
        {
            "body": "print(self)",
            "methods": '    def __repr__(self):\n        return ", ".join(str(p) for p in self.parts)',
        },
        {"body": "print(self.calls)", "file": "class Count(dict):\n    def __call__(self): pass"},
        {
            "body": "print(self.calls)",
            "file": "class Timer:\n    def __enter__(self): return self\n    def __exit__(self, *error): pass",
        },
        {"body": 'log.info("NaN")', "file": LOGGER, "test": "torch.isnan(x).any() and self.parts"},
    ],
)
def test_a_message_counts_no_calls(given: dict[str, str]) -> None:
    assert not findings(**given)


TELLER = "class Teller:\n    def __call__(self, *said): seen.append(said)\n"


@pytest.mark.parametrize(
    "given",
    [
        {"body": "print(self.calls)", "file": TELLER + "print = Teller()"},
        {"body": 'log.log(logging.INFO, "%d", self.calls)', "file": LOGGER + TELLER + "log.log = Teller()"},
        {"body": 'log.info("%d", self.calls)', "file": LOGGER + "log.handlers.append(seen)"},
        {
            "body": 'log.info("%d", self.calls)',
            "file": LOGGER + "h = logging.StreamHandler()\nh.emit = seen.append\nlog.addHandler(h)",
        },
        {
            "body": 'log.info("%d", self.calls)',
            "file": "class Own(logging.Formatter):\n    def format(self, record): return seen.append(1)\n"
            "log = logging.getLogger('a')\nh = logging.StreamHandler()\nh.setFormatter(Own())\nlog.addHandler(h)",
        },
        {
            "body": 'log.info("%d", self.calls)',
            "file": "def made():\n    found = logging.getLogger('a')\n    found.addFilter(seen.append)\n    return found\n"
            "log = made()",
        },
        {
            "body": 'named.info("%d", self.calls)',
            "file": "class Own(logging.LoggerAdapter):\n    def process(self, text, more): return seen.append(1)\n"
            "named = Own(logging.getLogger('a'), {})",
        },
        {"body": "print(self)", "methods": "    def extra_repr(self):\n        self.late = True\n        return ''"},
        {
            "body": "print(self)",
            "methods": "    def __repr__(self):\n        return str(self.state)\n    @property\n    def state(self):\n"
            "        return seen.append(1)",
        },
        {
            "body": "print(self)",
            "methods": "    def items(self):\n        self.late = True\n        return []\n"
            "    def __repr__(self):\n        return str(self.items())",
        },
        {
            "body": "print(self)",
            "parts": "(seen.append(n) for n in range(9))",
            "methods": "    def __repr__(self):\n        return ' '.join(self.parts)",
        },
        {
            "body": "print(self)",
            "parts": "iter([1, 2])",
            "methods": "    def __repr__(self):\n        return str(list(self.parts))",
        },
        {"body": "print(max(self.parts))", "parts": "iter([1, 2])"},
        {"body": "print(self.parts.double())", "parts": "nn.Linear(2, 2)"},
        {"body": 'log.info("%f", y.mean().item())', "file": LOGGER + "beside = torch.cuda.Stream()"},
        {
            "body": "print(self.calls)",
            "file": "class Quiet:\n    def __enter__(self): return self\n    def __exit__(self, *error): return True",
        },
        {
            "body": "print(self.parts[0])",
            "file": "class Own(dict):\n    def __getitem__(self, key): return seen.append(key)",
            "parts": "Own()",
        },
        {"body": "print(self.calls); return x"},
    ],
)
def test_what_runs_code_of_the_candidates_is_no_message(given: dict[str, str]) -> None:
    assert "call_counting" in findings(**given)


@pytest.mark.parametrize(
    ("made", "told"),
    [
        ("logging.getLogger('a')", True),
        ("logging.getLogger('a').getChild('b')", True),
        ("logging.LoggerAdapter(logging.getLogger('a'), {})", True),
        ("logging.LoggerAdapter(other, {})", False),
        ("other.getLogger('a')", False),
        ("other", False),
    ],
)
def test_a_logger_is_told_by_how_it_is_made(made: str, told: bool) -> None:
    assert is_logger(PythonSource(f"import logging\nother = []\nlog = {made}\n"), "log") is told
