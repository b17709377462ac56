"""What the interpreter knows: of a value whether it is a tensor, a module or a list; of the file its names and operators."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from dice.python_scope import Definition, Function, classes_in, functions_in, import_aliases

MAX_TRIPS = 64
"""Rounds of a loop that are interpreted: enough to tell every level of difficulty."""
MAX_ITEMS = 4096
"""Elements of a list that are followed."""


class Instance(Protocol):
    """An object of a class of the file."""

    attributes: dict[str, Value]
    """What its methods store on `self`."""
    methods: dict[str, Function]

    def forward(self, arguments: list[Value] | None = None) -> Value:
        """What calling it gives."""
        ...


@dataclass
class Value:
    """What is known of a value."""

    kind: Literal["tensor", "module", "list", "other"] = "other"
    name: str = ""
    """Operator of a module or of a function that is passed around."""
    instance: Instance | None = None
    """A module of a class of the file."""
    definition: Definition | None = None
    """A class or function of the file that is passed around; `closure` is what a nested function sees."""
    closure: dict[str, Value] = field(default_factory=dict)
    items: list[Value] = field(default_factory=list)
    """Known elements of a list, tuple, dict or container of modules."""
    trips: int | None = None
    """Length of a range, or an int that is known."""


TENSOR, OTHER = Value("tensor"), Value()


def constant_int(node: ast.expr | None) -> int | None:
    """The int that `node` writes down."""
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


def flat(values: Sequence[Value]) -> list[Value]:
    """The values with lists replaced by their elements."""
    return [inner for one in values for inner in (one.items if one.kind == "list" else [one])]


def holds_tensor(value: Value) -> bool:
    """Whether the value is a tensor or a list with one in it."""
    return value.kind == "tensor" or any(holds_tensor(item) for item in value.items)


def either(values: Sequence[Value]) -> Value:
    """The one of several possible values of which most is known."""
    return next((one for one in values if one.kind != "other"), values[0])


def arithmetic(operator: ast.operator, left: int | None, right: int | None) -> int | None:
    """Result for two known ints."""
    if left is None or right is None:
        return None
    match operator:
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.Mult():
            return left * right
        case ast.FloorDiv() if right:
            return left // right
        case _:
            return None


VIEWS = frozenset({"children", "copy", "items", "keys", "modules", "values"})
"""Methods of containers that give their elements."""


def view(name: str, items: Sequence[Value]) -> Value:
    """What a method of VIEWS, or enumerate, gives for a container of `items`."""
    if name == "items":
        return Value("list", items=[Value("list", items=[OTHER, item]) for item in items])
    return Value("list", items=[OTHER for _ in items] if name == "keys" else list(items))


def builtin(name: str, values: Sequence[Value]) -> Value:
    """What a Python builtin gives."""
    first = values[0] if values else OTHER
    if name == "range":
        bounds = [one.trips for one in values]
        if any(bound is None for bound in bounds) or not bounds:
            return OTHER
        rounds = range(*[bound or 0 for bound in bounds[:3]]) if 0 not in bounds[2:] else range(0)
        return Value(trips=(rounds[-1] - rounds[0]) // rounds.step + 1 if rounds else 0)  # len() knows no large ones
    if name == "len":
        return Value(trips=len(first.items) or None)
    if name == "enumerate":
        return view("items", first.items)
    if name == "zip":
        rows = zip(*(one.items for one in values), strict=False)
        return Value("list", items=[Value("list", items=list(row)) for row in rows])
    if name in ("max", "min") and any(one.kind == "tensor" for one in values):
        return TENSOR
    if name in ("sum", "abs", "pow", "round") and any(map(holds_tensor, values)):
        return TENSOR
    return first if name in ("reversed", "list", "tuple") else OTHER


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

    def restart(self) -> None:
        """Count anew, from no statements and no operators."""
        self.found.clear()
        self._steps = 0

    def emit(self, name: str) -> Value:
        """Record one operator; its result is a tensor. Raises Enough."""
        self.found.append(name)
        if len(self.found) >= MAX_OPERATORS:
            raise Enough
        return TENSOR
