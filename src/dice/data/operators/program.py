"""A file that is interpreted: its definitions, the operators that were found, and the limits of the work."""

from __future__ import annotations

import ast

from dice.data.operators.values import TENSOR, Value
from dice.python_scope import classes_in, functions_in, import_aliases

MAX_OPERATORS = 4096
"""More are not counted: they change no level of difficulty."""
MAX_STEPS = 100_000
"""Statements that are interpreted; a longer program is judged by what was found until then."""


class Enough(Exception):
    """A limit of steps or operators is reached."""


class Program:
    """One file."""

    def __init__(self, tree: ast.Module) -> None:
        self.body = tree.body
        self.aliases = import_aliases(tree)
        self.classes = classes_in(tree.body)
        self.functions = functions_in(tree.body)
        self.globals: dict[str, Value] = {}
        """Values of the names that the file assigns at its top level."""
        self.found: list[str] = []
        """Operators, in the order in which they are applied."""
        self._steps = 0

    def step(self) -> None:
        """Count one statement. Raises Enough."""
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise Enough

    def emit(self, name: str) -> Value:
        """Record one operator; its result is a tensor. Raises Enough."""
        self.found.append(name)
        if len(self.found) >= MAX_OPERATORS:
            raise Enough
        return TENSOR
