"""Functions that forward calls aside: a check of the kernels at their first use, a line for a log. No output depends on them.

Such a function is called for nothing that it gives back, is told no more than devices and shapes, and changes nothing but
what says that it has run.
"""

from __future__ import annotations

import ast
import builtins
import functools
from collections.abc import Iterator, Sequence, Set

from dice.kernels.checks.extensions import extension_names
from dice.kernels.checks.messages import is_logger
from dice.kernels.checks.python_source import PythonSource
from dice.kernels.source.lexer import words
from dice.python_scope import Function

_TOLD = words("device dtype shape ndim")
"""Attributes of a tensor that it may be told."""
_NOTED = words("add append")
"""Methods by which a container is told that it has run."""
_RUNS_OTHER_CODE = words(
    "eval exec compile globals locals vars setattr delattr getattr __import__ open input memoryview"
)
_MODULES = words("torch numpy math time logging warnings itertools collections")
"""Those that it may use."""
_SETTERS = (
    "set",
    "use",
    "_",
    "register",
    "enable",
    "disable",
    "load",
    "out",
    "jit",
    "library",
    "ops",
    "utils",
    "testing",
)
"""How names begin of what changes a setting, or leads to anything."""
_STARTS = words("set() dict() list() {} [] False True 0 itertools.count() itertools.count(0) itertools.count(1)")
"""What says whether it has run, or how often, at first."""
_SETTINGS = words("os.getenv os.environ.get int float bool str")
"""Functions that give a number or a text."""
_HOLDS_MORE = (
    ast.Lambda
    | ast.Yield
    | ast.YieldFrom
    | ast.Await
    | ast.ClassDef
    | ast.Delete
    | ast.Nonlocal
    | ast.Import
    | ast.ImportFrom
)


def is_aside(source: PythonSource, node: ast.AST) -> bool:
    """Whether a node stands in such a function."""
    around = next((above for above in source.ancestors(node) if isinstance(above, Function)), None)
    return isinstance(around, ast.FunctionDef) and _is_aside(source, around)


@functools.lru_cache(maxsize=64)
def _is_aside(source: PythonSource, function: ast.FunctionDef) -> bool:
    return (
        not source.swallows_errors  # its error may be a choice
        and isinstance(source.parent(function), ast.Module)
        and _gives_nothing(source, function)
        and _changes_nothing(source, function)
    )


def _gives_nothing(source: PythonSource, function: ast.FunctionDef) -> bool:
    """Whether nobody uses what it returns, and it is told no more than devices and shapes."""
    uses = [use for use in source.mentions(function.name) if use is not function]
    calls = [above for use in uses if isinstance(above := source.parent(use), ast.Call) and above.func is use]
    return (
        bool(calls)
        and len(calls) == len(uses)
        and not function.decorator_list
        and all(
            isinstance(source.parent(call), ast.Expr)
            and all(map(_is_told, [*call.args, *(k.value for k in call.keywords)]))
            for call in calls
        )
    )


def _is_told(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) or (
        isinstance(value, ast.Attribute) and value.attr in _TOLD and isinstance(value.value, ast.Name)
    )


def _changes_nothing(source: PythonSource, function: ast.FunctionDef) -> bool:
    """Whether it changes nothing but its own variables and what says that it has run."""
    inside: Sequence[ast.AST] = [*ast.walk(function)]
    shared = {name for node in inside if isinstance(node, ast.Global) for name in node.names}
    stored = {node.id for node in inside if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    own = {node.arg for node in inside if isinstance(node, ast.arg)} | stored - shared
    read = {node.id for node in inside if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    extensions = extension_names(source)
    flags = {name for name in read | shared if name not in own and _says_that_it_has_run(source, name)}
    loggers = {name for name in read if is_logger(source, name)}
    settings = {name for name in read if name not in own and _is_setting(source, name)}
    known = own | flags | settings | source.aliases.keys() | extensions | _plain_names() | loggers
    return (
        shared <= flags
        and read <= known
        and not any(isinstance(node, _HOLDS_MORE) or _is_stored_elsewhere(node) for node in inside)
        and not any(isinstance(node, Function) for node in inside if node is not function)
        and not any(_sets_something(source, node, extensions) for node in inside)
        and all(_is_harmless(source, call, inside, flags, extensions) for call in _calls(inside))
    )


def _calls(inside: Sequence[ast.AST]) -> Iterator[ast.Call]:
    return (node for node in inside if isinstance(node, ast.Call))


def _is_stored_elsewhere(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load)


def _says_that_it_has_run(source: PythonSource, name: str) -> bool:
    values = source.values(name)
    return bool(values) and all(ast.unparse(value) in _STARTS for value in values)


def _is_setting(source: PythonSource, name: str) -> bool:
    """Whether a name only ever stands for numbers and texts of constants and of the environment."""
    values = source.values(name)
    return bool(values) and all(_is_plain(source, value) for value in values)


def _is_plain(source: PythonSource, value: ast.expr) -> bool:
    match value:
        case ast.Compare(left=left, comparators=others):
            parts = [left, *others]
        case ast.BoolOp(values=parts) | ast.Call(args=parts, keywords=[]):
            if isinstance(value, ast.Call) and source.dotted(value.func) not in _SETTINGS:
                return False
        case ast.UnaryOp(operand=operand):
            parts = [operand]
        case _:
            return isinstance(value, ast.Constant)
    return all(_is_plain(source, part) for part in parts)


def _is_harmless(
    source: PythonSource, call: ast.Call, inside: Sequence[ast.AST], flags: Set[str], extensions: Set[str]
) -> bool:
    """Of an extension: only what is called elsewhere, too, so that it runs what forward runs."""
    if any(isinstance(part, ast.Name) and part.id in flags for part in call.args):
        return source.dotted(call.func) in ("next", "len")
    match call.func:
        case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner in extensions:
            mine = {*inside}
            return any(isinstance(source.parent(use), ast.Call) and use not in mine for use in source.mentions(name))
        case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner in flags:
            return name in _NOTED
    return True


def _sets_something(source: PythonSource, node: ast.AST, extensions: Set[str]) -> bool:
    """Whether it names what changes more than its caller sees: a setting, another module's state, an extension itself."""
    if isinstance(node, ast.Attribute):
        return node.attr.startswith(_SETTERS)
    if not isinstance(node, ast.Name):
        return False
    if node.id in extensions:
        above = source.parent(node)
        called = source.parent(above) if above is not None else None
        return not (isinstance(above, ast.Attribute) and isinstance(called, ast.Call) and called.func is above)
    module, _, name = source.aliases.get(node.id, "").partition(".")
    return bool(module) and (module not in _MODULES or name.rpartition(".")[2].startswith(_SETTERS))


def _plain_names() -> Set[str]:
    return {*vars(builtins)} - _RUNS_OTHER_CODE
