"""Branches that only end the call with an error."""

from __future__ import annotations

import ast

from dice.kernels.checks.python_source import PythonSource


def ends_with_an_error(source: PythonSource, node: ast.AST) -> bool:
    """Whether a branch can do nothing but raise what forward does not catch, as where some of the results are checked."""
    ends = isinstance(node, ast.If) and not node.orelse and all(isinstance(item, ast.Raise) for item in node.body)
    return ends and not source.swallows_errors
