"""What names in a candidate's Python stand for, and texts that are written to trouble whoever reads them."""

from __future__ import annotations

import ast

import pytest

from dice.kernels.checks import findings, static_findings
from dice.kernels.checks.python_names import PythonNames, identifiers
from dice.kernels.records.evidence import RunEvidence

CANDIDATE = """
import subprocess
class ModelNew:
    def forward(self, x):
        subprocess.run('ls')
        return x
"""


def text_of_last(code: str) -> str | None:
    """What the argument of the call in the last line reads as."""
    names = PythonNames(code)
    (call,) = [node for node in ast.walk(names.tree.body[-1]) if isinstance(node, ast.Call) and node.args][:1]
    return names.text(call.args[0])


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("f('a' + 'b')", "ab"),
        ("(a,) = ('x',)\nf(a + 'b')", "xb"),
        ("a, b = 'xy'\nf(a + b)", None),
        ("for a in 'xy':\n    pass\nf(a)", None),
        ("a = 'x'\ndef g(a):\n    return a\nf(a + 'b')", None),
        ("try:\n    a = 'x'\nexcept E as a:\n    pass\nf(a + 'b')", None),
        ("n = 32\nf(f'float{n:.1}')", None),
        ("n = 32\nf(f'float{n!r}')", None),
        ("a = 'x'\nf(a + 'b')", "xb"),
        ("n = 32\nf(f'float{n}')", "float32"),
        ("f('-'.join(['a', 'b']))", "a-b"),
        ("f('cba'[::-1])", "abc"),
        ("f('abc'[1:])", None),
        ("a = 'x'\na = 'y'\nf(a)", None),
        ("f(a + 'b')", None),
        ("a = a + 'b'\nf(a)", None),
        ("a = f'{a}b'\nf(a)", None),
        ("a = b + 'x'\nb = a + 'x'\nf(a)", None),
    ],
)
def test_text_that_can_be_read_off(code: str, text: str | None) -> None:
    assert text_of_last(code) == text


@pytest.mark.parametrize("first", ["", "ab"])
def test_text_that_doubles_in_each_line_takes_neither_time_nor_memory(first: str) -> None:
    doubled = "".join(f"a{i} = a{i - 1} + a{i - 1}\n" for i in range(1, 60))
    assert text_of_last(f"a0 = {first!r}\n{doubled}f(a59)") == (None if first else "")


@pytest.mark.parametrize(
    ("code", "dotted"),
    [
        ("import torch as t\nt.cuda.synchronize()", "torch.cuda.synchronize"),
        ("import torch\nc = torch.cuda\ngetattr(c, 'sync' + 'hronize')()", "torch.cuda.synchronize"),
        ("import sys\nsys.modules['os'].fork()", "os.fork"),
        ("import os\nvars(os)['fork']()", "os.fork"),
        ("a = a.b\na.c()", None),
    ],
)
def test_what_a_callee_refers_to(code: str, dotted: str | None) -> None:
    names = PythonNames(code)
    statement = names.tree.body[-1]
    assert isinstance(statement, ast.Expr)
    assert isinstance(statement.value, ast.Call)
    assert names.dotted(statement.value.func) == dotted


def test_lines_are_those_of_python() -> None:
    names = PythonNames("a = '\u2028\x0b'\r\n\x0cb = 1\n")
    assert names.line(names.tree.body[1]) == "line 2: b = 1"


def test_names_that_nodes_mention() -> None:
    tree = ast.parse("a.b(getattr(c, 'd'))")
    assert identifiers(ast.walk(tree)) == {"a", "b", "c", "d", "getattr"}


@pytest.mark.parametrize(
    "line",
    [
        "y" + "[0]" * 900 + " = 3",
        "if " + "-" * 900 + "1 == '__main__': pass",
        "y = getattr(x, " + "+".join(["'a'"] * 2900) + ")",
        "getattr(z, 'abc'[" + "-" * 900 + "1:])",
        "y[0x" + "f" * 5000 + "] = 1",
        "def f(o, x):\n    x = f'{x}a'\n    return getattr(o, x)",
        "if x: getattr()",
    ],
    ids=["subscripts", "signs", "sum", "slice", "large integer", "made of itself", "no arguments"],
)
def test_no_expression_hides_the_rest_of_a_file(line: str) -> None:
    assert "process_spawned" in {item.name for item in static_findings(CANDIDATE + line + "\n")}


@pytest.mark.parametrize("module", ["import gc\ngc.get_objects()\n", "\ufeffimport gc\ngc.get_objects()\n"])
def test_modules_of_a_candidate_are_read_with_it(module: str) -> None:
    evidence = RunEvidence(backend="cpu", reached="import", modules={"helper.py": module})
    assert {"process_spawned", "gc_access"} <= {item.name for item in findings(CANDIDATE, evidence=evidence)}
