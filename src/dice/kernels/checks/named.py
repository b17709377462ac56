"""Whether a file spells the name of whatever it reads and stores, so that who mentions a name are all who know of it."""

from __future__ import annotations

import ast
import functools

from dice.kernels.checks.python_source import PythonSource
from dice.kernels.source.lexer import words

_BY_NAME = words("__dict__ __setattr__ __getattribute__ delattr attrgetter getmembers methodcaller")
"""What reads or stores anything by its name."""
_WITH_NAME = ("getattr", "setattr", "hasattr")
"""What does so by a name that its call says."""


@functools.lru_cache(maxsize=8)
def says_all_names(source: PythonSource) -> bool:
    """Whether no name is made at run time, nor put together of texts, nor handed to what reads or stores by it."""
    return (
        not source.computes_names
        and not any(map(source.mentions, _BY_NAME))
        and all(
            source.is_called(node) and _is_written(source.parent(node))
            for node in source.nodes
            if isinstance(node, ast.Name) and node.id in _WITH_NAME
        )
    )


def _is_written(call: ast.AST | None) -> bool:
    match call:
        case ast.Call(func=ast.Name(), args=[_, ast.Constant(), *_]):
            return True
    return False


def is_pythons(source: PythonSource, name: str) -> bool:
    """Whether a name is left to Python: the file gives it to nothing of its own."""
    return not (source.definitions(name) or source.values(name) or name in source.aliases.keys() | source.parameters)
