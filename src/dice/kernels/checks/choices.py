"""Where a program chooses: a condition, and what runs under each of its outcomes, in all the spellings that Python has."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dice.kernels.checks.extensions import extension_names
from dice.kernels.checks.python_names import identifier_of, identifiers
from dice.kernels.checks.python_source import PythonSource
from dice.kernels.checks.torch_calls import names_computation, torch_computations
from dice.kernels.source.lexer import words
from dice.python_scope import own_nodes

_LOOKUPS = words("get pop setdefault __getitem__")
"""Methods that take one value out of a table."""
_SIEVES = {
    "filter": 0,
    "itertools.filterfalse": 0,
    "itertools.takewhile": 0,
    "itertools.dropwhile": 0,
    "itertools.compress": 1,
}
"""Functions that let through what a condition says, with its place among their arguments."""
_COUNTED = words("range repeat islice")
"""Functions whose result is as long as an argument says."""
_FAR = 6


@dataclass(frozen=True)
class Choice:
    """A condition, and what runs under each of its outcomes."""

    node: ast.AST
    condition: ast.expr
    outcomes: Sequence[Sequence[ast.AST]]
    """What runs under one outcome alone: of an `if`, its body and its `else`."""
    behind: Sequence[ast.AST] = ()
    """What runs after an outcome that does not leave."""
    repeats: bool = False
    """Whether it asks again after each round, as a loop does."""

    @property
    def ways(self) -> list[list[ast.AST]]:
        """What runs from each outcome to the end of the function."""
        return [_until_left([*outcome, *self.behind]) for outcome in self.outcomes]

    @property
    def looks_up(self) -> bool:
        """Whether the condition's value itself picks the outcome, without a comparison."""
        return isinstance(self.node, ast.Match | ast.Subscript) or (
            isinstance(self.node, ast.Call) and identifier_of(self.node.func) in _LOOKUPS
        )


def choices(source: PythonSource, nodes: Iterable[ast.AST]) -> Iterator[Choice]:
    """The choices that `nodes` make, each by itself."""
    for node in nodes:
        if isinstance(node, ast.stmt):
            yield from _of_statement(source, node)
        else:
            yield from _of_expression(source, node)


def raises(block: Sequence[ast.AST]) -> bool:
    """Whether statements end with an error."""
    return bool(block) and isinstance(block[-1], ast.Raise)


def work(source: PythonSource, block: Iterable[ast.AST]) -> tuple[bool, bool]:
    """Whether it reaches an extension or replays a CUDA graph, and whether it computes with PyTorch or names a function that
    does."""
    reached = source.reach_from([*block])
    names = identifiers(reached)
    # What a graph runs is judged by other rules.
    replays = "replay" in names and "CUDAGraph" in identifiers(source.nodes)
    computes = next(torch_computations(source, reached), None) is not None
    computes = computes or any(names_computation(source, node) for node in reached)
    return replays or bool(names & extension_names(source)), computes


def _of_statement(source: PythonSource, node: ast.stmt) -> Iterator[Choice]:
    match node:
        case ast.If(test=condition) | ast.While(test=condition, body=[*_, ast.Return() | ast.Break()]):
            yield Choice(node, condition, [node.body, node.orelse], source.after(node))
        case ast.While():
            yield Choice(node, node.test, [node.body, []], repeats=True)
        case ast.For() if isinstance(node.body[-1], ast.Return | ast.Break) or _is_counted(source, node.iter):
            yield Choice(node, node.iter, [node.body, node.orelse], source.after(node))
        case ast.Match():
            yield Choice(node, node.subject, [*(case.body for case in node.cases), []], source.after(node))
        case ast.Try() | ast.TryStar():
            handled = [handler.body for handler in node.handlers if not raises(handler.body)]
            outcomes = [*handled, [*node.body, *node.orelse]]
            for failing, condition in _failures(source, node.body) if handled else ():
                yield Choice(failing, condition, outcomes, source.after(node))
            for handler in node.handlers:
                if handler.type is not None and not raises(handler.body):
                    yield Choice(handler, handler.type, outcomes, source.after(node))
        case ast.With() if _suppresses(source, node):
            for failing, condition in _failures(source, node.body):
                yield Choice(failing, condition, [[], node.body], source.after(node))


