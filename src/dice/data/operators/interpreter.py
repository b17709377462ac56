"""The operators that a module's forward applies, read from its source without running it.

A small abstract interpretation of the syntax tree. It follows assignments through `forward` and knows of every value only
whether it is a tensor, a module or something else (a shape, a number, a flag). It resolves `self.x` through `__init__` and
the arguments that `get_init_inputs()` gives, enters containers, other classes of the file, methods and helper functions,
and unrolls loops whose length is known.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Sequence

from dice.data.operators.expressions import Expressions
from dice.data.operators.torch_calls import apply, call_library, call_method, tensor_if_any
from dice.data.operators.values import (
    MAX_TRIPS,
    OTHER,
    TENSOR,
    Enough,
    Instance,
    Program,
    Value,
    builtin,
    constant_int,
    holds_tensor,
)
from dice.python_scope import Function, functions_in, parameter_defaults, positional_parameters
from dice.python_text import parse_python

_MAX_DEPTH = 24
"""Depth of nested calls that are followed."""


class Returned(Exception):
    """A return statement was reached; carries the value out of nested statements."""

    def __init__(self, value: Value) -> None:
        self.value = value


class Frame(Expressions):
    """One call of a function or method of the file."""

    def __init__(self, program: Program, owner: Instance | None, depth: int) -> None:
        super().__init__(program, owner)
        self.depth = depth

    def call(self, function: Function, arguments: Sequence[Value], keywords: dict[str, Value]) -> Value:
        """The value that `function` returns; nothing is known of parameters that are not given."""
        names = positional_parameters(function)
        if self.owner is not None and names:
            self.self_name = names.pop(0)
        for name, value in zip(names, arguments, strict=False):
            self.names[name] = value
        if function.args.vararg:
            self.names[function.args.vararg.arg] = Value("list", items=list(arguments[len(names) :]))
        self.names.update(keywords)
        try:
            self.run(function.body)
        except Returned as returned:
            return returned.value
        return OTHER

    def run(self, body: Sequence[ast.stmt]) -> None:
        """Interpret statements. Raises Returned where they return, Enough at a limit."""
        for statement in body:
            self.program.step()
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        """Interpret one statement; see `run`."""
        match node:
            case ast.Return():
                raise Returned(self.value(node.value) if node.value else OTHER)
            case ast.Assign():
                value = self.value(node.value)
                for target in node.targets:
                    self.assign(target, value)
            case ast.AnnAssign(value=ast.expr()):
                assert node.value is not None
                self.assign(node.target, self.value(node.value))
            case ast.AugAssign():
                left, right = self.value(_as_load(node.target)), self.value(node.value)
                self.assign(node.target, self.binary(node.op, left, right))
            case ast.Expr():
                self.value(node.value)
            case ast.If():
                self.branch(node)
            case ast.For():
                self.loop(node)
            case ast.While():
                self.value(node.test)
                self.run(node.body)
            case ast.With():
                for item in node.items:
                    self.value(item.context_expr)
                self.run(node.body)
            case ast.Try():
                self.run(node.body)
            case ast.FunctionDef():
                self.names[node.name] = Value(definition=node, closure=self.names)
            case _:
                pass  # nested classes, assertions, pass, imports: no operator

    def branch(self, node: ast.If) -> None:
        """Both ways are possible; the one that applies more operators counts."""
        self.value(node.test)
        before, names = list(self.program.found), dict(self.names)
        outcomes = []
        for body in (node.body, node.orelse):
            self.program.found, self.names = list(before), dict(names)
            returned = None
            try:
                self.run(body)
            except Returned as exit_:
                returned = exit_
            outcomes.append((len(self.program.found), self.program.found, self.names, returned))
        taken = outcomes[0] if outcomes[0][0] >= outcomes[1][0] else outcomes[1]
        falls_through = next((one for one in outcomes if one[3] is None), None)
        if taken[3] is not None and falls_through is not None:
            taken = falls_through  # an early return is the special case
        _, self.program.found, self.names, returned = taken
        if returned is not None:
            raise returned

    def loop(self, node: ast.For) -> None:
        """Every round where the length is known, else one."""
        sequence = self.value(node.iter)
        if sequence.items:
            for item in sequence.items[:MAX_TRIPS]:
                self.assign(node.target, item)
                self.run(node.body)
            return
        trips = sequence.trips if sequence.trips is not None else 1
        item = TENSOR if sequence.kind == "tensor" else OTHER
        for _ in range(min(max(trips, 0), MAX_TRIPS)):
            self.assign(node.target, item)
            self.run(node.body)

    def called(self, node: ast.Call) -> Value:
        function = node.func
        match function:
            case ast.Name(id="super"):
                return Value("other", "super")
            case ast.Attribute() if self.is_self(function.value) and self.owner is not None:
                return self.own_call(node, function.attr)
        library = self.library_name(function)
        if library is not None:
            return call_library(self.program, library, self.arguments(node))
        if isinstance(function, ast.Attribute):
            owner = self.value(function.value)
            return call_method(self.program, owner, function.attr, lambda: self.arguments(node))
        made = self.value(function)
        if isinstance(made.definition, ast.ClassDef):
            return self.construct(made.definition, node)
        if made.definition is not None:
            return self.enter(made.definition, None, node, made.closure)
        if made.kind == "module":
            return apply(self.program, made, self.arguments(node))
        if isinstance(function, ast.Name) and function.id not in self.names:
            return builtin(function.id, self.sequence(node.args).items)
        return tensor_if_any(self.arguments(node))

    def construct(self, definition: ast.ClassDef, node: ast.Call) -> Value:
        """An object of a class of the file."""
        if self.depth >= _MAX_DEPTH:
            return Value("module", definition.name)
        keywords = {one.arg: self.value(one.value) for one in node.keywords if one.arg}
        made = BuiltInstance(self.program, definition, self.depth + 1, self.sequence(node.args).items, keywords)
        return Value("module", definition.name, instance=made)

    def own_call(self, node: ast.Call, name: str) -> Value:
        """`self.x(...)`: a submodule, a method of the class, or a function that was stored."""
        assert self.owner is not None
        stored = self.owner.attributes.get(name)
        if stored is not None:
            if isinstance(stored.definition, ast.ClassDef):
                return self.construct(stored.definition, node)
            arguments = self.arguments(node)
            if stored.kind == "module":
                return apply(self.program, stored, arguments)
            return self.program.emit(name) if any(map(holds_tensor, arguments)) else OTHER
        method = self.owner.methods.get(name)
        if method is not None:
            return self.enter(method, self.owner, node)
        return tensor_if_any(self.arguments(node))

    def enter(
        self,
        function: Function,
        owner: Instance | None,
        node: ast.Call,
        closure: dict[str, Value] | None = None,
    ) -> Value:
        """The result of a call of a function or method of the file; a tensor where calls are nested too deeply."""
        positional = self.sequence(node.args).items
        keywords = {one.arg: self.value(one.value) for one in node.keywords if one.arg}
        if self.depth >= _MAX_DEPTH:
            return TENSOR
        frame = Frame(self.program, owner, self.depth + 1)
        frame.names.update(closure or {})
        return frame.call(function, positional, keywords)


class BuiltInstance:
    """An object of a class of the file, made by interpreting `__init__`."""

    def __init__(
        self,
        program: Program,
        definition: ast.ClassDef,
        depth: int,
        arguments: Sequence[Value],
        keywords: dict[str, Value],
    ) -> None:
        self.program, self.definition, self.depth = program, definition, depth
        self.attributes: dict[str, Value] = {}
        self.methods = functions_in(definition.body)
        init = self.methods.get("__init__")
        if init is not None:
            counted = len(program.found)
            frame = Frame(program, self, depth)
            frame.names.update(_integer_defaults(init))
            with contextlib.suppress(Enough):  # a limit ends the constructor; forward is read all the same
                frame.call(init, arguments, keywords)
            del program.found[counted:]  # operators of the constructor are not forward's
            self._registered(init)

    def _registered(self, init: Function) -> None:
        """`register_buffer("mask", ...)` and `register_parameter` store tensors."""
        for node in ast.walk(init):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
                name = node.args[0]
                if node.func.attr in ("register_buffer", "register_parameter") and isinstance(name, ast.Constant):
                    self.attributes[str(name.value)] = TENSOR

    def forward(self, arguments: list[Value] | None = None) -> Value:
        """Interpret `forward`; without arguments every parameter is a tensor unless it is annotated as a number."""
        method = self.methods.get("forward")
        if method is None:
            return TENSOR
        if arguments is None:
            arguments = [_parameter(arg) for arg in method.args.args[1:]]
        return Frame(self.program, self, self.depth).call(method, arguments, {})


def _as_load(target: ast.expr) -> ast.expr:
    return ast.parse(ast.unparse(target), mode="eval").body


def _parameter(arg: ast.arg) -> Value:
    annotated = ast.unparse(arg.annotation) if arg.annotation is not None else ""
    return OTHER if annotated in ("int", "float", "bool", "str", "tuple", "torch.Size") else TENSOR


def _integer_defaults(function: Function) -> dict[str, Value]:
    defaults = parameter_defaults(function).items()
    return {name: Value(trips=constant_int(value)) for name, value in defaults if constant_int(value) is not None}


def operators_of_source(code: str) -> list[str] | None:
    """Operators of `Model`'s forward in the order in which they are applied.

    Names are torch's: functions and methods as they are called, layers by their class. None where the code is not
    Python or has no such class.
    """
    try:
        tree = parse_python(code)
    except SyntaxError:
        return None
    program = Program(tree)
    definition = program.classes.get("Model")
    if definition is None:
        return None
    with contextlib.suppress(Enough, RecursionError):  # larger than any model: what was found so far decides
        _interpret(program, definition)
    return program.found


def _interpret(program: Program, definition: ast.ClassDef) -> None:
    """Build `definition` as `get_init_inputs()` says and run its forward; `program.found` then holds the operators."""
    top = Frame(program, None, 0)
    program.globals = top.names
    top.run([node for node in program.body if isinstance(node, ast.Assign | ast.AnnAssign)])
    inputs = program.functions.get("get_init_inputs")
    arguments = Frame(program, None, 0).call(inputs, [], {}).items if inputs is not None else []
    model = BuiltInstance(program, definition, 0, arguments, {})
    program.restart()
    model.forward()
