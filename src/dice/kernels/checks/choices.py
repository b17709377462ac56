"""Where a program chooses: a condition, and what runs under each of its outcomes, in all the spellings that Python has."""

from __future__ import annotations

import ast
import functools
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from dice.kernels.checks.extensions import extension_names
from dice.kernels.checks.made_from import made_from
from dice.kernels.checks.python_names import identifier_of
from dice.kernels.checks.python_source import PythonSource
from dice.kernels.checks.torch_calls import names_computation, torch_computations
from dice.kernels.source.lexer import words
from dice.python_scope import Function, own_nodes

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
_PICKS = words("max min sorted sort nsmallest nlargest")
"""Functions and methods that put what they are given in the order that a key says."""
_DRAWS = words("choice choices sample shuffle")
_COUNTED = words("range repeat islice")
"""Functions whose result is as long as an argument says."""
_FAR = 6
_MOST = 100
"""Values of a name that are looked at."""
_FEW = 4
"""Functions that a `try` calls which are looked into: each of many tries would read all of many functions."""
_LEAVES = ast.Return | ast.Raise


@dataclass(frozen=True, eq=False)
class Outcomes:
    """What runs under each outcome of a condition alone: of an `if`, its body and its `else`. Choices may share them."""

    blocks: Sequence[Sequence[ast.AST]]
    behind: ast.stmt | None = None
    """The statement behind which an outcome that does not leave goes on; of an expression none."""


@dataclass(frozen=True)
class Choice:
    """Conditions, and what runs under each of their outcomes."""

    node: ast.AST
    conditions: Sequence[ast.expr]
    outcomes: Outcomes
    repeats: bool = False
    """Whether it asks again after each round, as a loop does."""

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


class Work(NamedTuple):
    """What statements or expressions do when they run."""

    launches: bool = False
    """They reach an extension, or replay a CUDA graph."""
    computes: bool = False
    """They compute with PyTorch, or name a function that does."""

    def __or__(self, other: Work) -> Work:
        return Work(self.launches or other.launches, self.computes or other.computes)


def is_between_both(ways: Set[Work]) -> bool:
    """Whether some outcome launches kernels, and another one computes with PyTorch and launches none."""
    return any(each.launches for each in ways) and Work(launches=False, computes=True) in ways


