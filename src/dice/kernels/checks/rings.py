"""Counters that only choose where the next result is written: rings of buffers, two buffers used in turn.

A branch on such a counter sets that counter itself, or picks one of several buffers, and the work that follows is the same
for all of them. Where it decides whether there is work, or which result is returned, it is no ring.
"""

from __future__ import annotations

import ast
from collections.abc import Set

from dice.kernels.checks.once import once
from dice.kernels.checks.python_names import identifiers
from dice.kernels.checks.python_source import PythonSource
from dice.kernels.source.lexer import Token, partner, words
from dice.python_scope import bindings_of

_BUFFERS = words("torch.empty torch.empty_like torch.empty_strided torch.zeros torch.zeros_like new_empty new_zeros")


def only_turns(source: PythonSource, branch: ast.AST, counters: set[str]) -> bool:
    """Whether a Python branch on a counter only sets counters, or picks the buffer that forward fills and returns."""
    if not isinstance(branch, ast.If | ast.IfExp):
        return False
    if isinstance(branch, ast.IfExp):
        statement = source.parent(branch)
        return isinstance(statement, ast.Assign | ast.AnnAssign) and _turns(
            source, statement, [branch.body, branch.orelse], branch.test, counters
        )
    return all(
        isinstance(item, ast.Assign) and _turns(source, item, [item.value], branch.test, counters)
        for item in [*branch.body, *branch.orelse]
    )


def _turns(
    source: PythonSource,
    statement: ast.Assign | ast.AnnAssign,
    values: list[ast.expr],
    test: ast.expr,
    counters: set[str],
) -> bool:
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    if all(_is_asked(source, test, target) for target in targets):
        parts = [node for value in values for node in ast.walk(value)]
        return all(isinstance(node, _ARITHMETIC) for node in parts) and identifiers(parts) <= {*counters, "self"}
    names = {binding.name for binding in bindings_of(statement)}
    local = len(names) == 1 and all(isinstance(item.ctx, ast.Store) for item in _mentions(statement, names))
    return local and all(_is_buffer(source, value) for value in values) and _is_filled(source, *names)


def _is_asked(source: PythonSource, test: ast.expr, target: ast.expr) -> bool:
    """Whether a test asks for the very thing that is set, also through a variable: who sets another one tells it a count."""
    text = ast.unparse(target)
    named = (part.id for part in ast.walk(test) if isinstance(part, ast.Name))
    return text in _parts(test) or any(text in _given(source, name) for name in named)


@once
def _given(source: PythonSource, name: str) -> Set[str]:
    return {text for value in source.values(name) for text in _parts(value)}


def _parts(value: ast.expr) -> Set[str]:
    """Texts of all that could be given a value."""
    return {ast.unparse(part) for part in ast.walk(value) if isinstance(part, _TARGETS)}


_TARGETS = ast.Name | ast.Attribute | ast.Subscript | ast.Starred | ast.List | ast.Tuple


_ARITHMETIC = ast.Constant | ast.Name | ast.Attribute | ast.BinOp | ast.operator | ast.expr_context | ast.UnaryOp


def _mentions(statement: ast.stmt, names: set[str]) -> list[ast.Name]:
    return [node for node in ast.walk(statement) if isinstance(node, ast.Name) and node.id in names]


def _is_buffer(source: PythonSource, value: ast.expr) -> bool:
    """Whether an expression is `self.name`, where `name` never holds anything but memory without values."""
    if not isinstance(value, ast.Attribute) or ast.unparse(value.value) != "self":
        return False
    made = source.values(value.attr)
    return bool(made) and all(_is_empty(source, item) for item in made)


def _is_empty(source: PythonSource, value: ast.expr) -> bool:
    return value.value is None if isinstance(value, ast.Constant) else is_memory(source, value)


def is_memory(source: PythonSource, value: ast.expr) -> bool:
    """Whether an expression makes a tensor without values of its own, for somebody to write to."""
    if not isinstance(value, ast.Call):
        return False
    last = value.func.attr if isinstance(value.func, ast.Attribute) else ""
    return source.dotted(value.func) in _BUFFERS or (last in _BUFFERS and last.startswith("new_"))


def _is_filled(source: PythonSource, name: str) -> bool:
    """Whether forward passes the picked buffer to a call under no further condition, and every return is of it."""
    forward = source.forward
    if forward is None:
        return False
    returns = [node for node in ast.walk(forward) if isinstance(node, ast.Return)]
    passed = any(
        isinstance(item, ast.Expr)
        and isinstance(item.value, ast.Call)
        and any(isinstance(argument, ast.Name) and argument.id == name for argument in item.value.args)
        for item in forward.body
    )
    return passed and bool(returns) and all(name in identifiers(ast.walk(node)) for node in returns)


def only_resets(tokens: list[Token], index: int, counters: set[str]) -> bool:
    """Whether C++ at tokens[index] is `if (++slot == n) slot = 0;`: its body sets the counters in its condition, by
    numbers, and has no `else`."""
    closing = partner(tokens, index + 1) if index + 1 < len(tokens) else None
    if tokens[index].text != "if" or closing is None:
        return False
    braced = closing + 1 < len(tokens) and tokens[closing + 1].text == "{"
    start = closing + 2 if braced else closing + 1
    body = tokens[start : start + 4 + braced]
    texts = [token.text for token in body]
    after = tokens[start + 4 + braced].text if start + 4 + braced < len(tokens) else ""
    sets = len(texts) == 4 + braced and texts[0] in counters and texts[1] == "=" and body[2].kind == "number"
    return sets and texts[3] == ";" and (not braced or texts[4] == "}") and after != "else"
