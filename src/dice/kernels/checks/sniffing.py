"""Choices of forward by a statistic of an input: of algorithm by the data, or of a launch by drawn lengths."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from dice.kernels.checks.choices import Choice, choices, raises, work
from dice.kernels.checks.inputs import SHAPE_ONLY, count_inputs, forward_parameters
from dice.kernels.checks.python_names import identifier_of, identifiers
from dice.kernels.checks.python_source import PythonSource
from dice.kernels.source.lexer import words

_STATISTICS = words("max min amax amin mean std var sum norm any all abs quantile median item")
_QUESTIONS = words("any all bool equal allclose isinstance")
"""Functions and methods that give a truth."""


def sniffing(source: PythonSource, reference: PythonSource | None) -> Iterator[tuple[str, ast.AST, str]]:
    """A choice in forward by a statistic of an input against a number, where the reference makes no such choice."""
    if reference is not None and next(_sniffs(reference), None) is not None:
        return
    counts = count_inputs(source, reference)
    for choice in _sniffs(source):
        if not _leaves_for_nothing(source, choice.node, counts) and not _dispatches(source, choice, counts):
            yield "input_sniffing", choice.node, ""


def _leaves_for_nothing(source: PythonSource, node: ast.AST, counts: set[str]) -> bool:
    """Whether a branch only returns zeros where a count is zero: `if lengths.max() == 0: return zeros`.

    A statistic of floating-point values, even compared with zero, depends on the data: that is a choice of algorithm.
    """
    if not isinstance(node, ast.If) or node.orelse or len(node.body) != 1 or not isinstance(node.test, ast.Compare):
        return False
    left = isinstance(node.body[0], ast.Return) and node.body[0].value
    name = (source.dotted(left.func) or ast.unparse(left.func)) if isinstance(left, ast.Call) else ""
    zeros = name in ("torch.zeros", "torch.zeros_like") or name.endswith(".new_zeros")
    nought = [type(item) for item in node.test.ops] == [ast.Eq] and ast.unparse(node.test.comparators[0]) == "0"
    names = identifiers(ast.walk(node.test.left))
    names |= {name for each in names for value in source.values(each) for name in identifiers(ast.walk(value))}
    return zeros and nought and names & set(forward_parameters(source)) <= counts


def _dispatches(source: PythonSource, choice: Choice, counts: set[str]) -> bool:
    """Whether a choice by whole numbers that the problem draws, as lengths are, is one between ways of launching.

    None of them computes with PyTorch, and none leaves forward without an extension.
    """
    values = _statistics(source, choice.condition, set(forward_parameters(source)) - counts)
    return all(_is_exact(source, value) for value in values) and all(
        _launches(source, outcome) for outcome in choice.outcomes
    )


def _is_exact(source: PythonSource, statistic: ast.Call) -> bool:
    """Whether it asks if elements are exactly a number: `(mask != 0).all()`. That is a question about a pattern, as a whole
    number's is, and not about the size of values."""
    assert isinstance(statistic.func, ast.Attribute)
    whole = source.dotted(statistic.func.value) == "torch" and bool(statistic.args)
    subject = statistic.args[0] if whole else statistic.func.value
    if statistic.func.attr not in ("all", "any") or not isinstance(subject, ast.Compare):
        return False
    return all(isinstance(operator, ast.Eq | ast.NotEq) for operator in subject.ops) and all(
        isinstance(value, ast.Constant) for value in subject.comparators
    )


def _launches(source: PythonSource, outcome: Sequence[ast.AST]) -> bool:
    launches, computes = work(source, outcome)
    leaves = any(isinstance(inner, ast.Return) for item in outcome for inner in ast.walk(item))
    return not computes and (launches or not leaves)


def _sniffs(source: PythonSource) -> Iterator[Choice]:
    """Choices by a statistic of an input; not those of which the first outcome is an error, which check the input, and not
    those that are made again and again until something has converged."""
    inputs = set(forward_parameters(source))
    for choice in choices(source, source.in_forward):
        compares = choice.looks_up or _compares(source, choice.condition)
        if not compares or choice.repeats or raises(choice.outcomes[0]) or _is_truth(source, choice.node):
            continue
        if _statistics(source, choice.condition, inputs):
            yield choice


def _is_truth(source: PythonSource, node: ast.AST | None) -> bool:
    """Whether it is an `and` or `or` that is part of a condition, or that has nothing but conditions in it."""
    if not isinstance(node, ast.BoolOp):
        return False
    above = source.parent(node)
    asked = _is_negation(above) or node in (getattr(above, "test", None), *getattr(above, "ifs", ()))
    return asked or _is_question(node) or _is_truth(source, above)


def _is_question(value: ast.AST) -> bool:
    """Whether an expression can only be true or false."""
    if isinstance(value, ast.BoolOp):
        return all(map(_is_question, value.values))
    called = isinstance(value, ast.Call) and identifier_of(value.func) in _QUESTIONS
    return called or isinstance(value, ast.Compare) or _is_negation(value)


def _is_negation(value: ast.AST | None) -> bool:
    return isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not)


def _statistics(source: PythonSource, condition: ast.expr, inputs: set[str]) -> list[ast.Call]:
    """Statistics of any of `inputs` in a condition, and in what it compares."""
    return [
        inner
        for test in [condition, *_assigned(source, identifiers(ast.walk(condition)))]
        for inner in ast.walk(test)
        if isinstance(inner, ast.Call)
        and isinstance(inner.func, ast.Attribute)
        and inner.func.attr in _STATISTICS
        and _of_input(source, inner, inputs)
    ]


def _compares(source: PythonSource, condition: ast.expr) -> bool:
    """Whether there is a comparison in a condition, or in what was assigned to a name whose value it asks for."""
    parts = [node for node in ast.walk(condition) if not _is_identity(source.parent(node))]
    names = identifiers(node for node in parts if not isinstance(source.parent(node), ast.Attribute))
    tests = [condition, *_assigned(source, names)]
    return any(isinstance(node, ast.Compare) and not _is_identity(node) for test in tests for node in ast.walk(test))


def _assigned(source: PythonSource, names: set[str]) -> Iterator[ast.expr]:
    """What is assigned to names that are not forward's parameters."""
    for name in names - set(forward_parameters(source)):
        yield from (value for value in source.values(name) if isinstance(source.parent(value), ast.Assign))


def _is_identity(node: ast.AST | None) -> bool:
    """Whether it compares what things are, not their values."""
    return isinstance(node, ast.Compare) and all(
        isinstance(operator, ast.Is | ast.IsNot | ast.In | ast.NotIn) for operator in node.ops
    )


def _of_input(source: PythonSource, call: ast.Call, inputs: set[str]) -> bool:
    """Whether a statistic is taken of an input's values, not of its shape."""
    assert isinstance(call.func, ast.Attribute)
    subjects = [call.func.value, *call.args] if source.dotted(call.func.value) == "torch" else [call.func.value]
    for subject in subjects:
        for node in ast.walk(subject):
            if isinstance(node, ast.Name) and node.id in inputs:
                above = source.parent(node)
                if not (isinstance(above, ast.Attribute) and above.attr in SHAPE_ONLY):
                    return True
    return False