class WorkOf:
    """The work of blocks and of outcomes. Each statement is read once, however many choices lead to it."""

    def __init__(self, source: PythonSource) -> None:
        self._source = source
        extensions = extension_names(source)
        # What a graph runs is judged by other rules.
        replaying = {"replay"} if source.mentions("CUDAGraph") else set[str]()
        launches = (node for name in extensions | replaying for node in source.mentions(name))
        computes = (node for node in source.nodes if names_computation(source, node))
        self._launching = source.leading_to(launches)
        self._computing = source.leading_to([*torch_computations(source, source.nodes), *computes])
        self._returning = source.around(node for node in source.nodes if isinstance(node, ast.Return))
        self._behind: dict[ast.AST, Work | None] = {}
        self._ways: dict[Outcomes, Set[Work]] = {}
        self._only_launch: dict[Outcomes, bool] = {}
        self._in_order: dict[str, Sequence[ast.expr]] = {}
        self._tables: dict[tuple[str, Work | None], Sequence[Outcomes]] = {}

    def of(self, block: Iterable[ast.AST]) -> Work:
        """The work of a block."""
        launches = computes = False
        for node in block:
            launches |= node in self._launching
            computes |= node in self._computing
        return Work(launches, computes)

    def ways(self, outcomes: Outcomes) -> Set[Work]:
        """The work from each outcome to the end of the function, but for those that end with an error."""
        if outcomes not in self._ways:
            ways = {self._way(block, outcomes.behind) for block in outcomes.blocks}
            self._ways[outcomes] = {way for way in ways if way is not None}
        return self._ways[outcomes]

    def are_both(self, outcomes: Outcomes) -> bool:
        """Whether some outcome launches kernels, or names a function that does, and another one has only PyTorch's."""
        return is_between_both(self.ways(outcomes)) or self.name_both(outcomes)

    def name_both(self, outcomes: Outcomes) -> bool:
        """Whether outcomes leave one name to a function that launches and to one of PyTorch's: `run = torch.relu`."""
        named = [dict(self._functions(block)) for block in outcomes.blocks]
        for name in {name for each in named for name in each}:
            left = {each.get(name) or self._before(name, outcomes.behind) for each in named}
            if is_between_both({self.of([value]) for value in left if value is not None}):
                return True
        return False

    def _before(self, name: str, statement: ast.stmt | None) -> ast.expr | None:
        """The function that a name has when a statement begins: the last it was given in the blocks around."""
        if statement is None:
            return None
        around = {*self._source.ancestors(statement)}
        if name not in self._in_order:
            self._in_order[name] = sorted(self._source.values(name), key=lambda value: value.lineno)
        values = self._in_order[name]
        end = bisect_left(values, statement.lineno, key=lambda value: value.lineno)
        for value in reversed(values[max(0, end - _MOST) : end]):
            given = self._source.parent(value)
            if isinstance(given, ast.Assign) and self._source.parent(given) in around and _is_function(value):
                return value
        return None

    def _functions(self, block: Iterable[ast.AST]) -> Iterator[tuple[str, ast.expr]]:
        """Names that a block gives to functions that work."""
        for node in block:
            if isinstance(node, ast.Assign) and _is_function(node.value) and any(self.of([node.value])):
                yield from ((name, node.value) for name in map(identifier_of, node.targets) if name)

    def only_launch(self, outcomes: Outcomes) -> bool:
        """Whether no outcome computes with PyTorch, and none leaves the function without an extension."""
        if outcomes not in self._only_launch:
            self._only_launch[outcomes] = all(map(self._only_launches, outcomes.blocks))
        return self._only_launch[outcomes]

    def tables(self, name: str, default: Sequence[ast.expr] | None) -> Sequence[Outcomes]:
        """Tables that a name stands for; of those that do the same, one."""
        key = (name, None if default is None else self.of(default))
        if key not in self._tables:
            tables = (_table(value, default) for value in self._source.values(name))
            found = {(frozenset(self.ways(each)), self.only_launch(each)): each for each in tables if each is not None}
            self._tables[key] = [*found.values()]
        return self._tables[key]

    def _only_launches(self, block: Sequence[ast.AST]) -> bool:
        launches, computes = self.of(block)
        return not computes and (launches or self._returning.isdisjoint(block))

    def _way(self, block: Sequence[ast.AST], behind: ast.stmt | None) -> Work | None:
        """The work up to the first statement that leaves the function; None where that is an error."""
        end = next((place for place, node in enumerate(block) if isinstance(node, _LEAVES)), None)
        if end is not None:
            return None if isinstance(block[end], ast.Raise) else self.of(block[: end + 1])
        rest = self._from(self._source.successors.get(behind)) if behind is not None else Work()
        return None if rest is None else self.of(block) | rest

    def _from(self, node: ast.AST | None) -> Work | None:
        """The way that begins with a statement and goes on with those that follow it."""
        path: list[ast.AST] = []
        while node is not None and node not in self._behind:
            path.append(node)
            node = None if isinstance(node, _LEAVES) else self._source.successors.get(node)
        rest = Work() if node is None else self._behind[node]
        for each in reversed(path):
            rest = None if rest is None or isinstance(each, ast.Raise) else self.of([each]) | rest
            self._behind[each] = rest
        return rest


def _is_function(value: ast.expr) -> bool:
    """Whether it names a function, or is one, and calls none."""
    return isinstance(value, ast.Name | ast.Attribute | ast.Lambda)


@functools.lru_cache(maxsize=8)
def work_of(source: PythonSource) -> WorkOf:
    """The work of a file's statements."""
    return WorkOf(source)


def _of_statement(source: PythonSource, node: ast.stmt) -> Iterator[Choice]:
    match node:
        case ast.If(test=condition) | ast.While(test=condition, body=[*_, ast.Return() | ast.Break()]):
            yield Choice(node, [condition], Outcomes([node.body, node.orelse], node))
        case ast.While():
            yield Choice(node, [node.test], Outcomes([node.body, []]), repeats=True)
        case ast.For() if isinstance(node.body[-1], ast.Return | ast.Break) or _is_counted(source, node.iter):
            yield Choice(node, [node.iter], Outcomes([node.body, node.orelse], node))
        case ast.Match():
            yield Choice(node, [node.subject], Outcomes([*(case.body for case in node.cases), []], node))
        case ast.Try() | ast.TryStar():
            handled = [handler.body for handler in node.handlers if not raises(handler.body)]
            outcomes = Outcomes([*handled, [*node.body, *node.orelse]], node)
            for failing, condition in _failures(source, node.body) if handled else ():
                yield Choice(failing, [condition], outcomes)
            for handler in node.handlers:
                if handler.type is not None and not raises(handler.body):
                    yield Choice(handler, [handler.type], outcomes)
        case ast.With() if _suppresses(source, node):
            outcomes = Outcomes([[], node.body], node)
            for failing, condition in _failures(source, node.body):
                yield Choice(failing, [condition], outcomes)


