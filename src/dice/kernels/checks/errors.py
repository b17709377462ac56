"""Branches that only end the call with an error."""

from __future__ import annotations

import ast

from dice.kernels.checks.once import once
from dice.kernels.checks.python_names import identifiers
from dice.kernels.checks.python_source import PythonSource
from dice.kernels.source.lexer import words

_ANSWERS = words("StopIteration StopAsyncIteration GeneratorExit IndexError AttributeError")
"""Errors by which loops and lookups are told that there is no more."""


def ends_with_an_error(source: PythonSource, node: ast.AST) -> bool:
    """Whether a branch can do nothing but raise what forward does not catch, as where some of the results are checked."""
    ends = isinstance(node, ast.If) and not node.orelse and all(_is_an_error(source, item) for item in node.body)
    return ends and not source.swallows_errors


def _is_an_error(source: PythonSource, statement: ast.stmt) -> bool:
    """Whether a statement raises an error that no loop takes for its end, nor a class of the file's own made of such."""
    if not isinstance(statement, ast.Raise):
        return False
    named = identifiers(ast.walk(statement))
    return _ANSWERS.isdisjoint(named) and not any(_is_made_of_answers(source, name) for name in named)


@once
def _is_made_of_answers(source: PythonSource, name: str) -> bool:
    classes = [item for item in source.definitions(name) if isinstance(item, ast.ClassDef)]
    return not all(_ANSWERS.isdisjoint(identifiers(ast.walk(base))) for each in classes for base in each.bases)
