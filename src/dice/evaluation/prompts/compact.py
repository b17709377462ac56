"""A PyTorch program in few tokens, for models trained from scratch: what it computes, independent of how it is written.

Comments, docstrings, annotations, imports and empty constructors are left out. A value that is read once, a number that
the constructor gets and a layer without weights stand where they are used. Functions and the arguments of `forward` get
their usual names, and `get_inputs` becomes the ranks of the inputs and their sizes in powers of two (8192 where larger).
Otherwise a comment or a prime number would confuse a small model that has seen few programs and few numbers; its kernel
must still be right for the exact sizes. Nothing is executed.
"""

from __future__ import annotations

import ast
import functools
import math
import operator
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, TypeGuard

from dice.data.normal_form import HARNESS_FUNCTIONS, without_temporaries
from dice.errors import DiceError
from dice.jsonl import RowError
from dice.python_scope import (
    Function,
    bound_names,
    classes_in,
    dotted_name,
    functions_in,
    import_aliases,
    parameter_defaults,
    parameters,
    positional_parameters,
    root_name,
)
from dice.python_text import check_python

_SHORT = (("torch.nn.functional.", "F."), ("torch.nn.", "nn."))
_FOLDED: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
}
_REDUCTIONS = {
    "amax", "amin", "argmax", "argmin", "cumsum", "log_softmax", "logsumexp", "mean", "prod", "softmax", "sum", "var",
}  # fmt: skip
_METHODS = _REDUCTIONS | {
    "abs", "bmm", "clamp", "clamp_max", "clamp_min", "cos", "div", "erf", "exp", "gather", "index_select", "log", "log1p",
    "masked_fill", "matmul", "maximum", "minimum", "mul", "neg", "norm", "pow", "relu", "roll", "rsqrt", "sigmoid", "sin",
    "sqrt", "square", "sub", "tanh", "topk", "tril", "triu",
}  # fmt: skip
"""Methods of a tensor that are functions of torch with the same arguments."""
_LAYERS = {
    f"nn.{layer}": name
    for layer, name in {
        "AvgPool1d": "F.avg_pool1d", "AvgPool2d": "F.avg_pool2d", "AvgPool3d": "F.avg_pool3d",
        "MaxPool1d": "F.max_pool1d", "MaxPool2d": "F.max_pool2d", "MaxPool3d": "F.max_pool3d",
        "ReLU": "torch.relu", "Sigmoid": "torch.sigmoid", "Tanh": "torch.tanh",
        "Softmax": "torch.softmax", "LogSoftmax": "torch.log_softmax",
        "CrossEntropyLoss": "F.cross_entropy", "MSELoss": "F.mse_loss", "L1Loss": "F.l1_loss",
        "SmoothL1Loss": "F.smooth_l1_loss", "HuberLoss": "F.huber_loss", "KLDivLoss": "F.kl_div",
        **{
            layer: f"F.{layer.lower()}"
            for layer in ("CELU", "ELU", "GELU", "Hardsigmoid", "Hardswish", "Hardtanh", "Mish", "ReLU6", "SELU", "SiLU")
        },
        **{layer: f"F.{layer.lower()}" for layer in ("Softplus", "Softsign", "Tanhshrink", "Threshold", "Hardshrink")},
        "LeakyReLU": "F.leaky_relu", "LogSigmoid": "F.logsigmoid", "Softshrink": "F.softshrink", "GLU": "F.glu",
    }.items()
}  # fmt: skip
"""Layer without weights -> the function that takes the inputs and then the layer's settings, in the same order."""
_FUNCTIONAL = {f"F.{name}": f"torch.{name}" for name in ("log_softmax", "relu", "sigmoid", "softmax", "tanh")}
_FACTORIES = {
    "arange", "bernoulli", "empty", "eye", "full", "linspace", "normal", "ones", "rand", "randint", "randn", "randperm",
    "tensor", "zeros",
}  # fmt: skip
_INTEGERS = {"randint", "randperm", "arange"}
_COUNTED = {"arange", "linspace", "randperm"}
"""Factories whose last whole number is the length."""
_LARGEST = 8192
"""Sizes above are shown as this: no kernel depends on them, and exams have larger ones than small models have read."""
_ARGUMENTS = ("x", "y", "z", "w")
_ROW = ast.List | ast.Tuple


