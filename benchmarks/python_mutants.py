"""Do the tests of a module notice a small change to it? Mutants drawn at random, each run against the tests.

    python benchmarks/python_mutants.py src/dice/decoding/llada.py --tests tests/decoding [--count 15] [--seed 1]

A mutant changes one place: a comparison, an operator, a number by one, a truth value, min for max, a condition turned round,
a statement left out. Text and annotations stay. The tests run in a forked process that finds the changed module in the place
of the module; libraries are loaded once. A test that fails, or that takes four times as long as without a change, kills the
mutant. Survivors are printed as lines before and after; whoever reads them says whether they change anything.
"""

from __future__ import annotations

import argparse
import ast
import importlib.abc
import importlib.util
import inspect
import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

COMPARISONS = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "=="}
COMPARISONS |= {ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in"}
OPERATORS = {ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.Div: "*", ast.FloorDiv: "*", ast.Mod: "//", ast.Pow: "*"}
OPERATORS |= {ast.BitAnd: "|", ast.BitOr: "&", ast.LShift: ">>", ast.RShift: "<<"}
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "argmax": "argmin", "zeros": "ones", "ones": "zeros"}
PRELOADED = ("torch", "numpy", "pydantic", "yaml", "pytest", "hypothesis", "safetensors.torch")

Place = tuple[int, int, str]
"""Offsets in the source between which another text stands in a mutant."""


def places(source: str) -> list[Place]:
    """Every mutant of a module."""
    starts = [0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    tree = ast.parse(source)
    found: list[Place] = []

    def span(node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset

    def text(node: ast.expr) -> str:
        return source.encode()[slice(*span(node))].decode()

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            operator = COMPARISONS[type(node.ops[0])]
            found.append((*span(node), f"{text(node.left)} {operator} {text(node.comparators[0])}"))
        elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            new = f"({text(node.left)}) {OPERATORS[type(node.op)]} ({text(node.right)})"
            found.append((*span(node), f"({new})"))
        elif isinstance(node, ast.BoolOp):
            word = " or " if isinstance(node.op, ast.And) else " and "
            found.append((*span(node), f"({word.join(f'({text(value)})' for value in node.values)})"))
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
            found.append((*span(node), str(not node.value)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            found.append((*span(node), repr(node.value + 1)))
            found.append((*span(node), f"({node.value - 1!r})"))
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub | ast.Invert):
            found.append((*span(node), f"({text(node.operand)})"))
        elif isinstance(node, ast.Name) and node.id in NAMES:
            found.append((*span(node), NAMES[node.id]))
        elif isinstance(node, ast.Attribute) and node.attr in NAMES:
            found.append((*span(node), f"{text(node.value)}.{NAMES[node.attr]}"))
        elif isinstance(node, ast.If | ast.IfExp | ast.While):
            found.append((*span(node.test), f"not ({text(node.test)})"))
        elif isinstance(node, ast.AugAssign | ast.Raise) or (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
        ):
            found.append((*span(node), "pass"))
        for name, child in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list") or isinstance(node, ast.Raise | ast.JoinedStr):
                continue
            for part in child if isinstance(child, list) else [child]:
                if isinstance(part, ast.AST):
                    visit(part)

    visit(tree)
    return found


class Changed(importlib.abc.MetaPathFinder, importlib.abc.SourceLoader):
    """Finds one module in a changed text."""

    def __init__(self, name: str, path: str, text: bytes) -> None:
        self.name, self.path, self.text = name, path, text

    def find_spec(self, fullname: str, path: object, target: object = None):
        """See MetaPathFinder."""
        del path, target
        return (
            importlib.util.spec_from_file_location(fullname, self.path, loader=self) if fullname == self.name else None
        )

    def get_filename(self, fullname: str) -> str:
        """See SourceLoader."""
        del fullname
        return self.path

    def get_data(self, path: str) -> bytes:
        """The changed text; compiled files of the module as it is do not count."""
        if path != self.path:
            raise OSError(path)
        return self.text


def seconds_of(name: str, path: Path, text: bytes, arguments: list[str], most: float) -> tuple[bool, float]:
    """(whether all tests passed, seconds) in a process of its own, which is ended after `most` seconds."""
    begun = time.monotonic()
    child = os.fork()
    if child == 0:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        os.setsid()
        sys.meta_path.insert(0, Changed(name, str(path), text))
        import pytest

        try:
            os._exit(min(pytest.main(["-q", "-x", "-p", "no:cacheprovider", "-p", "no:randomly", *arguments]), 100))
        finally:
            os._exit(99)
    while time.monotonic() - begun < most:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status == 0, time.monotonic() - begun
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False, time.monotonic() - begun


def lines(source: bytes, place: Place) -> Iterator[str]:
    """The lines of a mutant, before and after."""
    start, end, new = place
    first, last = source.rfind(b"\n", 0, start) + 1, source.find(b"\n", end)
    number = source[:start].count(b"\n") + 1
    yield f"  line {number}: {source[first:last].decode().strip()}"
    yield f"      ->  {(source[first:start] + new.encode() + source[end:last]).decode().strip()}"


def main() -> int:
    """Print survivors, and how many there are."""
    parser = argparse.ArgumentParser(description=inspect.cleandoc(__doc__ or "").splitlines()[0])
    parser.add_argument("module", type=Path)
    parser.add_argument("--tests", nargs="+", required=True, help="arguments of pytest")
    parser.add_argument("--count", type=int, default=15)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for library in PRELOADED:
        importlib.import_module(library)
    path = options.module.resolve()
    name = ".".join(path.relative_to(Path("src").resolve()).with_suffix("").parts)
    source = path.read_bytes()
    passed, usual = seconds_of(name, path, source, options.tests, 600)
    if not passed:
        print(f"{options.module}: the tests fail without a change", file=sys.stderr)
        return 1
    every = [place for place in places(source.decode()) if source[place[0] : place[1]].decode() != place[2]]
    drawn = random.Random(options.seed).sample(every, min(options.count, len(every)))
    survivors = 0
    for start, end, new in sorted(drawn):
        text = source[:start] + new.encode() + source[end:]
        try:
            compile(text, str(path), "exec")
        except SyntaxError:
            drawn.remove((start, end, new))
            continue
        survived, _ = seconds_of(name, path, text, options.tests, 4 * usual + 5)
        survivors += survived
        if survived:
            print(*lines(source, (start, end, new)), sep="\n", flush=True)
    print(
        f"{options.module}: {len(drawn)} of {len(every)} mutants, {survivors} survive (tests {usual:.0f} s)", flush=True
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
