"""Ways to work that are kept between calls, of which another one is taken in a later call.

Nothing asks a condition here: a generator yields first a kernel and then PyTorch, an iterator goes round over both, a list of
both is turned or taken from, an attribute that calls a kernel is given PyTorch's function for the next call. The other kind
asks one: whether a call has been here before.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dice.kernels.checks.between_calls import BetweenCalls, Thing, between_calls, yields
from dice.kernels.checks.choices import Work, choices, is_between_both, work_of
from dice.kernels.checks.extensions import builds
from dice.kernels.checks.made_from import made_from
from dice.kernels.checks.once import once
from dice.kernels.checks.python_names import identifier_of
from dice.kernels.checks.python_source import PythonSource
from dice.python_scope import Function

_FAR = 3
"""Names by which a container of functions is followed."""


def kept_ways(source: PythonSource) -> Iterator[ast.AST]:
    """Where forward asks for a thing that holds kernels and PyTorch's functions, and changes by a call; and where it
    chooses between both by what only tells whether there was a call."""
    differing = between_calls(source)
    turned = {thing for thing in differing.stepped if is_between_both(_held(source, differing, thing))}
    turned |= set(_replaced(source, differing))
    for thing in turned:
        yield from (node for node in source.mentions(thing[1]) if node in source.in_forward and _asks(node))
    yield from _by_flags(source, differing)


def _asks(node: ast.AST) -> bool:
    return isinstance(getattr(node, "ctx", None), ast.Load)


def _held(source: PythonSource, differing: BetweenCalls, thing: Thing) -> set[Work]:
    """The work of each function that a thing, or what is stored in it, is ever given."""
    values = [*differing.values(thing)]
    for mention in source.mentions(thing[1]):
        match source.parent(mention):
            case ast.Subscript(ctx=ast.Store()) as element:
                above = source.parent(element)
                values += [above.value] if isinstance(above, ast.Assign) else []
    return {work for value in values for work in _works(source, value)}


def _works(source: PythonSource, value: ast.expr, far: int = 0) -> set[Work]:
    """The work of each function in a container, of what a generator yields, or of one function."""
    waiting: list[tuple[ast.AST, int]] = [(value, far)]
    found: set[Work] = set()
    while waiting:
        part, far = waiting.pop()
        match part:
            case ast.Lambda(body=ast.IfExp(body=body, orelse=orelse)):
                found.update(work_of(source).of([each]) for each in (body, orelse))
            case ast.Lambda():
                found.add(work_of(source).of([part]))
            case ast.Attribute(value=ast.Call() as made):  # cycle([...]).__next__
                waiting.append((made, far + 1))
            case ast.Name() | ast.Attribute():
                name = identifier_of(part) or ""
                if far < _FAR and _containers(source, name):
                    found |= _works_inside(source, name, far + 1)
                elif any(work := work_of(source).of([part])):
                    found.add(work)
            case ast.Call(func=function, args=arguments):
                found |= _yielded(source, identifier_of(function) or "")
                owner = [function.value] if isinstance(function, ast.Attribute) else []
                waiting += [(each, far) for each in (*arguments, *owner, *(item.value for item in part.keywords))]
            case _:
                waiting += [(each, far) for each in ast.iter_child_nodes(part)]
    return found


@once
def _works_inside(source: PythonSource, name: str, far: int) -> set[Work]:
    """The work of what is in the containers that a name stands for."""
    return {work for value in _containers(source, name) for work in _works(source, value, far)}


@once
def _containers(source: PythonSource, name: str) -> list[ast.expr]:
    return [each for each in source.values(name) if _is_container(each)]


@once
def _yielded(source: PythonSource, name: str) -> set[Work]:
    """The work of what generators of a name yield."""
    given = (each.value for item in source.definitions(name) if isinstance(item, Function) for each in yields(item))
    return {work_of(source).of([each]) for each in given if each is not None}


def _is_container(value: ast.expr) -> bool:
    return isinstance(value, ast.List | ast.Tuple | ast.Dict | ast.Set | ast.BinOp | ast.ListComp) or (
        isinstance(value, ast.Call) and bool(value.args or value.keywords)
    )


def _replaced(source: PythonSource, differing: BetweenCalls) -> Iterator[Thing]:
    """Things that are a kernel's function or PyTorch's, and that forward makes the other one, whatever it is given."""
    for thing, value in differing.assigned():
        if not isinstance(value, ast.Name | ast.Attribute | ast.Lambda):
            continue
        if is_between_both({*_works(source, value), *_works_of(source, thing[1])}):
            yield thing


@once
def _works_of(source: PythonSource, name: str) -> set[Work]:
    """The work of all that a name is ever given."""
    return {work for value in source.values(name) for work in _works(source, value)}


def _by_flags(source: PythonSource, differing: BetweenCalls) -> Iterator[ast.AST]:
    """Choices between kernels and PyTorch by what forward sets in any call: `if self.first`, `if self.last is None`."""
    flags: set[Thing] = set()
    left: set[Thing] = set()
    for thing in {thing for thing, _ in differing.assigned()}:
        values = [each for each in source.values(thing[1]) if not isinstance(each, ast.Name | ast.Attribute)]
        if any(isinstance(each, ast.Call) and builds(source, each) for each in values):
            continue
        (flags if all(isinstance(each, ast.Constant) for each in values) else left).add(thing)
    asking = [node for node in source.in_forward if _tells(differing, node, flags, left)]
    made = made_from(source, asking, source.values, 1) if asking else frozenset[ast.AST]()
    work = work_of(source)
    for choice in choices(source, source.in_forward) if made else ():
        if not made.isdisjoint(choice.conditions) and is_between_both(work.ways(choice.outcomes)):
            yield choice.node


def _tells(differing: BetweenCalls, node: ast.AST, flags: set[Thing], left: set[Thing]) -> bool:
    match node:
        case ast.Name(ctx=ast.Load()) | ast.Attribute(ctx=ast.Load()):
            return not flags.isdisjoint(differing.things(node))
        case ast.Compare(left=asked, ops=[ast.Is() | ast.IsNot()], comparators=[ast.Constant()]):
            return not left.isdisjoint(differing.things(asked))
    return False