@functools.lru_cache(maxsize=256)  # callers ask for a program twice, for its whole file and for its middle
def compact_program(code: str) -> str:
    """`code`, a program in KernelBench's format, in compact form. Raises DiceError for code without Model.

    class Model(nn.Module):
        def forward(self, x, y):
            return F.cross_entropy(x, y)
    # x: 2d 32 x 256
    # y: 1d 32 int64
    """
    try:
        tree = check_python(code, "pytorch_code")
    except RowError as error:
        raise DiceError(f"a PyTorch program cannot be shown in compact form: {error}.") from error
    tree = _Shortener(import_aliases(tree)).visit(tree)
    inline = _Constants(tree.body)
    functions, model = functions_in(tree.body), classes_in(tree.body).get("Model")
    forward = functions_in(model.body).get("forward") if model is not None else None
    if model is None or forward is None:
        raise DiceError("a PyTorch program cannot be shown in compact form: it has no class Model with a forward.")
    given = [inline.visit(_factory(item, body)) for item, body in _returned(functions.get("get_init_inputs"))]
    _settle(model, given)
    arguments = _rename(forward)
    shown = [
        line
        for node in tree.body
        if isinstance(node, ast.ClassDef | Function) and node.name not in HARNESS_FUNCTIONS
        for line in ast.unparse(inline.visit(node)).splitlines()
        if line
    ]
    inputs = _returned(functions.get("get_inputs"))
    names = arguments + [f"input {k}" for k in range(len(arguments), len(inputs))]
    shown += [
        f"# {name}: {_described(inline.visit(_factory(item, body)))}"
        for name, (item, body) in zip(names, inputs, strict=False)
    ]
    return "\n".join(shown)


def _rename(forward: Function) -> list[str]:
    """Give the arguments of `forward` the names x, y, z, ..., in place; returns the new names."""
    given = positional_parameters(forward)[1:]
    names = [*_ARGUMENTS, *(f"x{k}" for k in range(len(_ARGUMENTS), len(given)))][: len(given)]
    new = dict(zip(given, names, strict=True))
    for node in ast.walk(forward):
        if isinstance(node, ast.Name):
            node.id = new.get(node.id, f"{node.id}_" if node.id in names else node.id)
        elif isinstance(node, ast.arg):
            node.arg = new.get(node.arg, node.arg)
    return names


def _settle(model: ast.ClassDef, given: list[ast.expr]) -> None:
    """Write the constructor's arguments where they are used, in place; `given`: values of get_init_inputs()."""
    init = functions_in(model.body).get("__init__")
    if init is None:
        return
    named = positional_parameters(init)[1:]
    values = {name: value for name, value in parameter_defaults(init).items() if name in named}
    values |= dict(zip(named, given, strict=False))
    stored = bound_names(init.body)
    known = {name: value for name, value in values.items() if _is_literal(value) and name not in stored}
    settled = _Settled(known)
    init.body = [settled.visit(statement) for statement in init.body]
    init.args.args = [arg for arg in init.args.args if arg.arg not in known]
    init.args.defaults = []
    stores = Counter(node.attr for node in ast.walk(model) if _is_own(node) and isinstance(node.ctx, ast.Store))
    own: dict[str, ast.expr] = {}
    for statement in list(init.body):
        if not isinstance(statement, ast.Assign) or len(statement.targets) > 1 or not _is_own(statement.targets[0]):
            continue
        name, value = statement.targets[0].attr, statement.value
        if stores[name] == 1 and (_is_literal(value) or _function_of(value)):
            own[name] = value
            init.body.remove(statement)
    model.body = [node for node in model.body if not (isinstance(node, Function) and _is_empty(node))]
    _Settled(own=own).visit(model)


