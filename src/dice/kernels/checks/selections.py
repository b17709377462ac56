"""Tensors that have as many elements as numbers say: `x[x > 3]`, `x.nonzero()`, `torch.unique(x)`, `torch.arange(n)`.

Nothing here knows which numbers these are; `numbers_read` does. What is listed here makes a shape out of values.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Set

from dice.kernels.checks.made_from import made_from
from dice.kernels.checks.python_names import identifier_of
from dice.kernels.checks.python_source import PythonSource
from dice.kernels.source.lexer import words

_SIZES = words("len size shape numel nelement nbytes ndim dim")
_SELECTING = words(
    "nonzero argwhere flatnonzero unique unique_consecutive masked_select bincount repeat_interleave to_sparse extract "
    "compress trim_zeros"
)
"""Functions and methods that give as many elements as values say."""
_TO_SIZE = words(
    "empty zeros ones new_empty new_zeros new_ones arange range islice narrow resize_ repeat_interleave split chunk"
)
"""Those that give as many elements as an argument says."""
_MASKS = words(
    "gt lt ge le eq ne greater less greater_equal less_equal not_equal isnan isinf isfinite isclose bool logical_and "
    "logical_or logical_not logical_xor signbit"
)
_FAR = 3
"""Names by which a mask is followed."""


def asks_size(node: ast.AST) -> bool:
    """Whether it asks how many elements something has."""
    return identifier_of(node.func if isinstance(node, ast.Call) else node) in _SIZES


def asked_of(node: ast.AST) -> list[ast.expr]:
    """What a method or a function is called with, or an attribute is asked of."""
    match node:
        case ast.Call(func=ast.Attribute(value=value), args=arguments):
            return [value, *arguments]
        case ast.Call(args=arguments):
            return arguments
        case ast.Attribute(value=value):
            return [value]
    return []


def selects(call: ast.Call) -> bool:
    """Whether it gives as many elements as values of what it is asked of say."""
    name = identifier_of(call.func)
    return name in _SELECTING or (name == "where" and len(call.args) == 1)


def is_made_to_size(call: ast.Call) -> bool:
    """Whether it gives as many elements as an argument says."""
    return identifier_of(call.func) in _TO_SIZE


def has_numbers_in_bounds(index: ast.expr, reads: Callable[[ast.AST], bool]) -> bool:
    """Whether `x[index]` is a slice of which numbers say the bounds."""
    bounds = index.elts if isinstance(index, ast.Tuple) else [index]
    return any(isinstance(bound, ast.Slice) and reads(bound) for bound in bounds)


def masks(source: PythonSource) -> Set[ast.AST]:
    """Expressions that are, or are made from, truths of single elements, also through variables."""

    def is_mask(node: ast.AST) -> bool:
        match node:
            case ast.Compare() | ast.UnaryOp(op=ast.Invert()):
                return True
            case ast.Call(func=function):
                return identifier_of(function) in _MASKS
        return False

    return made_from(source, filter(is_mask, source.nodes), source.values, _FAR)


def has_selections(source: PythonSource) -> bool:
    """Whether forward itself makes anything of which values say the size."""
    of_masks = masks(source)
    return any(
        (isinstance(node, ast.Call) and selects(node)) or (isinstance(node, ast.Subscript) and node.slice in of_masks)
        for node in source.in_forward
    )
