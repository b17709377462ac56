"""Long texts take a time that grows like their length."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import pytest

from dice.kernels.checks import static_findings
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


REFERENCE = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) @ x
def get_inputs():
    return [torch.rand(8, 8)]
"""
KERNEL = "__global__ void k(const float* a, float* b) {{ b[threadIdx.x] = a[threadIdx.x] * 2; }}\n{cuda}"


def steps(top: str = "", forward: str = "", cuda: str = "") -> int:
    """Calls of functions, and rounds of generators, in which the checks read a text."""
    text = MODEL.format(top=top, forward=forward.replace("\n", "\n        ")).replace(
        'cuda_sources=""', f"cuda_sources={KERNEL.format(cuda=cuda)!r}"
    )
    PythonSource(text)  # it can be read
    count = 0

    def called(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        static_findings(text, None, REFERENCE)
    finally:
        sys.setprofile(before)
    return count


def lines(pattern: str) -> Callable[[int], str]:
    """As many times as asked the line (`{i}`: its number, `{j}`: the next)."""
    return lambda count: "\n".join(pattern.replace("{i}", f"{i}").replace("{j}", f"{i + 1}") for i in range(count))


def chain(pattern: str, body: str) -> Callable[[int], str]:
    written = lines(f"elif {pattern}:\n    {body}")
    return lambda count: written(count)[2:]


LONG: dict[str, dict[str, Callable[[int], str]]] = {
    "ifs by values": {"forward": lines("if x.sum() > {i}:\n    y = ext.f(x)\nelse:\n    y = torch.relu(x)")},
    "ifs by the time": {"top": lambda _: "import time", "forward": lines("if time.time() > {i}:\n    y = ext.f(x)")},
    "ifs by a count": {"forward": lines("self.n += 1\nif self.n == {i}:\n    y = ext.f(x)")},
    "elifs": {"forward": chain("x.sum() > {i}", "return ext.f(x)")},
    "elifs between functions": {
        "top": lines("def g{i}(x):\n    return ext.f(x) + {i}"),
        "forward": chain("x.sum() > {i}", "return g{i}(x)"),
    },
    "conditional expressions": {"forward": lambda count: "y = " + "ext.f(x) if x.sum() > 1 else " * count + "x"},
    "and": {"forward": lambda count: "y = " + " and ".join(["x.max() > 1"] * count)},
    "names of truths": {"forward": lines("y = x.sum() > y if y else y and x.max() > {i}")},
    "one name": {"forward": lines("y = y.sum() + {i}\nif y > 2:\n    z = ext.f(x)")},
    "calls of calls": {"forward": lambda count: "y = x" + ".min()" * count + " > 3\nif y:\n    x = ext.f(y)"},
    "arrays": {"forward": lambda count: lines("a{i} = a{j} + 1")(count) + f"\na{count} = x.numpy()"},
    "extensions": {"top": lambda count: lines("a{i} = a{j}")(count) + f"\na{count} = ext"},
    "functions": {"top": lines("def g{i}(x):\n    if x.sum() > 2: return g{j}(x)\n    return ext.f(x)")},
    "one function": {"top": lines("def g(x):\n    if g(x): return g(x + {i})"), "forward": lambda _: "y = g(x)"},
    "numbers through functions": {
        "top": lines("def g{i}(t):\n    a = g{j}(t)\n    return a"),
        "forward": lines("if g{i}(x):\n    return torch.relu(x)"),
    },
    "errors in a helper": {
        "top": lines("def g(t):\n    if t[{i}] > 3:\n        raise ValueError"),
        "forward": lines("try:\n    g(x)\nexcept ValueError:\n    y = torch.relu(x)"),
    },
    "functions in a variable": {"forward": lines("y = ext.f\nif x.sum() > {i}:\n    y = torch.relu")},
    "order of sets": {"top": lines("names{i} = {'a', 'b'}\nfirst{i} = next(iter(names{i} | names{j}))")},
    "caught errors": {"forward": lines("try:\n    return ext.f(x)\nexcept Exception:\n    y = x")},
    "errors": {"forward": lambda count: "try:" + "\n    assert x.sum() > 1" * count + "\nexcept A:\n    torch.relu(x)"},
    "at import": {
        "top": lambda count: "try:" + "\n    a = load_inline()" * count + "\nexcept Exception:\n    a = torch.relu"
    },
    "tables": {
        "top": lambda count: f"t = [{'ext.f, torch.relu, ' * count}]",
        "forward": lines("t = [x, {i}]\ny = t[x.sum() > {i}](x)\ny = t.get(x.sum() > {i}, 3)"),
    },
    "told": {"forward": lines("a = a > {i}\ny = ext.f(x, a)")},
    "addresses": {"forward": lines("p = x.data_ptr()\nif p % 16 == {i}:\n    y = ext.f(x)")},
    "one value": {"forward": lambda count: " = ".join(f"a{i}" for i in range(count)) + " = " + "x, " * count},
    "C++ elses": {"cuda": lambda count: "int g() { " + "if (time(0) > 1) a = 1; else " * count + "a = 2; }"},
    "C++ kernels": {"cuda": lines("__global__ void k{i}(float* a) { a[0] = 1; }")},
    "C++ parentheses": {"cuda": lambda count: "int g() { return " + "(" * count + "1" + ")" * count + "; }"},
}


@pytest.mark.parametrize("texts", LONG.values(), ids=LONG.keys())
def test_twice_the_text_takes_twice_the_steps(texts: dict[str, Callable[[int], str]]) -> None:
    once, twice = (steps(**{where: text(count) for where, text in texts.items()}) for count in (60, 120))
    assert twice < 2.2 * once
