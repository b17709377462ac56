"""Which nodes are made from what a rule looks for: it is in them, or in what the names in them stand for."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Set

from dice.kernels.checks.python_source import PythonSource
from dice.python_scope import Function


def made_from(
    source: PythonSource,
    sought: Iterable[ast.AST],
    stands_for: Callable[[str], Iterable[ast.AST]],
    far: int,
    *,
    follows: Callable[[ast.AST], bool] = lambda mention: True,
    hides: Callable[[ast.AST], bool] = lambda node: False,
) -> Set[ast.AST]:
    """Every node from which at most `far` steps from a name to what it stands for lead to something `sought`.

    It goes from the sought nodes outwards, so that the time is that of one walk over the file, however many nodes are asked
    about. follows: whether a mention of a name is looked up. hides: whether what is in a node does not count.
    """
    found: set[ast.AST] = set()
    named: set[str] = set()
    near = [*sought]
    names: dict[ast.AST, list[str]] = {}
    if near:
        for name in source.mentioned:
            for value in stands_for(name):
                names.setdefault(value, []).append(name)
    for _ in range(far + 1):
        begun = len(found)
        fresh: list[str] = []
        for node in near:
            inner: ast.AST | None = node
            while inner is not None and inner not in found and not hides(inner):
                found.add(inner)
                fresh += [name for name in names.get(inner, ()) if name not in named]
                inner = source.parent(inner)
        if len(found) == begun:
            break
        named.update(fresh)
        near = [node for name in dict.fromkeys(fresh) for node in source.mentions(name) if follows(node)]
    return found


def assigned(source: PythonSource, left_out: Set[str] = frozenset()) -> Callable[[str], Iterable[ast.AST]]:
    """What a name is given by assignments, but for the names that are left out."""
    return lambda name: (
        value for value in source.values(name) if name not in left_out and isinstance(source.parent(value), ast.Assign)
    )


def returned(source: PythonSource, name: str) -> Iterator[ast.expr]:
    """What the functions of the file with this name return."""
    for item in source.definitions(name):
        for node in ast.walk(item) if isinstance(item, Function) else ():
            if isinstance(node, ast.Return) and node.value is not None:
                yield node.value
