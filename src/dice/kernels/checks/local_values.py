"""What a local variable stands for where it is read: the last value that it was surely given there, not all it ever gets.

`t = table.get(key)`, and behind `if t is None`, `t = make()`: what is then stored in the table is made, not found in it.
"""

from __future__ import annotations

import ast
import functools

from dice.kernels.checks.numbers_read import scopes_of
from dice.kernels.checks.python_source import PythonSource
from dice.python_scope import Binding, Function

_MOST = 50
"""Bindings of a name that are compared."""
_IN_TURN = ast.If | ast.With
"""Statements whose blocks run once, after what they ask."""
_Place = tuple[int, int]
"""A block, and a statement's place in it."""


class LocalValues:
    """The values of a file's local variables, each at one place."""

    def __init__(self, source: PythonSource) -> None:
        self._source, self._scopes = source, scopes_of(source)
        self._places: dict[ast.AST, _Place] = {}
        self._found: dict[ast.Name, ast.expr | None] = {}
        self._behind: dict[ast.Name, ast.expr | None] = {}
        self._asked: dict[ast.stmt, set[ast.AST]] = {}
        for node in source.nodes:
            for _, block in ast.iter_fields(node):
                if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                    self._places |= {statement: (id(block), place) for place, statement in enumerate(block)}

    def at(self, name: ast.Name) -> ast.expr | None:
        """The one expression that a variable has its value from where it is read; None where that is not sure."""
        if name not in self._found:
            self._found[name] = self._look(name)
        return self._found[name]

    def behind(self, name: ast.Name) -> ast.expr | None:
        """What is no variable and stands behind one, through others; None where that is not sure."""
        path: list[ast.Name] = []
        value: ast.expr | None = name
        while isinstance(value, ast.Name) and value not in self._behind:
            path.append(value)
            value = self.at(value)
        found = self._behind[value] if isinstance(value, ast.Name) else value
        self._behind.update(dict.fromkeys(path, found))
        return found

    def _look(self, name: ast.Name) -> ast.expr | None:
        function = self._scopes.scope_of[name]
        if not isinstance(name.ctx, ast.Load) or not isinstance(function, Function):
            return None
        bindings = self._scopes.bindings[function].get(name.id, [])
        if len(bindings) > _MOST or any(not self._is_own(found, function) for found in bindings):
            return None  # a function inside gives it values, too
        held = [(found, self._around(found.node)) for found in bindings if not isinstance(found.node, ast.arg)]
        statement = self._source.statement_around(name)
        while isinstance(statement, ast.stmt) and statement is not function:
            block, place = self._places[statement]
            there = [(around[block], found) for found, around in held if block in around]
            if any(at == place and not self._comes_later(found, statement, name) for at, found in there):
                return None
            if before := [at for at, _ in there if at < place]:
                last = [found for at, found in there if at == max(before)]
                return last[0].value if len(last) == 1 and self._is_whole(last[0], block) else None
            statement = self._source.statement_around(statement)
        return None

    def _is_own(self, found: Binding, function: Function) -> bool:
        return isinstance(found.node, ast.arg) or self._scopes.scope_of[found.node] is function

    def _around(self, node: ast.AST) -> dict[int, int]:
        """The blocks around a binding, each with the place of the statement that the binding is in."""
        return dict(self._places[part] for part in (node, *self._source.ancestors(node)) if part in self._places)

    def _is_whole(self, found: Binding, block: int) -> bool:
        """Whether a statement of the block itself gives the name all of one value."""
        plain = isinstance(found.node, ast.Assign | ast.AnnAssign) and found.whole and found.value is not None
        return plain and self._places[found.node][0] == block

    def _comes_later(self, found: Binding, statement: ast.stmt, name: ast.Name) -> bool:
        """Whether a binding inside the statement that reads a name, or in one around, cannot be what is read."""
        if found.node is statement:  # n = n + 1: what is on the right comes first
            return isinstance(statement, ast.Assign) and statement.value in (name, *self._source.ancestors(name))
        if not isinstance(statement, _IN_TURN):
            return False
        if statement not in self._asked:
            self._asked[statement] = {part for each in _asked(statement) for part in ast.walk(each)}
        return found.node not in self._asked[statement]


def _asked(statement: ast.If | ast.With) -> list[ast.AST]:
    return [statement.test] if isinstance(statement, ast.If) else [*statement.items]


@functools.lru_cache(maxsize=8)
def local_values(source: PythonSource) -> LocalValues:
    """The values of a file's local variables."""
    return LocalValues(source)