def _of_expression(source: PythonSource, node: ast.AST) -> Iterator[Choice]:
    match node:
        case ast.IfExp():
            yield Choice(node, [node.test], Outcomes([[node.body], [node.orelse]]))
        case ast.BoolOp(values=[first, *others]):  # one choice, not one for each value: there may be thousands
            yield Choice(node, node.values[:-1], Outcomes([[first], others]))
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
            made = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
            outcomes = Outcomes([made, []])
            for part in node.generators:
                counted = [part.iter] if _is_counted(source, part.iter) else []
                yield from (Choice(node, [condition], outcomes) for condition in [*part.ifs, *counted])
        case ast.Set(elts=[_, _, *_] as elements):  # whose order may pick one of them
            yield Choice(node, [node], Outcomes([[element] for element in elements]))
        case ast.Subscript(ctx=ast.Load()):
            yield from (Choice(node, [node.slice], table) for table in _tables(source, node.value, None))
        case ast.Call(func=ast.Attribute(value=value, attr=name), args=[key, *others]) if name in _LOOKUPS:
            yield from (Choice(node, [key], table) for table in _tables(source, value, others))
        case ast.Call(func=ast.Name(id="next"), args=[iterator, default]):
            yield Choice(node, [iterator], Outcomes([[iterator], [default]]))
        case ast.Call(func=function) if identifier_of(function) in _PICKS | _DRAWS:
            keys: list[ast.expr] = [item.value for item in node.keywords if item.arg == "key"]
            conditions = [node] if identifier_of(function) in _DRAWS else keys
            yield from (Choice(node, conditions, table) for table in _picked_from(source, node) if conditions)
        case ast.Call() if (place := _SIEVES.get(source.dotted(node.func) or "")) is not None:
            for condition in node.args[place : place + 1]:
                others = [item for item in node.args if item is not condition]
                yield Choice(node, [condition], Outcomes([others, []]))


def _picked_from(source: PythonSource, call: ast.Call) -> Iterator[Outcomes]:
    """The outcomes of `max(functions, key=...)`, `max(first, second, key=...)` and `functions.sort(key=...)`."""
    if len(call.args) > 1 and not isinstance(call.args[0], ast.Constant):
        yield Outcomes([[item] for item in call.args])
    for held in [*call.args, *([call.func.value] if isinstance(call.func, ast.Attribute) else [])]:
        yield from _tables(source, held, None)


def _tables(source: PythonSource, value: ast.expr, default: Sequence[ast.expr] | None) -> Iterator[Outcomes]:
    """The outcomes of every table with something to choose in it that an expression may stand for; of tables with one name
    that do the same, one. default: what stands for what is in none of them."""
    if (table := _table(value, default)) is not None:
        yield table
    yield from work_of(source).tables(identifier_of(value) or "", default)


def _table(value: ast.expr, default: Sequence[ast.expr] | None) -> Outcomes | None:
    items = value.values if isinstance(value, ast.Dict) else getattr(value, "elts", [])
    blocks: list[Sequence[ast.AST]] = [[item] for item in items]
    if not blocks or (default is None and len(blocks) == 1):
        return None
    return Outcomes(blocks if default is None else [*blocks, default])


def _suppresses(source: PythonSource, node: ast.With) -> bool:
    managers = (item.context_expr for item in node.items)
    return any(name == "contextlib.suppress" for _, name in source.calls(managers))


def _failures(source: PythonSource, block: Sequence[ast.stmt]) -> Iterator[tuple[ast.AST, ast.expr]]:
    """What ends in an error by a condition, with it: `assert`, `if` before `raise`, and a division by a truth; also in
    the functions that it calls itself."""
    called = {name for node in own_nodes(block) if isinstance(node, ast.Call) and (name := identifier_of(node.func))}
    helpers = [item for name in sorted(called) for item in source.definitions(name) if isinstance(item, Function)]
    bodies = (part for helper in helpers[:_FEW] for part in _may_fail(helper))
    for node in (*own_nodes(block), *bodies):
        match node:
            case ast.Assert(test=condition) | ast.If(test=condition, body=[*_, ast.Raise()]):
                yield node, condition
            case ast.BinOp(op=ast.Div() | ast.FloorDiv() | ast.Mod(), right=condition) if condition in _truths(source):
                yield node, condition


@functools.lru_cache(maxsize=256)
def _may_fail(helper: Function) -> Sequence[ast.AST]:
    """Parts of a function that end in an error by a condition."""
    failing = (node for node in own_nodes(helper.body) if isinstance(node, ast.Assert | ast.If | ast.BinOp))
    return [*islice(failing, _MOST)]


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
    return any(count in _truths(source) for count in counts)


@functools.lru_cache(maxsize=8)
def _truths(source: PythonSource) -> Set[ast.AST]:
    """Expressions that are 0 or 1 by a condition, also through variables."""

    def is_truth(node: ast.AST) -> bool:
        match node:
            case ast.Compare() | ast.UnaryOp(op=ast.Not()) | ast.Call(func=ast.Name(id="bool")):
                return True
        return False

    def keeps(node: ast.AST) -> bool:
        match node:
            case ast.Name() | ast.Call(func=ast.Name(id="int" | "float"), args=[_]):
                return True
        return is_truth(node)

    return made_from(source, filter(is_truth, source.nodes), source.values, _FAR, hides=lambda node: not keeps(node))
