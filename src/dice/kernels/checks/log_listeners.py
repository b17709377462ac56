"""Listeners that write a log in a thread of logging's own, and are stopped when the process ends, so that no line is lost.

What runs then writes the lines that are left: no code of the candidate's, as long as queue, handlers and texts are Python's.
"""

from __future__ import annotations

import ast

from dice.kernels.checks.loggers import is_handler
from dice.kernels.checks.messages import has_special_methods
from dice.kernels.checks.named import says_all_names
from dice.kernels.checks.python_names import identifier_of
from dice.kernels.checks.python_source import PythonSource

_QUEUES = ("queue.SimpleQueue", "queue.Queue")


def stops_a_listener(source: PythonSource, call: ast.Call) -> bool:
    """Whether it is `atexit.register(listener.stop)`, of a listener that can be nothing else."""
    match call:
        case ast.Call(args=[ast.Attribute(value=ast.Name(id=name), attr="stop")], keywords=[]):
            made = source.values(name)
        case _:
            return False
    whole = not (source.definitions(name) or name in source.aliases.keys() | source.parameters)
    listens = bool(made) and all(_is_a_listener(source, value) for value in made)
    return whole and listens and _is_pythons_own(source)


def _is_a_listener(source: PythonSource, value: ast.expr) -> bool:
    match value:
        case ast.Call(func=function, args=[ast.Name(id=name), *handlers]):
            queues = source.values(name)
            known = bool(queues) and all(isinstance(each, ast.Call) and not each.args for each in queues)
            known = known and all(source.dotted(getattr(each, "func", None)) in _QUEUES for each in queues)
            listens = source.dotted(function) == "logging.handlers.QueueListener"
            plain = all(isinstance(each.value, ast.Constant) for each in value.keywords)
            return known and listens and plain and all(is_handler(source, each) for each in handlers)
    return False


def _is_pythons_own(source: PythonSource) -> bool:
    """Whether nobody puts a function of the candidate's in the place of one that writes a log."""
    stored = [node for node in source.nodes if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load)]
    own = all(identifier_of(node.value) == "self" for node in stored)
    return own and says_all_names(source) and not source.mentions("setattr") and not has_special_methods(source)