def _of_expression(source: PythonSource, node: ast.AST) -> Iterator[Choice]:
    match node:
        case ast.IfExp():
            yield Choice(node, node.test, [[node.body], [node.orelse]])
        case ast.BoolOp(values=[first, *others]):  # one choice, not one for each value: there may be thousands
            yield Choice(node, ast.BoolOp(node.op, node.values[:-1]), [[first], others])
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
            made = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
            for part in node.generators:
                counted = [part.iter] if _is_counted(source, part.iter) else []
                yield from (Choice(node, condition, [made, []]) for condition in [*part.ifs, *counted])
        case ast.Subscript(ctx=ast.Load()):
            tables = (table for table in _tables(source, node.value) if len(table) > 1)
            yield from (Choice(node, node.slice, table) for table in tables)
        case ast.Call(func=ast.Attribute(attr=name), args=[key, *others]) if name in _LOOKUPS:
            for table in _tables(source, node.func.value):  # type: ignore[attr-defined]
                yield Choice(node, key, [*table, others])
        case ast.Call() if (place := _SIEVES.get(source.dotted(node.func) or "")) is not None:
            for condition in node.args[place : place + 1]:
                yield Choice(node, condition, [[item for item in node.args if item is not condition], []])


def _tables(source: PythonSource, value: ast.expr) -> Iterator[list[list[ast.expr]]]:
    """The outcomes of every table with something in it that an expression may stand for."""
    for table in [value, *source.values(identifier_of(value) or "")]:
        items = table.values if isinstance(table, ast.Dict) else getattr(table, "elts", [])
        if items:
            yield [[item] for item in items]


def _suppresses(source: PythonSource, node: ast.With) -> bool:
    managers = (item.context_expr for item in node.items)
    return any(name == "contextlib.suppress" for _, name in source.calls(managers))


def _failures(source: PythonSource, block: Sequence[ast.stmt]) -> Iterator[tuple[ast.AST, ast.expr]]:
    """What ends in an error by a condition, with it: `assert`, `if` before `raise`, and a division by a truth."""
    for node in own_nodes(block):
        match node:
            case ast.Assert(test=condition) | ast.If(test=condition, body=[*_, ast.Raise()]):
                yield node, condition
            case ast.BinOp(op=ast.Div() | ast.FloorDiv() | ast.Mod(), right=condition) if _is_truth(source, condition):
                yield node, condition


def _is_counted(source: PythonSource, iterable: ast.expr) -> bool:
    """Whether a condition says if it has elements at all: `range(int(n > 3))`, `[x] * (n > 3)`, `[x][: n > 3]`."""
    counts: list[ast.expr | None] = []
    match iterable:
        case ast.Call(func=function, args=arguments) if identifier_of(function) in _COUNTED:
            counts = [*arguments]
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            counts = [left, right]
        case ast.Subscript(slice=ast.Slice(lower=lower, upper=upper)):
            counts = [lower, upper]
    return any(_is_truth(source, count) for count in counts)


def _is_truth(source: PythonSource, value: ast.expr | None, depth: int = 0) -> bool:
    """Whether a number is 0 or 1 by a condition."""
    match value:
        case ast.Compare() | ast.UnaryOp(op=ast.Not()) | ast.Call(func=ast.Name(id="bool")):
            return True
        case ast.Call(func=ast.Name(id="int" | "float"), args=[inner]):
            return _is_truth(source, inner, depth)
        case ast.Name() if depth < _FAR:
            return any(_is_truth(source, made, depth + 1) for made in source.values(value.id))
    return False


def _until_left(block: Sequence[ast.AST]) -> list[ast.AST]:
    """The statements up to the first that leaves the function."""
    end = next((place for place, node in enumerate(block, 1) if isinstance(node, ast.Return | ast.Raise)), len(block))
    return [*block[:end]]
