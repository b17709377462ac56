"""What is asked of the process and the machine for a message alone, or for how much a build prints."""

from __future__ import annotations

import ast

from dice.kernels.checks.extensions import is_builder
from dice.kernels.checks.messages import has_special_methods, is_listened_to, prints
from dice.kernels.checks.python_source import PythonSource

_IN_TEXTS = ast.JoinedStr | ast.FormattedValue


def only_said(source: PythonSource, node: ast.AST) -> bool:
    """Whether a value is part of a message to which nobody listens, or decides what the builder of an extension prints."""
    return _is_in_a_message(source, node) or _is_for_a_build(source, node)


def _is_in_a_message(source: PythonSource, node: ast.AST) -> bool:
    part, above = node, source.parent(node)
    while isinstance(above, _IN_TEXTS):
        part, above = above, source.parent(above)
    if not isinstance(above, ast.Call) or part not in above.args or not isinstance(source.parent(above), ast.Expr):
        return False
    elsewhere = above.keywords or source.dotted(above.func) == "warnings.warn"  # another stream, or Python's registry
    quiet = not has_special_methods(source) and not is_listened_to(source)
    return not elsewhere and prints(source, above.func) and quiet


def _is_for_a_build(source: PythonSource, node: ast.AST) -> bool:
    """Whether it is `flag in sys.argv`, given to PyTorch's own builder as `verbose`."""
    asked = source.parent(node)
    if not isinstance(asked, ast.Compare) or node not in asked.comparators or not isinstance(asked.left, ast.Constant):
        return False
    option = source.parent(asked)
    call = source.parent(option) if isinstance(option, ast.keyword) and option.arg == "verbose" else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return False
    own = source.definitions(call.func.id) or source.values(call.func.id) or call.func.id in source.parameters
    return not own and is_builder(source.dotted(call.func) or "")