def _function_of(value: ast.expr) -> str | None:
    """The function that a layer without weights applies."""
    return _LAYERS.get(value.func.id) if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) else None


def _is_own(node: ast.AST | None) -> TypeGuard[ast.Attribute]:
    """Whether `node` is self.NAME."""
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


class _Settled(ast.NodeTransformer):
    """Replaces names, and attributes of self, by their values, and works out arithmetic on numbers."""

    def __init__(
        self, names: Mapping[str, ast.expr] = MappingProxyType({}), own: Mapping[str, ast.expr] = MappingProxyType({})
    ) -> None:
        self.names, self.own = names, own

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self.names.get(node.id, node) if isinstance(node.ctx, ast.Load) else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if _is_own(node) and isinstance(node.ctx, ast.Load) and node.attr in self.own:
            return self.own[node.attr]
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        layer = node.func
        if isinstance(layer, ast.Call) and (function := _function_of(layer)):
            settings = [item for item in layer.keywords if item.arg != "inplace"]
            return _usual(ast.Call(ast.Name(function, ast.Load()), [*node.args, *layer.args], settings))
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        return _folded(node)


def _described(made: ast.expr) -> str:
    """Rank, sizes in powers of two and dtype of a factory's tensor; for another expression, its own text."""
    if isinstance(made, ast.Call) and isinstance(made.func, ast.Name):
        name = made.func.id.removeprefix("torch.")
        keywords = {item.arg: item.value for item in made.keywords}
        given = [one for item in made.args for one in _unpacked(item)]
        whole = next((item.elts for item in (*given, keywords.get("size")) if isinstance(item, _ROW)), given)
        if name in _COUNTED:
            whole = [item for item in given if isinstance(item, ast.Constant) and isinstance(item.value, int)][-1:]
        dims = [item.value for item in whole if isinstance(item, ast.Constant) and isinstance(item.value, int)]
        if dims and len(dims) == len(whole):
            dtype = keywords.get("dtype")
            kind = ast.unparse(dtype).removeprefix("torch.") if dtype else "int64" if name in _INTEGERS else ""
            rounded = " x ".join(str(min(1 << round(math.log2(max(1, dim))), _LARGEST)) for dim in dims)
            return f"{len(dims)}d {rounded} {kind}".rstrip()
    return ast.unparse(made)


def _unpacked(item: ast.expr) -> list[ast.expr]:
    """The elements of `*(2, 3)`; another argument as it is."""
    return item.value.elts if isinstance(item, ast.Starred) and isinstance(item.value, _ROW) else [item]


class _Shortener(ast.NodeTransformer):
    """Removes everything that does not compute, and gives every function of torch its usual name."""

    def __init__(self, aliases: dict[str, str]) -> None:
        self.aliases = aliases

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        name = dotted_name(node, self.aliases)
        if name is not None and root_name(node) in self.aliases:
            short = next((by + name.removeprefix(long) for long, by in _SHORT if name.startswith(long)), name)
            return ast.Name(short, node.ctx)
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return ast.arg(node.arg)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        plain = ast.Assign([node.target], node.value) if node.value is not None else None
        return ast.fix_missing_locations(self.generic_visit(plain)) if plain is not None else None

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if isinstance(node.value, ast.Constant) else self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id == "super":
            node.args = []
        self.generic_visit(node)
        called = node.func
        if isinstance(called, ast.Attribute) and called.attr in _METHODS and not _of_self(called.value):
            node = ast.Call(ast.Name(f"torch.{called.attr}", ast.Load()), [called.value, *node.args], node.keywords)
        return _usual(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self.generic_visit(node)
        body = [item for item in node.body if not (isinstance(item, Function) and _is_empty(item))]
        node.body = body or [ast.Pass()]
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.MatMult):
            return ast.Call(ast.Name("torch.matmul", ast.Load()), [node.left, node.right], [])
        same = isinstance(node.left, ast.Name) and isinstance(node.right, ast.Name) and node.left.id == node.right.id
        if isinstance(node.op, ast.Mult) and same:
            return ast.BinOp(node.left, ast.Pow(), ast.Constant(2))
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        node.returns = None
        node.body = without_temporaries(node.body) or [ast.Pass()]
        return node


