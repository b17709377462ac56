"""Operators of PyTorch as expressions: what each one computes, in normal form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from dice.data.leakage import expression as ex
from dice.data.leakage.expression import Node

NodeOf = Callable[[Any], Node]
"""The expression of a tensor."""
_DROPPED = frozenset(
    [
        "dtype",
        "layout",
        "device",
        "pin_memory",
        "memory_format",
        "non_blocking",
        "size",
        "implicit",
        "keepdim",
        "generator",
        "half_to_float",
    ]
)
"""Arguments that say nothing about values, or nothing that is not seen elsewhere."""


def kind(tensor: Any) -> str:
    """Float, integer, boolean or complex."""
    if tensor.dtype == torch.bool:
        return "bool"
    return "float" if tensor.is_floating_point() else "complex" if tensor.is_complex() else "int"


def kinds_of(values: Iterable[Any]) -> tuple[str, ...]:
    """The kind of each value; the type of what is no tensor."""
    return tuple(kind(value) if torch.is_tensor(value) else type(value).__name__ for value in values)


def public_name(name: str, args: Any) -> str:
    """The name under which an operator is counted: without prefixes of its implementation, convolutions by rank."""
    if name == "convolution":
        return f"conv{'_transpose' if args[6] else ''}{args[1].dim() - 2}d"
    return name.removesuffix("_").removeprefix("_").removeprefix("native_").removesuffix("_forward")


def order_of(name: str, rank: int, given: dict[str, Any]) -> list[int]:
    """Which dimension of its input each dimension of a `permute`, `transpose` or `t` is."""
    if name == "permute":
        return [dim % rank for dim in given["dims"]]
    order = list(range(rank))
    if rank > 1:
        a, b = (given["dim0"], given["dim1"]) if name == "transpose" else (0, 1)
        order[a], order[b] = order[b], order[a]
    return order


def several(node_of: NodeOf, name: str, given: dict[str, Any], leaves: list[Any]) -> list[Node]:
    """Expressions of an operator with several results."""
    singles = {"max": ("amax", "argmax"), "min": ("amin", "argmin"), "var_mean": ("var", "mean")}
    if name in singles and len(leaves) == 2:
        plain = {key: value for key, value in given.items() if key != "correction"}
        parts = [given if one == "var" else plain for one in singles[name]]
        return [expression(node_of, one, part, leaves[0]) for one, part in zip(singles[name], parts, strict=True)]
    whole = expression(node_of, name, given, leaves[0])
    return [Node("part", (whole, number)) for number in range(len(leaves))]


def expression(node_of: NodeOf, name: str, given: dict[str, Any], out: Any) -> Node:
    """The value of one operator on `given` arguments, in normal form."""
    pointwise = name in _POINTWISE or all(
        not torch.is_tensor(value) or value.dim() == 0 or _broadcasts(value, out) for value in given.values()
    )

    def operand(value: Any) -> Node | ex.Attribute:
        if torch.is_tensor(value):
            node = node_of(value)
            return ex.expanded(node, value.shape, out.shape) if pointwise and _broadcasts(value, out) else node
        if isinstance(value, list | tuple):
            return tuple(operand(one) for one in value)  # pyright: ignore[reportReturnType]
        return ex.number(value) if isinstance(value, int | float) else None if value is None else str(value)

    if name in _CONSTANTS:
        return Node("full", (operand(_CONSTANTS[name](given)),))
    if name == "arange":
        return Node("arange", (ex.number(given.get("start", 0)), ex.number(given.get("step", 1))))
    rule = _RULES.get(name)
    if rule is not None:
        named = {key: value for key, value in given.items() if key in ("alpha", "rounding_mode")}
        order = ("self", "min", "max") if name == "clamp" else given
        made = rule(*(operand(given.get(arg)) for arg in order if arg not in named), **named)
        return made if isinstance(made, Node) else Node("full", (made,))
    if name == "pow" and not torch.is_tensor(given["exponent"]) and torch.is_tensor(given["self"]):
        made = ex.power(operand(given["self"]), float(given["exponent"]))
        return made if isinstance(made, Node) else Node("full", (made,))
    if name in _PRODUCTS:
        tensors = [node_of(value) for value in given.values() if torch.is_tensor(value)]
        return Node("matmul", (*tensors, len(ex.extent(out.shape))))
    shape = next((value.shape for value in given.values() if torch.is_tensor(value)), ())
    args: list[Node | ex.Attribute] = []
    for key, value in given.items():
        if key in _DROPPED:
            continue
        if key in ("dim", "dims") and (value is None or isinstance(value, int | list | tuple)):
            one = [value] if isinstance(value, int) else value
            args.append(ex.axes(shape, one) if name in _OVER_AXES else tuple(ex.axis(shape, dim) for dim in one or ()))
        elif key == "groups":
            args.append(_grouping(value, shape))
        elif isinstance(value, list | tuple) and any(torch.is_tensor(part) for part in value):
            args += [node_of(part) if torch.is_tensor(part) else None for part in value]
        elif isinstance(value, list | tuple):
            args.append(_shortened(value))
        elif value is not None:
            args.append(operand(value))
    return Node(name, tuple(args))


def _broadcasts(value: Any, out: Any) -> bool:
    """Whether `value` could be an operand of an element-wise operator with the result `out`."""
    padded = (1,) * (out.dim() - value.dim()) + tuple(value.shape)
    return len(padded) == out.dim() and all(a in (1, b) for a, b in zip(padded, out.shape, strict=True))


def _shortened(values: Sequence[Any]) -> ex.Attribute:
    """A list of hyper-parameters for each dimension; equal ones are named once."""
    numbers = [ex.number(value) if isinstance(value, int | float) else str(value) for value in values]
    return numbers[0] if numbers and len({*map(repr, numbers)}) == 1 else tuple(numbers)


def _grouping(groups: int, shape: ex.Shape) -> str:
    return "one group" if groups == 1 else "depthwise" if groups == shape[1] else "groups"


def _product(left: Any, right: Any) -> Any:
    return ex.combined("mul", left, right)


def _sum(left: Any, right: Any, alpha: float = 1) -> Any:
    return ex.combined("add", left, right if alpha == 1 else _product(right, ex.number(alpha)))


def _quotient(left: Any, right: Any, rounding_mode: str | None = None) -> Any:
    if rounding_mode is not None:
        return Node("div", (left, right, rounding_mode))
    if isinstance(right, Node):
        return _product(left, ex.power(right, -1))
    return _product(left, 1 if right == 1 else ex.number(1 / right) if isinstance(right, int) and right else right)


_RULES: dict[str, Callable[..., Any]] = {
    "add": _sum,
    "sub": lambda a, b, alpha=1: _sum(a, b, -alpha),
    "rsub": lambda a, b, alpha=1: _sum(b, a, -alpha),
    "mul": _product,
    "div": _quotient,
    "neg": lambda x: _product(x, -1),
    "square": lambda x: ex.power(x, 2),
    "reciprocal": lambda x: ex.power(x, -1),
    "sqrt": lambda x: ex.power(x, 0.5),
    "rsqrt": lambda x: ex.power(x, -0.5),
    "silu": lambda x: _product(x, Node("sigmoid", (x,))),
    "relu": lambda x: ex.clamped(x, 0, None),
    "clamp_min": lambda x, low: ex.clamped(x, low, None),
    "clamp_max": lambda x, high: ex.clamped(x, None, high),
    "clamp": lambda x, low=None, high=None: ex.clamped(x, low, high),
    "hardtanh": lambda x, low=-1, high=1: ex.clamped(x, low, high),
    "gt": lambda a, b: Node("lt", (b, a)),
    "ge": lambda a, b: Node("le", (b, a)),
}
_CONSTANTS: dict[str, Callable[[dict[str, Any]], Any]] = {
    **dict.fromkeys(("zeros", "zeros_like", "new_zeros"), lambda given: 0),
    **dict.fromkeys(("ones", "ones_like", "new_ones"), lambda given: 1),
    **dict.fromkeys(("full", "full_like", "new_full"), lambda given: given["fill_value"]),
    "scalar_tensor": lambda given: given["s"],
}
_POINTWISE = frozenset([*_RULES, "where", "maximum", "minimum", "eq", "ne", "lt", "le", "pow", "atan2", "logaddexp"])
_PRODUCTS = frozenset(["mm", "bmm", "mv", "dot"])
_OVER_AXES = frozenset(
    [
        "sum",
        "mean",
        "amax",
        "amin",
        "var",
        "std",
        "prod",
        "any",
        "all",
        "argmax",
        "argmin",
        "linalg_vector_norm",
        "logsumexp",
        "flip",
        "_fft_c2c",
        "count_nonzero",
    ]
)
