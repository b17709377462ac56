"""What forward is told of its inputs besides their values: shapes, devices, types. Calls with the same inputs tell the same.

So who notes such things has noted all after the first call with them: that counts no calls.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Sequence

from dice.kernels.checks.inputs import SAME
from dice.kernels.checks.local_values import local_values
from dice.kernels.checks.named import is_pythons, says_all_names
from dice.kernels.checks.numbers_read import scopes_of
from dice.kernels.checks.once import once
from dice.kernels.checks.python_names import identifier_of
from dice.kernels.checks.python_source import CALLED_FIRST, ENTRY_CLASS, PythonSource
from dice.kernels.checks.weights import Helper, helper_of, passed_to
from dice.kernels.source.lexer import words
from dice.python_scope import Function, parameter_defaults, positional_parameters

_KINDS = words("device dtype shape ndim")
_OF_KINDS = words("type index")
_SIZES = words("size dim numel")
_ASKS_SELF = words("super type getattr hasattr isinstance id")
_RESHAPES = re.compile(
    r"\b(\w*squeeze|resize|resize_as|set|t|transpose|swap\w+|as_strided)_\b|\bswap_tensors\b|\.data\s*=[^=]"
)
"""In the text of a candidate that may give a tensor another shape or device where it lies."""
_FAR = 3
"""Functions by which an input is handed on."""


def is_told(source: PythonSource, value: ast.expr) -> bool:
    """Whether a value is made of constants and of kinds and sizes of inputs alone."""
    match value:
        case ast.Constant():
            return True
        case ast.Tuple(elts=parts) | ast.Call(func=ast.Name(id="tuple" | "str"), args=parts, keywords=[]):
            plain = isinstance(value, ast.Tuple) or is_pythons(source, identifier_of(value.func) or "")
            return plain and _are_told(source, parts)
        case ast.Subscript(value=ast.Attribute(attr="shape") as whole, slice=index):
            return is_told(source, whole) and _is_constant(index)
        case ast.Attribute(value=ast.Attribute(attr="device") as whole, attr=name):
            return name in _OF_KINDS and is_told(source, whole)
        case ast.Attribute(value=ast.Name() as owner, attr=name):
            return name in _KINDS and is_input(source, owner)
        case ast.Call(func=ast.Attribute(value=ast.Name() as owner, attr=name), args=parts, keywords=[]):
            return name in _SIZES and is_input(source, owner) and all(isinstance(each, ast.Constant) for each in parts)
        case ast.Name():
            made = local_values(source).behind(value)
            return made is not None and is_told(source, made)
    return False


def is_input(source: PythonSource, name: ast.Name, far: int = _FAR) -> bool:
    """Whether a variable only ever stands for what forward was given, or for the same in another form."""
    scopes = scopes_of(source)
    function = scopes.owner(name.id, scopes.scope_of[name])
    if not isinstance(function, Function) or not is_called_by_others(source):
        return False
    return _names_input(source, function, helper_of(source, name), name.id, far)


@once
def _names_input(source: PythonSource, function: Function, helper: Helper, name: str, far: int) -> bool:
    given = [found for found in scopes_of(source).bindings[function][name] if not isinstance(found.node, ast.arg)]
    again = all(found.whole and found.value is not None and _is_again(found.value, name) for found in given)
    if not again or name not in positional_parameters(function) or name in parameter_defaults(function):
        return False
    if function is source.forward:
        return True
    passed = passed_to(source, helper, name)
    return bool(passed) and far > 0 and all(isinstance(e, ast.Name) and is_input(source, e, far - 1) for e in passed)


@functools.lru_cache(maxsize=8)
def is_called_by_others(source: PythonSource) -> bool:
    """Whether forward is called by who uses the model alone, so that it is given tensors, which keep their shapes, and an
    error ends the call."""
    replaced = any(map(source.values, (ENTRY_CLASS, *CALLED_FIRST))) or "hook" in " ".join(source.mentioned)
    called = any(node is not source.forward for name in CALLED_FIRST for node in source.mentions(name))
    parts = all(_is_asked(source, node) for name in ("self", ENTRY_CLASS) for node in source.mentions(name))
    stays = says_all_names(source) and not any(map(_RESHAPES.search, source.lines))
    alone = parts and not (replaced or called)
    return source.forward is not None and source.entry in source.tree.body and alone and stays


def _is_asked(source: PythonSource, node: ast.AST) -> bool:
    """Whether a model, or its class, is asked for a part or a kind, so that nobody calls it as a whole."""
    above = source.parent(node)
    asked = isinstance(above, ast.Call) and isinstance(above.func, ast.Name) and above.func.id in _ASKS_SELF
    return isinstance(above, ast.Attribute) or (asked and node is not getattr(above, "func", None))


def _are_told(source: PythonSource, parts: Sequence[ast.expr]) -> bool:
    return all(is_told(source, part) for part in parts)


def _is_again(value: ast.expr, name: str) -> bool:
    """Whether it is the input of this name in another form: `x.contiguous()`."""
    match value:
        case ast.Call(func=ast.Attribute(value=owner, attr=method), args=given, keywords=[]):
            same = (isinstance(owner, ast.Name) and owner.id == name) or _is_again(owner, name)
            return same and method in SAME and all(map(_is_constant, given))
    return False


def _is_constant(value: ast.expr) -> bool:
    return isinstance(value.operand if isinstance(value, ast.UnaryOp) else value, ast.Constant)
