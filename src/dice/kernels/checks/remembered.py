"""What forward remembers from call to call, in a comparison with its inputs.

What outlives a call is read by `between_calls`: attributes, variables of the file, defaults, other names for them. Here
belongs what such a thing is asked: whether it is an expression's value, and whether it holds an input.
"""

from __future__ import annotations

import ast
from collections.abc import Set

from dice.kernels.checks.between_calls import Thing, between_calls
from dice.kernels.checks.inputs import SAME
from dice.kernels.checks.made_from import returned
from dice.kernels.checks.python_names import identifier_of
from dice.kernels.checks.python_source import PythonSource

_HOLDERS = ("weakref.ref", "weakref.proxy", "copy.copy", "copy.deepcopy", "tuple", "list", "dict")


class Remembered:
    """Which expressions stand for what outlives a call.

    about: expressions that are made from a function's argument.
    """

    def __init__(self, source: PythonSource, about: Set[ast.AST]) -> None:
        self._source, self._about, self._between = source, about, between_calls(source)
        self._returns_kept: dict[str, bool] = {}
        self._wholes: dict[ast.expr, ast.expr] = {}
        self._names_input: dict[str, bool] = {}

    def is_kept(self, node: ast.expr) -> bool:
        """Whether an expression is a thing that outlives a call or a part of one, or a function's that returns such."""
        if any(self._is_own(thing, node) for thing in self._between.things(node)):
            return True
        called = self._whole(node)
        return isinstance(called, ast.Call) and self._gives_kept(identifier_of(called.func) or "")

    def _whole(self, node: ast.expr) -> ast.expr:
        """What an expression is an element of."""
        path: list[ast.expr] = []
        while isinstance(node, ast.Subscript | ast.Starred) and node not in self._wholes:
            path.append(node)
            node = node.value
        whole = self._wholes.get(node, node)
        self._wholes.update(dict.fromkeys(path, whole))
        return whole

    def values(self, node: ast.expr) -> list[ast.expr]:
        """What the things that an expression stands for are ever given."""
        return [value for thing in self._between.things(node) for value in self._between.values(thing)]

    def holds_input(self, node: ast.expr | None) -> bool:
        """Whether an expression is of a thing that is ever given an input, in whole or as a part."""
        return node is not None and any(map(self.is_input, self.values(node)))

    def is_input(self, node: ast.AST) -> bool:
        """Whether an expression is an input in another form, or has one among its parts; not what is computed from it."""
        match node:
            case ast.Name(id=name):
                return node in self._about and (name in self._source.arguments or self._names_one(name))
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Dict(values=parts):
                return any(map(self.is_input, parts))
            case ast.Call(func=ast.Attribute(value=owner, attr=name)) if name in SAME:
                return self.is_input(owner)
            case ast.Call(func=function, args=parts, keywords=named) if self._source.dotted(function) in _HOLDERS:
                return any(map(self.is_input, [*parts, *(each.value for each in named)]))
        return False

    def _gives_kept(self, name: str) -> bool:
        """Whether a function of the file returns what outlives a call."""
        if name not in self._returns_kept:
            self._returns_kept[name] = False  # while it is asked
            self._returns_kept[name] = any(map(self.is_kept, returned(self._source, name)))
        return self._returns_kept[name]

    def _names_one(self, name: str) -> bool:
        """Whether a variable is ever given an input."""
        if name not in self._names_input:
            self._names_input[name] = False
            self._names_input[name] = any(map(self.is_input, self._source.values(name)))
        return self._names_input[name]

    def _is_own(self, thing: Thing, node: ast.expr) -> bool:
        """Whether the file may give a thing its value: not what a library or a layer has (`torch.float32`), no function."""
        owner = node.value if isinstance(node, ast.Attribute) else None
        if thing[0] is None and (
            owner is None or (isinstance(owner, ast.Name) and owner.id not in self._source.aliases)
        ):
            return True
        return bool(self._between.values(thing))
