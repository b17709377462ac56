"""What forward is given: its parameters, and the expressions by which the problem draws them."""

from __future__ import annotations

import ast

from dice.kernels.checks.python_source import PythonSource
from dice.kernels.source.lexer import words
from dice.python_scope import positional_parameters

SHAPE_ONLY = words(
    "shape size dtype device ndim dim numel stride is_cuda is_contiguous layout requires_grad new_empty new_zeros "
    "new_ones new_full element_size get_device nelement"
)
"""Attributes and methods that tell nothing about a tensor's values."""
SAME = words(
    "to cuda cpu float half double bfloat16 type type_as contiguous clone detach view reshape flatten t expand expand_as "
    "resize_ requires_grad_ pin_memory"
)
"""Methods that give the same again, in another place or form."""
_TYPED = words(
    "float double half bfloat16 normal_ uniform_ exponential_ rand randn sigmoid softmax mean div sqrt exp log"
)
"""Methods after which a tensor of whole numbers holds others."""
_COMPARED = words("eq ne lt le gt ge bool long int short isnan logical_not logical_and argsort argmax argmin")
_WHOLE = ("torch.randint", "torch.arange", "torch.randperm", "torch.tensor", "torch.full", "torch.zeros", "torch.ones")
_WHOLE_TYPES = words(
    "torch.int torch.int8 torch.int16 torch.int32 torch.int64 torch.long torch.short torch.uint8 torch.bool int bool"
)


def forward_parameters(source: PythonSource) -> list[str]:
    """Names of forward's parameters without self."""
    if source.forward is None:
        return []
    arguments = source.forward.args
    packed = [item.arg for item in (arguments.vararg, arguments.kwarg) if item is not None]
    return positional_parameters(source.forward)[1:] + packed


def made_inputs(problem: PythonSource) -> list[list[ast.expr]]:
    """The expressions that make each of the inputs that the problem's get_inputs returns."""
    maker = next((item for item in problem.definitions("get_inputs") if isinstance(item, ast.FunctionDef)), None)
    returned = [node.value for node in ast.walk(maker) if isinstance(node, ast.Return)] if maker is not None else []
    if not returned or not isinstance(returned[-1], ast.List | ast.Tuple):
        return []
    return [problem.values(item.id) if isinstance(item, ast.Name) else [item] for item in returned[-1].elts]


def count_inputs(source: PythonSource, reference: PythonSource | None) -> set[str]:
    """forward's parameters that are whole numbers in the problem: lengths, indices, offsets, masks."""
    made = made_inputs(reference) if reference is not None else []
    return {
        name
        for name, values in zip(forward_parameters(source), made, strict=False)
        if reference is not None and values and all(_is_whole(reference, value) for value in values)
    }


def _is_whole(problem: PythonSource, value: ast.expr, depth: int = 0) -> bool:
    """Whether an expression of the problem makes a tensor of integers or booleans, whatever is drawn."""
    if isinstance(value, ast.Compare):
        return True
    if isinstance(value, ast.Name) and depth < 4:
        found = problem.values(value.id)
        return bool(found) and all(_is_whole(problem, item, depth + 1) for item in found)
    if isinstance(value, ast.Subscript):
        return _is_whole(problem, value.value, depth)
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add | ast.Sub | ast.Mult | ast.FloorDiv | ast.Mod):
        sides = (value.left, value.right)
        return all(_is_integer(side) or _is_whole(problem, side, depth) for side in sides)
    if not isinstance(value, ast.Call):
        return False
    types = [ast.unparse(item.value) for item in value.keywords if item.arg == "dtype"]
    if types:
        return all(name in _WHOLE_TYPES for name in types)
    name = problem.dotted(value.func)
    if name in ("torch.randint", "torch.randperm"):
        return True
    if name in _WHOLE:
        numbers = [node.value for item in value.args for node in ast.walk(item) if isinstance(node, ast.Constant)]
        plain = all(isinstance(item, ast.Constant | ast.List | ast.Tuple | ast.UnaryOp) for item in value.args)
        made = name not in ("torch.zeros", "torch.ones") and (plain or name == "torch.arange")
        return made and all(isinstance(number, int) for number in numbers)
    if not isinstance(value.func, ast.Attribute):
        return False
    method = value.func.attr
    if method in ("to", "type"):
        return any(problem.dotted(item) in _WHOLE_TYPES for item in value.args) or _is_whole(
            problem, value.func.value, depth
        )
    whole = problem.dotted(value.func.value) == "torch" and bool(value.args)
    subject = value.args[0] if whole else value.func.value
    return method in _COMPARED or (method not in _TYPED and _is_whole(problem, subject, depth))


def _is_integer(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int)