def _of_self(node: ast.expr) -> bool:
    """Whether an attribute may be a layer's: self.a, self.a.b."""
    return root_name(node) in ("self", "super")


def _usual(node: ast.Call) -> ast.expr:
    """A call of torch in its usual form: powers as **, the dimension of a reduction by name."""
    if not isinstance(node.func, ast.Name):
        return node
    node.func.id = _FUNCTIONAL.get(node.func.id, node.func.id)
    module, _, name = node.func.id.rpartition(".")
    if module != "torch":
        return node
    if name == "square" and len(node.args) == 1:
        return ast.BinOp(node.args[0], ast.Pow(), ast.Constant(2))
    if name == "pow" and len(node.args) == 2:
        return ast.BinOp(node.args[0], ast.Pow(), node.args[1])
    if name in _REDUCTIONS and len(node.args) == 2:
        node.keywords.insert(0, ast.keyword("dim", node.args.pop()))
    return node


def _is_empty(node: Function) -> bool:
    """Whether a constructor only calls the parent's constructor."""
    only = node.body[0] if len(node.body) == 1 else None
    return node.name == "__init__" and isinstance(only, ast.Expr) and ast.unparse(only) == "super().__init__()"


class _Constants(ast.NodeTransformer):
    """Replaces the names of a module's constants by their numbers, and works out arithmetic on numbers."""

    def __init__(self, body: Iterable[ast.stmt]) -> None:
        self.values: dict[str, ast.expr] = {}
        for node in body:
            if not isinstance(node, ast.Assign):
                continue
            value = self.visit(node.value)
            for target in node.targets:
                pairs = [(target, value)]
                if isinstance(target, _ROW) and isinstance(value, _ROW) and len(target.elts) == len(value.elts):
                    pairs = list(zip(target.elts, value.elts, strict=True))
                self.values |= {one.id: it for one, it in pairs if isinstance(one, ast.Name) and _is_literal(it)}

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self.values.get(node.id, node) if isinstance(node.ctx, ast.Load) else node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        own = {one.arg for one in parameters(node)} | bound_names(node.body)
        hidden = {name: self.values.pop(name) for name in own & self.values.keys()}
        self.generic_visit(node)
        self.values |= hidden
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        return _folded(node)


def _folded(node: ast.BinOp) -> ast.expr:
    """The number that an operation on two numbers gives, else the operation."""
    fold = _FOLDED.get(type(node.op))
    left, right = (side.value if isinstance(side, ast.Constant) else None for side in (node.left, node.right))
    if fold is None or not isinstance(left, int | float) or not isinstance(right, int | float):
        return node
    try:
        return ast.Constant(fold(left, right))
    except (ArithmeticError, ValueError):
        return node


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def _returned(function: Function | None) -> list[tuple[ast.expr, list[ast.stmt]]]:
    """The elements of the list that a function returns, each with the function's statements."""
    if function is None:
        return []
    last = function.body[-1]
    value = last.value if isinstance(last, ast.Return) else None
    items = value.elts if isinstance(value, ast.List | ast.Tuple) else [value] if value is not None else []
    return [(item, function.body) for item in items]


def _factory(item: ast.expr, body: list[ast.stmt]) -> ast.expr:
    """The first call in `item` that makes a tensor, found through the function's names; `item` where there is none."""
    made: dict[str, list[ast.expr]] = defaultdict(list)
    for node in body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            made[node.targets[0].id].append(node.value)
    waiting: list[ast.AST] = [item]
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            module, _, name = node.func.id.rpartition(".")
            if module == "torch" and name in _FACTORIES:
                return node
        if isinstance(node, ast.Name) and made[node.id]:
            waiting.insert(0, made[node.id].pop())  # the last value first: it is made of earlier ones
        else:
            waiting[:0] = list(ast.iter_child_nodes(node))
    return item
