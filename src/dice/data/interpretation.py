"""Which operators does a module's forward apply? Answered from its source, without running it.

A small abstract interpretation of the syntax tree: it follows assignments through `forward`, knows for every value
only whether it is a tensor, a module or something else (a shape, a number, a flag), resolves `self.x` through
`__init__` and the arguments that `get_init_inputs()` gives, goes into containers, other classes of the file, methods
and helper functions, and unrolls loops whose length it can see. `dice.data.tracing` gets the same list from torch.fx,
which runs the program.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator, Sequence

from dice.data.canonical import import_aliases
from dice.data.symbolic import (
    MAX_ITEMS,
    MAX_TRIPS,
    OTHER,
    TENSOR,
    VIEWS,
    Value,
    arithmetic,
    builtin,
    constant_int,
    either,
    flat,
    holds_tensor,
    view,
)
from dice.python_text import parse_python

MAX_OPERATORS = 4096
"""More is not counted: the difficulty is decided long before."""
MAX_STEPS = 100_000
"""Statements that are interpreted; a program that asks for more is judged by what was found until then."""
_MAX_DEPTH = 24

_BINARY = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv", ast.Mod: "remainder",
    ast.Pow: "pow", ast.MatMult: "matmul", ast.BitAnd: "bitwise_and", ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor", ast.LShift: "lshift", ast.RShift: "rshift",
}  # fmt: skip
_COMPARE = {ast.Gt: "gt", ast.GtE: "ge", ast.Lt: "lt", ast.LtE: "le", ast.Eq: "eq", ast.NotEq: "ne"}
_UNARY = {ast.USub: "neg", ast.Invert: "bitwise_not"}

NOT_TENSORS = frozenset(
    [
        "Generator", "Size", "data_ptr", "device", "dim", "dtype", "element_size", "finfo", "get_device", "iinfo",
        "is_complex", "is_contiguous", "is_cuda", "is_floating_point", "is_grad_enabled", "is_tensor", "item",
        "manual_seed", "ndimension", "nelement", "no_grad", "numel", "set_grad_enabled", "size", "storage_offset",
        "stride", "tolist",
    ]
)  # fmt: skip
"""Calls on tensors or on torch that give no tensor."""


_NO_LAYERS = ("torch.nn.functional.", "torch.nn.utils.", "torch.nn.init.")


class Enough(Exception):
    """The budget of steps or operators is used up."""


class Returned(Exception):
    """A return statement was reached; carries the value out of nested statements."""

    def __init__(self, value: Value) -> None:
        self.value = value


class Program:
    """A parsed file: its classes, functions, imports and top-level values."""

    def __init__(self, tree: ast.Module) -> None:
        self.aliases = import_aliases(tree)
        self.classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
        self.functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        self.found: list[str] = []
        self.steps = 0
        self._top = Frame(self, None, 0)
        self._body = [node for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign)]
        self.globals = self._top.names

    def interpret(self, definition: ast.ClassDef) -> None:
        """Build `definition` as `get_init_inputs()` says and run its forward; `found` then holds the operators."""
        self._top.run(self._body)
        inputs = self.functions.get("get_init_inputs")
        arguments = Frame(self, None, 0).call(inputs, [], {}).items if inputs is not None else []
        model = Instance(self, definition, 0, arguments, {})
        self.found.clear()
        model.forward()

    def dotted(self, node: ast.expr) -> str | None:
        """`torch.nn.functional.relu` for `F.relu`; None where the expression is not a chain of names."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        return ".".join([self.aliases.get(node.id, node.id), *reversed(parts)])

    def emit(self, name: str) -> Value:
        """Record one operator."""
        self.found.append(name)
        if len(self.found) >= MAX_OPERATORS:
            raise Enough
        return TENSOR

    def method(self, owner: ast.ClassDef, name: str) -> ast.FunctionDef | None:
        for node in owner.body:
            if isinstance(node, ast.FunctionDef) and node.name == name:
                return node
        return None


