"""Long texts take work that grows like their length. Steps are counted: no machine is too slow for that."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from dice.kernels.checks import static_findings
from dice.kernels.checks.cuda_choices import choices_by_content
from dice.kernels.checks.cuda_circumstances import cuda_circumstances
from dice.kernels.checks.cuda_conditions import cuda_conditions
from dice.kernels.checks.cuda_numbers_read import readers
from dice.kernels.checks.cuda_state import lasting_state
from dice.kernels.checks.host_loops import host_loops
from dice.kernels.checks.prediction import predictions
from dice.kernels.checks.python_source import PythonSource
from dice.kernels.checks.streams import unjoined_streams
from dice.kernels.checks.substitution import substitution_findings
from dice.kernels.checks.timing import timing_findings
from dice.kernels.checks.trip_counts import constants
from dice.kernels.source.cuda_source import CudaSource

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


def with_weights(count: int) -> PythonSource:
    weights = "".join(f"\n        self.w{i} = torch.nn.Parameter(torch.rand(3))" for i in range(count))
    method = f"    def __init__(self):\n        super().__init__(){weights}\n    def forward"
    return PythonSource(MODEL.format(top="", forward="").replace("    def forward", method))


def draws(count: int) -> str:
    return "def test():\n    torch.manual_seed(0)\n" + "    helper(torch.rand(3))\n" * count + "test()\n"


def foreseen(source: PythonSource) -> Iterable[object]:
    return predictions(source, None)


Rule = Callable[[Any], Iterable[object]]
Text = Callable[[int], Any]
PYTHON: dict[str, tuple[Rule, Text]] = {
    "helpers": (foreseen, lambda n: model("def helper(a):\n" + "    helper(a)\n" * n + draws(n))),
    "draws": (foreseen, lambda n: model(draws(n).replace("helper", "print"))),
    "weights": (foreseen, with_weights),
    "lists": (timing_findings, lambda n: model(forward="kept.append(x)\n" * n)),
    "messages": (timing_findings, lambda n: model(forward="self.n += 1\nif self.n == 1: print('first')\n" * n)),
    "errors": (timing_findings, lambda n: model(forward="self.n += 1\nif self.n == 1: raise ValueError\n" * n)),
    "products": (substitution_findings, lambda n: model(forward=("x = ext.f(x)" + " * 0" * n + "\n") * 3)),
}
STREAM = "cudaStream_t s0; cudaStreamCreate(&s0);"


def backwards(count: int) -> str:
    return "".join(f"auto s{i} = s{i - 1};" for i in range(count, 0, -1))


def nested(begin: str, middle: str, end: str, count: int) -> str:
    return begin * count + middle + end * count


def functions(count: int) -> str:
    return "".join(f"void f{i}(int a) {{ f{i + 1}(a); }}\n" for i in range(count))


def pointers(count: int) -> str:
    return "".join(f"void f{i}(float* a) {{ f{i + 1}(a); }}\n" for i in range(count))


AWAITED = "void w() { cudaStreamWaitEvent(0, e); } void g() { w(); f0(1); } "
HANDED = "void g(at::Tensor x) { f0(x.data_ptr<float>()); } "
KNOWN = "#ifdef __A\nint x = 1;\n#endif\n"
CUDA: dict[str, tuple[Rule, Text]] = {
    "constants": (constants, lambda n: CudaSource("const int a = " * n)),
    "assignments": (unjoined_streams, lambda n: CudaSource(STREAM + "a = " * n)),
    "variables": (unjoined_streams, lambda n: CudaSource(STREAM + backwards(n))),
    "functions": (unjoined_streams, lambda n: CudaSource(STREAM + functions(n))),
    "waits": (unjoined_streams, lambda n: CudaSource(STREAM + AWAITED + functions(n))),
    "lambdas": (unjoined_streams, lambda n: CudaSource(STREAM + AWAITED + nested("auto g = [&] { ", "g();", " };", n))),
    "handed on": (lambda source: [*host_loops(source)], lambda n: CudaSource(HANDED + pointers(n))),
    "conditionals": (
        cuda_conditions,
        lambda n: CudaSource(nested("#ifdef __A\nint x = 1;\n", "at::mm(a, b)", "#endif\n", n)),
    ),
    "guards": (cuda_conditions, lambda n: CudaSource("#ifdef __A\nvoid f() { at::mm(a, b); }\n#endif\n" * n)),
    "conditions": (
        cuda_conditions,
        lambda n: CudaSource(
            KNOWN + f"void f() {{ at::mm(a, b); {nested('if (', 'x', ') {}', n)}; y = {'x ? 1 : ' * n}0; }}"
        ),
    ),
    "branches": (cuda_circumstances, lambda n: CudaSource("void f() {" + "if (time()) {" * n + "}" * n + "}")),
    "nested calls": (
        unjoined_streams,
        lambda n: CudaSource(f"{STREAM} {functions(1)} void h() {{ {nested('f0(', '1', ')', n)}; }}"),
    ),
    "bound lambdas": (readers, lambda n: CudaSource(nested('m.def("f", [&](int a) { ', "", "});", n))),
    "uploads": (
        lambda source: [*lasting_state(source)],
        lambda n: CudaSource(
            "float* last; void f() { " + nested("if (x.data_ptr<float>() == last) { ", "", "}", n) + " }"
        ),
    ),
    "nested conditions": (choices_by_content, lambda n: CudaSource(f"void f() {{ {nested('if (', 'x', ') {}', n)} }}")),
}
RULES = PYTHON | CUDA
PARTS = 300
"""Of a text; another has twice as many."""


def work(run: Callable[[], object]) -> int:
    """Lines of Python that run, with calls and returns: a loop within one function counts too."""
    count = 0

    def traced(_frame: object, _event: str, _argument: object) -> Any:
        nonlocal count
        count += 1
        return traced

    before = sys.gettrace()
    sys.settrace(traced)
    try:
        run()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("name", RULES)
def test_twice_the_text_is_twice_the_work_of_a_rule(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dice.kernels.checks.streams._FAR", 50)  # a text is longer than what is looked at of a value
    rule, text = RULES[name]
    once, twice = (work(lambda count=count: list(rule(text(count)))) for count in (PARTS, 2 * PARTS))
    assert twice < 2.2 * once


def test_weights_that_are_drawn_one_by_one_are_not_foreseen() -> None:
    assert list(foreseen(with_weights(3))) == []


@pytest.mark.parametrize(
    ("name", "count"), [("products", 2900), ("constants", 20_000), ("assignments", 10_000), ("branches", 10_000)]
)
def test_deep_texts_are_read(name: str, count: int) -> None:
    rule, text = RULES[name]
    list(rule(text(count)))  # no RecursionError


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
    "pools": {"top": lines("from concurrent.futures import ThreadPoolExecutor\np = ThreadPoolExecutor()")},
    "imports": {"top": lines("import time as t{i}")},
    "returns": {"forward": lambda count: "y = torch.empty_like(x)\next.f(x, y)\n" + "return y\n" * count},
    "writes": {"top": lambda count: "import os\nfd = os.open('a', 0)" + "\nos.write(fd, b'')" * count},
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
    "calls of a maker": {
        "top": lambda count: "def make(t):\n" + "    t = t + 1\n" * count + "    return t",
        "forward": lines("y = make(x)"),
    },
    "makers of one name": {"top": lines("def make(t):\n    return t"), "forward": lines("y = make(x)")},
    "pools of names": {
        "top": lambda count: lines("from concurrent.futures import ThreadPoolExecutor\np{i} = ThreadPoolExecutor()")(
            count
        )
    },
    "modules": {"top": lines("import m{i}"), "forward": lines("import time\nif time.time() > {i}:\n    y = ext.f(x)")},
    "patches": {"top": lines("import m{i}\nimport time\ntime.f{i} = print")},
    "lists that are filled": {"forward": lines("self.n += 1\nkept[:] = [x] if self.n % 2 == {i} else kept")},
    "remainders": {"forward": lambda count: "self.n += 1\nif self.n" + " % 2" * count + " > 1:\n    y = x"},
    "elements": {"forward": lines("self.n += 1\nseen = {}\nif self.n > seen[{i}]:\n    print({i})")},
    "sets of words": {
        "top": lambda count: f"words = [{', '.join(['3'] * count)}]\n" + lines("s{i} = set(words)")(count)
    },
    "uses of sets": {"top": lines("s = {'a', {i}}\nfor a in s:\n    break")},
    "handlers": {
        "forward": lambda count: (
            "try:" + "\n    y = ext.f(x)" * count + lines("\nexcept E{i}:\n    y = torch.relu(x)")(count)
        )
    },
    "raised errors": {
        "top": lines("class E(Exception):\n    pass"),
        "forward": lines("self.n += 1\nif self.n > {i}:\n    raise E"),
    },
    "weights through names": {
        "top": lambda _: "def g(t):\n    return t.sum()",
        "forward": lines("self.w = torch.nn.Linear(3, 3)\nc = self.w\nb = c\na = b\ny = g(a)"),
    },
    "parameters": {
        "top": lambda count: f"def g({', '.join(f'a{i}' for i in range(count))}):\n    return a0",
        "forward": lines("y = g(x)"),
    },
    "draws": {
        "top": lambda count: (
            "def test():\n    torch.manual_seed(0)\n"
            + lines("    a{i} = a{j}")(count)
            + f"\n    a{count} = torch.rand(3)\ntest()"
        )
    },
    "classes with two ways up": {
        "top": lines("class C{i}(C{j}, C{j}):\n    pass"),
        "forward": lambda _: "y = C0()(x)",
    },
    "loggers": {
        "top": lines("import logging\nlog = logging.getLogger('{i}')"),
        "forward": lines("log.info('{i}')"),
    },
    "attributes of one variable": {"forward": lines("y = y + {i}\nself.a{i} = y")},
    "variables through variables": {
        "forward": lambda count: "a0 = self.z\n" + lines("a{j} = a{i}\nself.b{i} = a{i}")(count)
    },
    "attributes through attributes": {"forward": lines("self.a{i} = self.a{j}")},
    "sums": {"forward": lambda count: "y = x" + " + ext.f(x)" * count},
    "C++ written files": {
        "cuda": lambda count: "int g() { return " + 'fopen("a", ' * count + "1" + ")" * count + "; }"
    },
    "C++ counted loops": {
        "cuda": lambda count: (
            "void g(at::Tensor x) { float* p = x.data_ptr<float>(); for (int i = 0; i < 2; ++i) {"
            + lines("for (int i{i} = 0; i{i} < 3; ++i{i}) { p[0] += p[1]; }")(count)
            + "} }"
        )
    },
    "C++ loops over values": {
        "cuda": lambda count: (
            "void g(at::Tensor x) { float* p = x.data_ptr<float>(); "
            + lines("for (auto& v : p) { v += 1; }")(count)
            + "}"
        )
    },
    "C++ functions of one name": {
        "cuda": lines("void g(float* a) { a[0] = 1; }\nvoid h{i}(at::Tensor x) { g(x.data_ptr<float>()); }")
    },
    "C++ helpers for narrow inputs": {
        "forward": lambda _: "if x.dtype == torch.half:\n    y = ext.d0(x)",
        "cuda": lambda count: "\n".join(f"__device__ void d{i}() {{ d{i + 1}(); }}" for i in range(count, -1, -1)),
    },
    "C++ elses": {"cuda": lambda count: "int g() { " + "if (time(0) > 1) a = 1; else " * count + "a = 2; }"},
    "C++ kernels": {"cuda": lines("__global__ void k{i}(float* a) { a[0] = 1; }")},
    "C++ parentheses": {"cuda": lambda count: "int g() { return " + "(" * count + "1" + ")" * count + "; }"},
}


@pytest.mark.parametrize("texts", LONG.values(), ids=LONG.keys())
def test_twice_the_text_takes_twice_the_steps(texts: dict[str, Callable[[int], str]]) -> None:
    once, twice = (steps(**{where: text(count) for where, text in texts.items()}) for count in (60, 120))
    assert twice < 2.2 * once
