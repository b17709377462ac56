"""Which functions of the file a call may run, and which of their parameters get what it gives them.

Calls that name the same are alike (`Callees.of`), so that many calls of many functions of one name take no product of both.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dice.kernels.checks.python_names import identifier_of
from dice.kernels.checks.python_source import PythonSource
from dice.kernels.source.lexer import words
from dice.python_scope import Function, functions_in, parameters, positional_parameters

Runs = Function | ast.Lambda
Place = int | str | None
"""Which argument of a call: the place among those without a name, or the name; None behind a `*`, where it may be any."""
_BOUND = words("self cls ctx")
"""First parameters that no call writes down."""
_CALLED = ("forward", "__call__")
"""Methods that run when an object is called."""
_FAR = 3
"""Names by which a function is followed."""


class Called(NamedTuple):
    """What a call names."""

    name: str
    """A function, or a variable that stands for one; with `methods`, a class."""
    methods: tuple[str, ...] = ()


class Callees:
    """The functions behind the calls of a file."""

    def __init__(self, source: PythonSource) -> None:
        self._source = source
        self._found: dict[Called, Sequence[Runs]] = {}

    @staticmethod
    def of(call: ast.Call) -> Called:
        """What a call names: a function, a variable, `Own.apply`, or the class of the object that it calls."""
        match call.func:
            case ast.Attribute(value=owner, attr="apply"):
                return Called(identifier_of(owner) or "", ("forward",))
            case ast.Call(func=maker):
                return Called(identifier_of(maker) or "", _CALLED)
            case function:
                return Called(identifier_of(function) or "")

    def functions(self, called: Called) -> Sequence[Runs]:
        """The functions that such a call may run."""
        if called not in self._found:
            found = self._methods(*called) if called.methods else self._named(called.name)
            self._found[called] = [*dict.fromkeys(found)]
        return self._found[called]

    def _named(self, name: str) -> Iterator[Runs]:
        for item in self._source.definitions(name):
            made = functions_in(item.body).get("__init__") if isinstance(item, ast.ClassDef) else item
            yield from [made] if made is not None else []
        names, seen = [name], {name}
        for _ in range(_FAR):
            values = [value for each in names for value in self._source.values(each)]
            names = [other for value in values if (other := _other_name(value)) and other not in seen]
            seen.update(names)
            for value in values:
                if isinstance(value, ast.Lambda):
                    yield value
                elif isinstance(value, ast.Call):
                    yield from self._methods(identifier_of(value.func) or "", _CALLED)
            for each in dict.fromkeys(names):
                yield from (item for item in self._source.definitions(each) if isinstance(item, Function))

    def _methods(self, owner: str, names: Sequence[str]) -> Iterator[Function]:
        for item in self._source.definitions(owner):
            if isinstance(item, ast.ClassDef):
                yield from (method for name in names if (method := self._source.method(item, name)) is not None)


def _other_name(value: ast.expr) -> str | None:
    return identifier_of(value) if isinstance(value, ast.Name | ast.Attribute) else None


@functools.lru_cache(maxsize=8)
def callees_of(source: PythonSource) -> Callees:
    """The functions behind the calls of a file."""
    return Callees(source)


def given(call: ast.Call) -> Iterator[tuple[ast.expr, Place]]:
    """The arguments of a call, each with its place."""
    starred = False
    for place, argument in enumerate(call.args):
        starred = starred or isinstance(argument, ast.Starred)
        yield argument, None if starred else place
    yield from ((keyword.value, keyword.arg) for keyword in call.keywords)


def takers(function: Runs, place: Place) -> list[str]:
    """The parameters that may get the argument at a place."""
    names = positional_parameters(function)
    names = names[1:] if names and names[0] in _BOUND else names
    packed = [one.arg for one in (function.args.vararg, function.args.kwarg) if one is not None]
    match place:
        case int():
            return names[place : place + 1] or packed[:1]
        case str():
            return [one.arg for one in parameters(function) if one.arg == place] or packed[-1:]
        case _:
            return [one.arg for one in parameters(function) if one.arg not in _BOUND]