class Frame:
    """One call of a function or method of the file."""

    def __init__(self, program: Program, owner: Instance | None, depth: int) -> None:
        self.program, self.owner, self.depth = program, owner, depth
        self.self_name: str | None = None
        self.names: dict[str, Value] = {}

    # -- statements

    def call(self, function: ast.FunctionDef, arguments: Sequence[Value], keywords: dict[str, Value]) -> Value:
        """Interpret `function`; parameters that were not given are tensors only where nothing says otherwise."""
        names = [arg.arg for arg in [*function.args.posonlyargs, *function.args.args]]
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
        for statement in body:
            self.program.steps += 1
            if self.program.steps > MAX_STEPS:
                raise Enough
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
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
            taken = falls_through  # an early return is the special case; the rest of the body is the rule
        _, self.program.found, self.names, returned = taken
        if returned is not None:
            raise returned

    def loop(self, node: ast.For) -> None:
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

    def assign(self, target: ast.expr, value: Value) -> None:
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

    # -- expressions

    def is_self(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id == self.self_name

    def value(self, node: ast.expr) -> Value:
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
                applied = operand.kind == "tensor" and type(node.op) in _UNARY
                return self.program.emit(_UNARY[type(node.op)]) if applied else operand
            case ast.Compare():
                values = [self.value(node.left), *(self.value(one) for one in node.comparators)]
                if any(one.kind == "tensor" for one in values) and type(node.ops[0]) in _COMPARE:
                    return self.program.emit(_COMPARE[type(node.ops[0])])
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
        name = self.program.dotted(node) or ""
        definition = self.program.classes.get(name) or self.program.functions.get(name)
        if definition is not None:
            return Value(definition=definition)
        return Value("module", name.rpartition(".")[2]) if name.startswith("torch.") else OTHER

    def sequence(self, elements: Sequence[ast.expr]) -> Value:
        items: list[Value] = []
        for element in elements:
            value = self.value(element)
            items.extend(value.items if isinstance(element, ast.Starred) else [value])
        return Value("list", items=items)

    def comprehension(self, generator: ast.comprehension, element: ast.expr) -> Value:
        outer, items = dict(self.names), []
        sequence = self.value(generator.iter)
        rounds = sequence.items or [OTHER] * min(sequence.trips if sequence.trips is not None else 1, MAX_TRIPS)
        for item in rounds[:MAX_TRIPS]:
            self.assign(generator.target, item)
            items.append(self.value(element))
        self.names = outer
        return Value("list", items=items)

    def attribute(self, node: ast.Attribute) -> Value:
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
        owner = self.value(node.value)
        self.value(node.slice)
        if owner.kind == "tensor":
            return self.program.emit("getitem")
        position = constant_int(node.slice)
        if owner.items and position is not None and -len(owner.items) <= position < len(owner.items):
            return owner.items[position]
        return owner.items[0] if owner.items else OTHER

    def binary(self, operator: ast.operator, left: Value, right: Value) -> Value:
        if "tensor" in (left.kind, right.kind):
            return self.program.emit(_BINARY[type(operator)])
        if left.kind == right.kind == "list" and isinstance(operator, ast.Add):
            return Value("list", items=(left.items + right.items)[:MAX_ITEMS])
        if isinstance(operator, ast.Mult) and left.kind == "list" and right.trips is not None:
            return Value("list", items=(left.items * min(max(right.trips, 0), MAX_TRIPS))[:MAX_ITEMS])
        return Value(trips=arithmetic(operator, left.trips, right.trips))

    # -- calls

    def called(self, node: ast.Call) -> Value:
        function = node.func
        match function:
            case ast.Name(id="super"):
                return Value("other", "super")
            case ast.Attribute() if self.is_self(function.value) and self.owner is not None:
                return self.own_call(node, function.attr)
        library = self.library_name(function)
        if library is not None:
            return self.library_call(library, node)
        if isinstance(function, ast.Attribute):
            return self.method_call(self.value(function.value), function.attr, node)
        made = self.value(function)
        if isinstance(made.definition, ast.ClassDef):
            return self.construct(made.definition, node)
        if made.definition is not None:
            return self.enter(made.definition, None, node, made.closure)
        if made.kind == "module":
            return self.apply(made, self.arguments(node))
        if isinstance(function, ast.Name) and function.id not in self.names:
            return builtin(function.id, self.sequence(node.args).items)
        return self.tensor_if_any(node)

    def library_name(self, node: ast.expr) -> str | None:
        """Dotted name where `node` names something that was imported."""
        root = node
        while isinstance(root, ast.Attribute):
            root = root.value
        if isinstance(root, ast.Name) and root.id in self.program.aliases and root.id not in self.names:
            return self.program.dotted(node)
        return None

    def arguments(self, node: ast.Call) -> list[Value]:
        given = self.sequence(node.args).items
        return given + [self.value(keyword.value) for keyword in node.keywords]

    def tensor_if_any(self, node: ast.Call) -> Value:
        return TENSOR if any(holds_tensor(one) for one in self.arguments(node)) else OTHER

    def construct(self, definition: ast.ClassDef, node: ast.Call) -> Value:
        if self.depth >= _MAX_DEPTH:
            return Value("module", definition.name)
        keywords = {one.arg: self.value(one.value) for one in node.keywords if one.arg}
        made = Instance(self.program, definition, self.depth + 1, self.sequence(node.args).items, keywords)
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
                return self.apply(stored, arguments)
            return self.program.emit(name) if any(map(holds_tensor, arguments)) else OTHER
        method = self.program.method(self.owner.definition, name)
        if method is not None:
            return self.enter(method, self.owner, node)
        return self.tensor_if_any(node)

    def enter(
        self,
        function: ast.FunctionDef,
        owner: Instance | None,
        node: ast.Call,
        closure: dict[str, Value] | None = None,
    ) -> Value:
        positional = self.sequence(node.args).items
        keywords = {one.arg: self.value(one.value) for one in node.keywords if one.arg}
        if self.depth >= _MAX_DEPTH:
            return TENSOR
        frame = Frame(self.program, owner, self.depth + 1)
        frame.names.update(closure or {})
        return frame.call(function, positional, keywords)

    def method_call(self, owner: Value, name: str, node: ast.Call) -> Value:
        if owner.name == "super" and owner.kind == "other":
            return OTHER
        if owner.kind == "module":  # self.x.forward(y), self.layers.append(z)
            if name in VIEWS:
                return view(name, owner.items)
            if name in ("append", "extend", "add_module", "insert"):
                owner.items.extend(one for one in flat(self.arguments(node)) if one.kind == "module")
                return OTHER
            return self.apply(owner, self.arguments(node)) if name == "forward" else OTHER
        if owner.kind == "list":
            if name in ("append", "extend"):
                owner.items.extend(flat(self.arguments(node)))
            return view(name, owner.items) if name in VIEWS else OTHER
        if owner.kind == "tensor":
            self.arguments(node)
            return OTHER if name in NOT_TENSORS else self.program.emit(name.rstrip("_") or name)
        return self.tensor_if_any(node)

    def library_call(self, name: str, node: ast.Call) -> Value:
        last = name.rpartition(".")[2]
        if name.startswith("torch.nn.") and not name.startswith(_NO_LAYERS):
            arguments = self.arguments(node)
            if last in ("Parameter", "Buffer"):
                return TENSOR
            if last in ("ParameterList", "ParameterDict"):
                return Value("list", items=flat(arguments))
            return Value("module", last, items=[one for one in flat(arguments) if one.kind == "module"])
        if name.startswith("torch.") and last not in NOT_TENSORS:
            self.arguments(node)
            return self.program.emit(last.rstrip("_") or last) if not name.startswith("torch.nn.init.") else OTHER
        return self.tensor_if_any(node)

    def apply(self, module: Value, arguments: list[Value]) -> Value:
        """Call a module: a container's parts in turn, a class of the file by its forward, a layer by its name."""
        if module.instance is not None:
            return module.instance.forward(arguments)
        if module.name == "Sequential":
            value = arguments[0] if arguments else TENSOR
            for item in module.items:
                value = self.apply(item, [value])
            return value
        return self.program.emit(module.name or "call")


class Instance:
    """A class of the file and what its `__init__` stores."""

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
        init = program.method(definition, "__init__")
        if init is not None:
            counted = len(program.found)
            frame = Frame(program, self, depth)
            frame.names.update(_integer_defaults(init))
            frame.call(init, arguments, keywords)
            del program.found[counted:]  # what runs once at construction is no work of forward
            self._registered(init)

    def _registered(self, init: ast.FunctionDef) -> None:
        """`register_buffer("mask", ...)` and `register_parameter` store tensors."""
        for node in ast.walk(init):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
                name = node.args[0]
                if node.func.attr in ("register_buffer", "register_parameter") and isinstance(name, ast.Constant):
                    self.attributes[str(name.value)] = TENSOR

    def forward(self, arguments: list[Value] | None = None) -> Value:
        """Interpret `forward`; without arguments every parameter is a tensor unless it is annotated as a number."""
        method = self.program.method(self.definition, "forward")
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


def _integer_defaults(function: ast.FunctionDef) -> Iterator[tuple[str, Value]]:
    names = [arg.arg for arg in function.args.args]
    for name, default in zip(reversed(names), reversed(function.args.defaults), strict=False):
        if constant_int(default) is not None:
            yield name, Value(trips=constant_int(default))


def operators_of_source(code: str, entry: str = "Model") -> list[str] | None:
    """Operators of `entry`'s forward in the order in which they are applied.

    Names are torch's: functions and methods as they are called, layers by their class. None where the code is not
    Python or has no such class.
    """
    try:
        tree = parse_python(code)
    except SyntaxError:
        return None
    program = Program(tree)
    definition = program.classes.get(entry)
    if definition is None:
        return None
    with contextlib.suppress(Enough, RecursionError):  # larger than any model: what was found so far decides
        program.interpret(definition)
    return program.found
