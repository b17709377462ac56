"""Loggers of `logging`, told by how they are made, and what is done with them besides writing messages."""

from __future__ import annotations

import ast

from dice.kernels.checks.numbers_read import scopes_of
from dice.kernels.checks.once import once
from dice.kernels.checks.python_names import identifier_of
from dice.kernels.checks.python_source import PythonSource
from dice.kernels.checks.told import is_called_by_others
from dice.kernels.source.lexer import words
from dice.python_scope import Function, parameter_defaults

LEVELS = words("debug info warning warn error critical exception")
SAYING = LEVELS | {"log"}
"""Methods of a logger that write a message."""
OF_LOGGERS = SAYING | {"isEnabledFor"}
"""Methods of a logger that change nothing."""
HANDLERS = ("logging.NullHandler", "logging.StreamHandler")
"""Handlers that write to no file."""
_CLASS_NAMES = ("type(self).__name__", "self.__class__.__name__")


@once
def is_logger(source: PythonSource, name: str) -> bool:
    """Whether a name only ever stands for what `logging.getLogger` gives."""
    made = source.values(name)
    return bool(made) and all(_makes_a_logger(source, value) for value in made)


def _makes_a_logger(source: PythonSource, value: ast.expr) -> bool:
    match value:
        case ast.BoolOp(op=ast.Or(), values=[ast.Name() as given, own]):  # self.log = log or LOG
            return _is_left_out(source, given) and _is_a_logger(source, own)
        case ast.Name():
            return _is_a_logger(source, value)
    if not isinstance(value, ast.Call):
        return False
    if isinstance(value.func, ast.Attribute) and value.func.attr == "getChild":
        return _is_a_logger(source, value.func.value)
    if source.dotted(value.func) == "logging.LoggerAdapter":
        return bool(value.args) and _is_a_logger(source, value.args[0]) and _is_an_adapter(source, value)
    if isinstance(value.func, ast.Name) and source.definitions(value.func.id):
        return _gives_loggers(source, value.func.id)
    return _gets_one(source, value)


@once
def _gives_loggers(source: PythonSource, maker: str) -> bool:
    inside = (node for item in source.definitions(maker) for node in ast.walk(item))
    given = [node.value for node in inside if isinstance(node, ast.Return)]
    return bool(given) and all(value is not None and _is_a_logger(source, value) for value in given)


def _is_a_logger(source: PythonSource, value: ast.expr) -> bool:
    """Whether it is what `logging.getLogger` gives itself, or a name for that."""
    return _gets_one(source, value) if isinstance(value, ast.Call) else _is_one(source, identifier_of(value) or "")


@once
def _is_one(source: PythonSource, name: str) -> bool:
    made = source.values(name)
    return bool(made) and all(_gets_one(source, each) for each in made)


def _is_left_out(source: PythonSource, name: ast.Name) -> bool:
    """Whether it is an argument of the model's that nobody in the file gives it."""
    maker, entry = source.method(source.entry, "__init__"), source.entry
    if maker is None or entry is None or maker not in entry.body or not is_called_by_others(source):
        return False
    default, bare = parameter_defaults(maker).get(name.id), not (maker.decorator_list or entry.decorator_list)
    given = scopes_of(source).bindings[maker].get(name.id, [])
    around = next(above for above in source.ancestors(name) if isinstance(above, Function | ast.Lambda | ast.Module))
    none = isinstance(default, ast.Constant) and default.value is None
    return around is maker and none and bare and not entry.keywords and len(given) == 1


def _is_an_alias(source: PythonSource, node: ast.AST) -> bool:
    """Whether a logger gets another name, by which it is known as one."""
    above = source.parent(node)
    statement = source.parent(above) if isinstance(above, ast.BoolOp) else above
    return isinstance(statement, ast.Assign) and all(
        isinstance(target, ast.Name | ast.Attribute) and is_logger(source, identifier_of(target) or "")
        for target in statement.targets
    )


def _gets_one(source: PythonSource, value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and source.dotted(value.func) == "logging.getLogger"


def is_asked_as_a_logger(source: PythonSource, node: ast.AST) -> bool:
    """Whether nothing is done with a logger but what it is for; its handlers are of logging's own."""
    above = source.parent(node)
    if isinstance(above, ast.Return) or (isinstance(above, ast.Call) and _is_an_adapter(source, above)):
        return True
    if _is_an_alias(source, node):
        return True
    if not isinstance(above, ast.Attribute):
        return False
    call = source.parent(above)
    if above.attr == "handlers":
        return isinstance(call, ast.UnaryOp)  # if not logger.handlers
    if above.attr == "propagate":
        return (
            isinstance(above.ctx, ast.Store) and isinstance(call, ast.Assign) and isinstance(call.value, ast.Constant)
        )
    if not (isinstance(call, ast.Call) and call.func is above):
        return False
    if above.attr != "addHandler":
        return above.attr in OF_LOGGERS | {"setLevel", "getChild", "hasHandlers"}
    return len(call.args) == 1 and is_handler(source, call.args[0])


def _is_an_adapter(source: PythonSource, call: ast.Call) -> bool:
    """Whether it adds constants, or the name of a class, to what a logger says."""
    extra = [argument for argument in call.args[1:] if not isinstance(argument, ast.Dict)]
    said = [value for argument in call.args[1:] if isinstance(argument, ast.Dict) for value in argument.values]
    return source.dotted(call.func) == "logging.LoggerAdapter" and all(
        isinstance(value, ast.Constant) or ast.unparse(value) in _CLASS_NAMES for value in [*extra, *said]
    )


def is_handler(source: PythonSource, node: ast.AST) -> bool:
    """Whether a node makes one of logging's own handlers, or its name only ever stands for one."""
    if isinstance(node, ast.Call):
        return _makes_a_handler(source, node)
    return _is_always_a_handler(source, identifier_of(node) or "")


@once
def _is_always_a_handler(source: PythonSource, name: str) -> bool:
    made = source.values(name)
    return bool(made) and all(_makes_a_handler(source, value) for value in made)


def _makes_a_handler(source: PythonSource, value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and source.dotted(value.func) in HANDLERS


def is_set_up(source: PythonSource, node: ast.AST) -> bool:
    """Whether a handler is given a format, or to a logger."""
    above = source.parent(node)
    if isinstance(above, ast.Attribute):
        return above.attr in ("setFormatter", "setLevel") and isinstance(source.parent(above), ast.Call)
    return isinstance(above, ast.Call) and isinstance(above.func, ast.Attribute) and above.func.attr == "addHandler"
