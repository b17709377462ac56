"""A choice in all its spellings: what is read of it, and what the rules say of one by values, circumstances and shapes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from dice.kernels.checks.choices import Choice, Work, choices, raises, work_of
from dice.kernels.checks.circumstances import circumstance_findings
from dice.kernels.checks.python_names import identifiers
from dice.kernels.checks.python_source import PythonSource
from dice.kernels.checks.sniffing import sniffing
from dice.kernels.checks.torch_calls import torch_computations

PROBLEM = PythonSource(
    """
import torch
class Model(torch.nn.Module):
    def forward(self, x, lengths):
        return torch.relu(x)[:, : lengths.shape[0]]
def get_inputs():
    return [torch.randn(8, 8), torch.randint(1, 9, (8,))]
""",
    "Model",
)


def candidate(body: str) -> PythonSource:
    indented = body.replace("\n", "\n        ")
    return PythonSource(
        f'''
import contextlib, itertools, os, warnings
import torch
from torch.utils.cpp_extension import load_inline
ext = load_inline("e", "torch::Tensor relu(torch::Tensor x);", """__global__ void k(float* x) {{ }}""", functions=["relu"])
class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.ways = [ext.relu, torch.relu]
    def forward(self, x, lengths):
        {indented}
        return ext.relu(x)
'''
    )


SPELLINGS = [
    "if C:\n    return torch.relu(x)",
    "return torch.relu(x) if C else ext.relu(x)",
    "while C:\n    return torch.relu(x)",
    "while C:\n    break\nelse:\n    return torch.relu(x)",
    "match bool(C):\n    case True:\n        return torch.relu(x)",
    "return [ext.relu, torch.relu][int(C)](x)",
    "return (ext.relu, torch.relu)[int(C)](x)",
    "return self.ways[int(C)](x)",
    "ways = (lambda: ext.relu(x), lambda: torch.relu(x))\nreturn ways[C]()",
    "return {True: torch.relu, False: ext.relu}[bool(C)](x)",
    "return {True: torch.relu, False: ext.relu}.get(bool(C))(x)",
    "return {True: torch.relu}.get(bool(C), ext.relu)(x)",
    "return {True: torch.relu, False: ext.relu}.__getitem__(bool(C))(x)",
    "return getattr(*((torch, 'relu'), (ext, 'relu'))[C])(x)",
    "for _ in [1] * int(C):\n    x = torch.relu(x)",
    "for _ in int(C) * (1,):\n    x = torch.relu(x)",
    "for _ in range(int(C)):\n    x = torch.relu(x)",
    "n = int(C)\nfor _ in range(n):\n    x = torch.relu(x)",
    "for _ in range(3 if C else 0):\n    return torch.relu(x)",
    "for _ in itertools.repeat(1, int(C)):\n    x = torch.relu(x)",
    "for _ in [1][: int(C)]:\n    x = torch.relu(x)",
    "for _ in [1][int(C) :]:\n    x = torch.relu(x)",
    "return (C and torch.relu(x)) or ext.relu(x)",
    "return x.is_cuda and C and torch.relu(x)",
    "return ([torch.relu(x) for _ in (0,) if C] or [ext.relu(x)])[0]",
    "y = {torch.relu(x) for _ in (0,) if x.is_cuda if C}",
    "y = {0: torch.relu(x) for _ in (0,) if C}",
    "y = [torch.relu(x) for _ in range(int(C))]",
    "return next((torch.relu(x) for _ in (0,) if C), None)",
    "y = [*filter(lambda _: C, [torch.relu(x)])]",
    "y = [*itertools.compress([torch.relu(x)], [C])]",
    "try:\n    assert C\nexcept AssertionError:\n    return torch.relu(x)",
    "try:\n    if C:\n        raise ValueError\nexcept ValueError:\n    return torch.relu(x)",
    "try:\n    1 // int(C)\nexcept ZeroDivisionError:\n    return torch.relu(x)",
    "try:\n    1 % (not C)\nexcept ZeroDivisionError:\n    return torch.relu(x)",
    "with contextlib.suppress(AssertionError):\n    assert C\n    return torch.relu(x)",
]


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize(
    ("condition", "found"),
    [("x.max() > 3", "input_sniffing"), ("os.getuid() == 0", "environment_sniffing"), ("x.shape[0] > 3", None)],
)
def test_every_spelling(spelling: str, condition: str, found: str | None) -> None:
    source = candidate(spelling.replace("C", condition))
    names = {name for name, _, _ in sniffing(source, PROBLEM)}
    names |= {item.name for item in circumstance_findings(source, PROBLEM)}
    assert names == ({found} if found else set())


@pytest.mark.parametrize(
    "body",
    [
        "return x.max() > 3 and x",
        "return -(x.max() > 3 and x)",
        "return x.max() > 3 and -x",
        "return (x.max() > 3 and x.min() < 0) and x",
        "big = x.max() > 3\nif big:\n    return x",
        "self.big = x.max() > 3\nif not self.big:\n    return x",
        "return self.ways[int(x.max())](x)",
        "return [ext.relu, torch.relu][int(lengths.max() > 3)](x)",
        "return torch.relu if lengths.max() > 3 else ext.relu",
        "run = torch.fft.fft if lengths.max() > 3 else ext.relu",
        "for _ in range(int(x.max() > 3)):\n    return x",
        "for x in [x, self.last][int(x.max() > 3) :]:\n    return x",
        "try:\n    assert x.max() < 3\nexcept AssertionError:\n    return x",
        "try:\n    assert x.max() < 3\nexcept* AssertionError:\n    x = -x",
        "if (x.max() > 3 and x) is not None:\n    return x",
    ],
)
def test_a_choice_by_values(body: str) -> None:
    assert list(sniffing(candidate(body), PROBLEM))


@pytest.mark.parametrize(
    "body",
    [
        "threads = {32: 64, 64: 128}.get(x.shape[1], 256)",
        "run = {torch.float32: ext.relu, torch.float16: ext.half}[x.dtype]",
        "run = {1: ext.relu, 2: ext.rows}.get(x.dim(), torch.relu)",
        "run = [ext.relu, torch.relu][x.dim() == 2]",
        "run = [ext.relu][-int(x.max() > 3)]",
        "run = {torch.cuda.get_device_name(): 128}.get(torch.cuda.get_device_name(), 256)",
        "run = (ext.narrow, ext.wide)[int(lengths.max() > 3)]",
        "for _ in range(int(lengths.max() > 3)):\n    x = ext.wide(x)",
        "for step in range(int(lengths.max())):\n    x = ext.relu(x)",
        "for step in range(int(lengths.max())):\n    x = ext.step(x, step)\nreturn torch.relu(x)",
        "for card in range(torch.cuda.device_count()):\n    x = ext.relu(x)",
        "for mask in (x > x.mean(), x > 0):\n    x = ext.keep(x, mask)",
        "for mask in zip(x > x.mean(), x > 0):\n    x = ext.keep(x, *mask)",
        "while (x - x.floor()).max() > 1:\n    x = ext.relu(x)",
        "use = x.numel() > 1024 and x.is_contiguous()\nreturn ext.relu(x) if use else torch.relu(x)",
        "parts = [ext.relu(part) for part in x.chunk(4) if part.shape[0] > 2]",
        "size = next(size for size in (4, 2, 1) if x.shape[1] % size == 0)",
        "parts = [*filter(lambda part: part.numel() > 0, x.chunk(4))]",
        "assert x.max() < 3",
        "assert x.dim() == 2 and x.max() < 3 and x.min() > -3",
        "if x.max() > 3 and self.checks:\n    raise ValueError",
        "if not (x.max() > 3 or self.loose):\n    raise ValueError",
        "if x.dim() == 2 and (self.loose or (x.max() > 3 and self.checks)):\n    raise ValueError",
        "fine = x.max() < 3 and (not x.isnan().any() or x.isfinite().all())\nassert fine",
        "big = x > x.mean()\nif big is not None:\n    x = ext.keep(x, big)",
        "big = x > x.mean()\nif big.is_contiguous():\n    x = ext.keep(x, big)",
        "try:\n    assert x.max() < 3\nexcept AssertionError as error:\n    raise ValueError from error",
        "try:\n    return ext.relu(x / x.max())\nexcept RuntimeError:\n    return torch.relu(x)",
        "try:\n    x = ext.relu(x)\nfinally:\n    assert x.max() < 3",
        "with torch.no_grad():\n    assert x.max() < 3",
        "self.ways[x.max() > 3] = ext.relu",
        "known = {}\nknown.get(x.max(), 3)",
    ],
)
def test_no_choice_by_values(body: str) -> None:
    source = candidate(body)
    assert not list(sniffing(source, PROBLEM))
    assert not circumstance_findings(source, PROBLEM)


@pytest.mark.parametrize(
    ("body", "condition", "ways"),
    [
        ("if a:\n    b()\nelse:\n    return c\nd()", "a", ["b(); d(); return ext.relu(x)", "return c"]),
        ("if a:\n    return b\n    c()", "a", ["return b", "return ext.relu(x)"]),
        ("while a:\n    b()", "a", ["b()", ""]),
        ("match a:\n    case 1:\n        b()", "a", ["b(); return ext.relu(x)", "return ext.relu(x)"]),
        ("a and b", "a", ["a", "b"]),
        ("a or b or c", "a, b", ["a", "b; c"]),
        ("{1: b, **c}[a]", "a", ["b", "c"]),
        ("{1: b}.get(a)", "a", ["b", ""]),
        ("filter(a, b)", "a", ["b", ""]),
        ("{b: c for d in e if a}", "a", ["b; c", ""]),
        (
            "try:\n    assert a\nexcept b:\n    raise\nexcept c:\n    d()\nelse:\n    e()",
            "a",
            ["d(); return ext.relu(x)", "assert a; e(); return ext.relu(x)"],
        ),
    ],
)
def test_what_is_read(body: str, condition: str, ways: list[str]) -> None:
    source = candidate(body)
    assert source.forward is not None
    read = choices(source, ast.walk(source.forward))
    found = [choice for choice in read if ", ".join(map(ast.unparse, choice.conditions)) == condition]
    assert [["; ".join(map(ast.unparse, way)) for way in ways_of(source, choice)] for choice in found] == [ways]


def ways_of(source: PythonSource, choice: Choice) -> Iterator[list[ast.AST]]:
    """What runs from each outcome until it leaves the function."""
    behind = choice.outcomes.behind
    for block in choice.outcomes.blocks:
        way = [*block, *(source.after(behind) if behind is not None else ())]
        ends = (place for place, node in enumerate(way, 1) if isinstance(node, ast.Return | ast.Raise))
        yield way[: next(ends, len(way))]


@pytest.mark.parametrize(
    "block",
    [
        "if a:\n    x = torch.relu(x)\nelif b:\n    return ext.relu(x)\nelse:\n    x = -x\nx = x + 1\nif c:\n    pass",
        "if a:\n    raise ValueError\nfor y in x:\n    if b:\n        break\n    torch.relu(x)\nelse:\n    raise KeyError",
        "try:\n    assert a\nexcept b:\n    raise\nexcept c:\n    torch.relu(x)\nelse:\n    ext.relu(x)",
        "def f(a):\n    if a:\n        return a\n    torch.relu(a)\nif x:\n    x = f(x)\nx = [ext.relu, f][a](x)",
        "match a:\n    case 1:\n        if b:\n            ext(x)\n        raise b\n    case 2:\n        torch.relu(x)",
    ],
)
def test_the_work_of_ways_is_that_of_what_they_reach(block: str) -> None:
    source = candidate(block)
    for choice in choices(source, source.nodes):
        ways = [way for way in ways_of(source, choice) if not raises(way)]
        reached = [source.reach_from(way) for way in ways]
        work = {
            Work("ext" in identifiers(nodes), next(torch_computations(source, nodes), None) is not None)
            for nodes in reached
        }
        assert work_of(source).ways(choice.outcomes) == work
