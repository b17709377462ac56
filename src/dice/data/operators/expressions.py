"""The values of expressions in a module's forward: tensors are distinguished from everything else, operators are recorded."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Sequence

from dice.data.operators.torch_calls import BINARY, COMPARE, UNARY
from dice.data.operators.values import (
    MAX_ITEMS,
    MAX_TRIPS,
    OTHER,
    TENSOR,
    Instance,
    Program,
    Value,
    arithmetic,
    constant_int,
    either,
)
from dice.python_scope import dotted_name, root_name


class Expressions(ABC):
    """Evaluates expressions over the names of one call. The subclass defines what a call inside an expression does."""

    def __init__(self, program: Program, owner: Instance | None) -> None:
        self.program, self.owner = program, owner
        self.self_name: str | None = None
        self.names: dict[str, Value] = {}

    @abstractmethod
    def called(self, node: ast.Call) -> Value:
        """What a call gives."""

    def assign(self, target: ast.expr, value: Value) -> None:
        """Bind the names and attributes of a target; an assignment to elements of a tensor is an operator."""
        match target:
            case ast.Name():
                self.names[target.id] = value
            case ast.Tuple() | ast.List():
                part = TENSOR if value.kind == "tensor" else OTHER
                items = value.items if len(value.items) == len(target.elts) else [part] * len(target.elts)
                for element, item in zip(target.elts, items, strict=True):
                    self.assign(element.value if isinstance(element, ast.Starred) else element, item)
            case ast.Attribute() if self.is_self(target.value) and self.owner is not None:
                self.owner.attributes[target.attr] = value
            case ast.Subscript() if self.value(target.value).kind == "tensor":
                self.program.emit("setitem")
            case _:
                pass

    def is_self(self, node: ast.expr) -> bool:
        """Whether this is the method's own object."""
        return isinstance(node, ast.Name) and node.id == self.self_name

    def value(self, node: ast.expr) -> Value:
        """What is known of an expression; operators in it are recorded."""
        match node:
            case ast.Constant():
                return Value(trips=constant_int(node))
            case ast.Name():
                return self.names.get(node.id) or self.program.globals.get(node.id) or self.reference(node)
            case ast.Attribute():
                return self.attribute(node)
            case ast.Call():
                return self.called(node)
            case ast.BinOp():
                return self.binary(node.op, self.value(node.left), self.value(node.right))
            case ast.UnaryOp():
                operand = self.value(node.operand)
                applied = operand.kind == "tensor" and type(node.op) in UNARY
                return self.program.emit(UNARY[type(node.op)]) if applied else operand
            case ast.Compare():
                values = [self.value(node.left), *(self.value(one) for one in node.comparators)]
                if any(one.kind == "tensor" for one in values) and type(node.ops[0]) in COMPARE:
                    return self.program.emit(COMPARE[type(node.ops[0])])
                return OTHER
            case ast.BoolOp():
                return either([self.value(one) for one in node.values])
            case ast.IfExp():
                self.value(node.test)
                return either([self.value(node.body), self.value(node.orelse)])
            case ast.Tuple() | ast.List() | ast.Set():
                return self.sequence(node.elts)
            case ast.Dict():
                return self.sequence(list(node.values))
            case ast.Subscript():
                return self.subscript(node)
            case ast.ListComp() | ast.GeneratorExp():
                return self.comprehension(node.generators[0], node.elt)
            case ast.DictComp():
                return self.comprehension(node.generators[0], node.value)
            case ast.NamedExpr():
                value = self.value(node.value)
                self.assign(node.target, value)
                return value
            case ast.Starred():
                return self.value(node.value)
            case _:
                return OTHER

    def reference(self, node: ast.expr) -> Value:
        """A library function or layer class that is named without being called."""
        name = dotted_name(node, self.program.aliases) or ""
        definition = self.program.classes.get(name) or self.program.functions.get(name)
        if definition is not None:
            return Value(definition=definition)
        return Value("module", name.rpartition(".")[2]) if name.startswith("torch.") else OTHER

    def sequence(self, elements: Sequence[ast.expr]) -> Value:
        """A list of these elements, starred ones taken apart."""
        items: list[Value] = []
        for element in elements:
            value = self.value(element)
            items.extend(value.items if isinstance(element, ast.Starred) else [value])
        return Value("list", items=items)

    def comprehension(self, generator: ast.comprehension, element: ast.expr) -> Value:
        """The list that a comprehension gives; of several loops the first one counts."""
        outer, items = dict(self.names), []
        sequence = self.value(generator.iter)
        rounds = sequence.items or [OTHER] * min(sequence.trips if sequence.trips is not None else 1, MAX_TRIPS)
        for item in rounds[:MAX_TRIPS]:
            self.assign(generator.target, item)
            items.append(self.value(element))
        self.names = outer
        return Value("list", items=items)

    def attribute(self, node: ast.Attribute) -> Value:
        """`self.x`, a name of a library, or an attribute of a tensor or module."""
        if self.is_self(node.value) and self.owner is not None:
            return self.owner.attributes.get(node.attr, OTHER)
        if self.library_name(node) is not None:
            return self.reference(node)
        owner = self.value(node.value)
        if owner.kind == "tensor":
            if node.attr in ("T", "mT", "H", "mH"):
                return self.program.emit("t")
            return TENSOR if node.attr in ("data", "real", "imag", "grad") else OTHER
        if owner.kind == "module":  # a weight or a submodule of a submodule
            return TENSOR if node.attr in ("weight", "bias") else OTHER
        return OTHER

    def subscript(self, node: ast.Subscript) -> Value:
        """An element of a list, the first one where the position is not known; of a tensor an operator."""
        owner = self.value(node.value)
        self.value(node.slice)
        if owner.kind == "tensor":
            return self.program.emit("getitem")
        position = constant_int(node.slice)
        if owner.items and position is not None and -len(owner.items) <= position < len(owner.items):
            return owner.items[position]
        return owner.items[0] if owner.items else OTHER

    def binary(self, operator: ast.operator, left: Value, right: Value) -> Value:
        """Arithmetic of tensors, lists and ints."""
        if "tensor" in (left.kind, right.kind):
            return self.program.emit(BINARY[type(operator)])
        if left.kind == right.kind == "list" and isinstance(operator, ast.Add):
            return Value("list", items=(left.items + right.items)[:MAX_ITEMS])
        if isinstance(operator, ast.Mult) and left.kind == "list" and right.trips is not None:
            return Value("list", items=(left.items * min(max(right.trips, 0), MAX_TRIPS))[:MAX_ITEMS])
        return Value(trips=arithmetic(operator, left.trips, right.trips))

    def library_name(self, node: ast.expr) -> str | None:
        """Dotted name where `node` names something that was imported."""
        imported = root_name(node) in self.program.aliases.keys() - self.names.keys()
        return dotted_name(node, self.program.aliases) if imported else None

    def arguments(self, node: ast.Call) -> list[Value]:
        """The arguments of a call, positional ones first."""
        given = self.sequence(node.args).items
        return given + [self.value(keyword.value) for keyword in node.keywords]
