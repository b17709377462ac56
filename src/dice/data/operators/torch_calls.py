"""What a call of PyTorch gives, and which operator it records."""

from __future__ import annotations

import ast
from collections.abc import Callable

from dice.data.operators.values import OTHER, TENSOR, VIEWS, Program, Value, flat, holds_tensor, view

BINARY = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv", ast.Mod: "remainder",
    ast.Pow: "pow", ast.MatMult: "matmul", ast.BitAnd: "bitwise_and", ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor", ast.LShift: "lshift", ast.RShift: "rshift",
}  # fmt: skip
COMPARE = {ast.Gt: "gt", ast.GtE: "ge", ast.Lt: "lt", ast.LtE: "le", ast.Eq: "eq", ast.NotEq: "ne"}
UNARY = {ast.USub: "neg", ast.Invert: "bitwise_not"}
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


def call_library(program: Program, name: str, arguments: list[Value]) -> Value:
    """The result of a call of an imported name (`torch.nn.Linear`)."""
    last = name.rpartition(".")[2]
    if name.startswith("torch.nn.") and not name.startswith(_NO_LAYERS):
        if last in ("Parameter", "Buffer"):
            return TENSOR
        if last in ("ParameterList", "ParameterDict"):
            return Value("list", items=flat(arguments))
        return Value("module", last, items=[one for one in flat(arguments) if one.kind == "module"])
    if name.startswith("torch.") and last not in NOT_TENSORS:
        return OTHER if name.startswith("torch.nn.init.") else program.emit(last.rstrip("_") or last)
    return tensor_if_any(arguments)


def call_method(program: Program, owner: Value, name: str, arguments: Callable[[], list[Value]]) -> Value:
    """The result of `owner.name(...)`; `arguments` works them out, which may record operators."""
    if owner.name == "super" and owner.kind == "other":
        return OTHER
    if owner.kind == "module":  # self.x.forward(y), self.layers.append(z)
        if name in VIEWS:
            return view(name, owner.items)
        if name in ("append", "extend", "add_module", "insert"):
            owner.items.extend(one for one in flat(arguments()) if one.kind == "module")
            return OTHER
        return apply(program, owner, arguments()) if name == "forward" else OTHER
    if owner.kind == "list":
        if name in ("append", "extend"):
            owner.items.extend(flat(arguments()))
        return view(name, owner.items) if name in VIEWS else OTHER
    given = arguments()
    if owner.kind == "tensor":
        return OTHER if name in NOT_TENSORS else program.emit(name.rstrip("_") or name)
    return tensor_if_any(given)


def apply(program: Program, module: Value, arguments: list[Value]) -> Value:
    """The result of a module: a container's parts in turn, a class of the file by its forward, a layer by its name."""
    if module.instance is not None:
        return module.instance.forward(arguments)
    if module.name == "Sequential":
        value = arguments[0] if arguments else TENSOR
        for item in module.items:
            value = apply(program, item, [value])
        return value
    return program.emit(module.name or "call")


def tensor_if_any(arguments: list[Value]) -> Value:
    """The result of a function that nothing is known of: a tensor if it was given one."""
    return TENSOR if any(map(holds_tensor, arguments)) else OTHER
