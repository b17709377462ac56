"""Choices of forward by a statistic of an input: of algorithm by the data, or of a launch by drawn lengths."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterable, Iterator, Set

from dice.kernels.checks.choices import Choice, choices, raises, work_of
from dice.kernels.checks.inputs import SHAPE_ONLY, count_inputs, forward_parameters
from dice.kernels.checks.made_from import assigned, made_from, returned
from dice.kernels.checks.messages import says_only
from dice.kernels.checks.numbers_read import NumbersRead, is_of_a_pattern, numbers_read
from dice.kernels.checks.python_names import identifier_of
from dice.kernels.checks.python_source import PythonSource
from dice.kernels.checks.reports import only_reports
from dice.kernels.source.lexer import words
from dice.python_scope import Function

_STATISTICS = words("max min amax amin mean std var sum norm any all abs quantile median item")
_QUESTIONS = words("any all bool equal allclose isinstance")
"""Functions and methods that give a truth."""


def sniffing(source: PythonSource, reference: PythonSource | None) -> Iterator[tuple[str, ast.AST, str]]:
    """A choice in forward by a statistic of an input against a number, where the reference makes no such choice."""
    if reference is not None and next(_sniffs(reference), None) is not None:
        return
    counts = count_inputs(source, reference)
    statistics = _statistics(source, set(forward_parameters(source)) - counts)
    inexact = _asked_for(source, (call for call in statistics if not is_of_a_pattern(source, call)))
    mentions = (node for name in set(forward_parameters(source)) - counts for node in source.mentions(name))
    of_values = made_from(source, mentions, source.values, 1)
    floats = numbers_read(source, set(forward_parameters(source)) - counts)
    for choice in _sniffs(source):
        if says_only(source, choice.node) or only_reports(source, choice.node):
            continue
        if not _leaves_for_nothing(source, choice.node, of_values, floats) and not _dispatches(source, choice, inexact):
            yield "input_sniffing", choice.node, ""


def _leaves_for_nothing(source: PythonSource, node: ast.AST, of_values: Set[ast.AST], floats: NumbersRead) -> bool:
    """Whether a branch only returns zeros where a count is zero: `if lengths.max() == 0: return zeros`.

    A statistic of floating-point values, even compared with zero, depends on the data: that is a choice of algorithm.
    of_values: what such values are made into. floats: what reads them; where a function says it, that is all that is asked.
    """
    if not isinstance(node, ast.If) or node.orelse or not returns_zeros(source, node):
        return False
    if isinstance(node.test, ast.Call) and identifier_of(node.test.func) in _helpers(source):
        return not floats.by(node.test)
    if not isinstance(node.test, ast.Compare):
        return False
    nought = [type(item) for item in node.test.ops] == [ast.Eq] and ast.unparse(node.test.comparators[0]) == "0"
    return nought and node.test.left not in of_values


def returns_zeros(source: PythonSource, node: ast.AST) -> bool:
    """Whether the body of an `if` only returns zeros."""
    match node:
        case ast.If(body=[ast.Return(value=ast.Call(func=function))]):
            name = source.dotted(function) or ast.unparse(function)
            return name in ("torch.zeros", "torch.zeros_like") or name.endswith(".new_zeros")
    return False


def _dispatches(source: PythonSource, choice: Choice, inexact: Set[ast.AST]) -> bool:
    """Whether a choice by whole numbers that the problem draws, as lengths are, is one between ways of launching.

    None of them computes with PyTorch, and none leaves forward without an extension.
    """
    return inexact.isdisjoint(choice.conditions) and work_of(source).only_launch(choice.outcomes)


def _sniffs(source: PythonSource) -> Iterator[Choice]:
    """Choices by a statistic of an input; not those of which the first outcome is an error, which check the input, and not
    those that are made again and again until something has converged."""
    statistics = _asked_for(source, _statistics(source, set(forward_parameters(source))))
    if not statistics:
        return
    compared, truths = _compared(source), _truths(source)
    for choice in choices(source, source.in_forward):
        compares = choice.looks_up or not compared.isdisjoint(choice.conditions)
        if not compares or choice.repeats or raises(choice.outcomes.blocks[0]) or choice.node in truths:
            continue
        if not statistics.isdisjoint(choice.conditions):
            yield choice


def _truths(source: PythonSource) -> Set[ast.AST]:
    """Every `and` and `or` that is part of a condition, or that has nothing but conditions in it."""
    questions: set[ast.AST] = set()
    for node in reversed(source.nodes):  # from the inside out
        if _is_question(node, questions):
            questions.add(node)
    found: set[ast.AST] = set()
    for node in source.nodes:
        if isinstance(node, ast.BoolOp):
            above = source.parent(node)
            asked = _is_negation(above) or node in (getattr(above, "test", None), *getattr(above, "ifs", ()))
            if asked or node in questions or above in found:
                found.add(node)
    return found


def _is_question(value: ast.AST, questions: Set[ast.AST]) -> bool:
    """Whether an expression can only be true or false. questions: those inside it that can."""
    if isinstance(value, ast.BoolOp):
        return all(item in questions for item in value.values)
    called = isinstance(value, ast.Call) and identifier_of(value.func) in _QUESTIONS
    return called or isinstance(value, ast.Compare) or _is_negation(value)


def _is_negation(value: ast.AST | None) -> bool:
    return isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not)


def _statistics(source: PythonSource, inputs: set[str]) -> list[ast.Call]:
    """Statistics of the values of any of `inputs`, not of its shape."""
    read = source.around(
        node
        for name in inputs
        for node in source.mentions(name)
        if isinstance(node, ast.Name) and _is_read(source, node)
    )
    numbers = numbers_read(source, inputs)
    helped = {node for name in _helpers(source) for value in returned(source, name) for node in ast.walk(value)}
    return [
        node
        for node in source.nodes
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _STATISTICS
        and (
            node.func.value in read
            or (not read.isdisjoint(node.args) and source.dotted(node.func.value) == "torch")
            or (node in helped and numbers.by(node))
        )
    ]


def _is_read(source: PythonSource, name: ast.Name) -> bool:
    above = source.parent(name)
    return not (isinstance(above, ast.Attribute) and above.attr in SHAPE_ONLY)


def _asked_for(source: PythonSource, nodes: Iterable[ast.AST]) -> Set[ast.AST]:
    """What has any of `nodes` in it, or a name, but for forward's parameters, that is assigned or returns such."""
    return made_from(source, nodes, _stands_for(source), 1, follows=lambda mention: _is_given(source, mention))


def _is_given(source: PythonSource, mention: ast.AST) -> bool:
    """Whether a mention of a name gives what it stands for: of a function of the file, a call of it."""
    if identifier_of(mention) not in _helpers(source):
        return True
    return source.is_called(mention) and not (source.dotted(mention) or "").startswith("torch.")


def _stands_for(source: PythonSource) -> Callable[[str], Iterable[ast.AST]]:
    """What a name is assigned, and what a function on forward's path returns."""
    given, helpers = assigned(source, {*forward_parameters(source)}), _helpers(source)
    return lambda name: [*given(name), *(returned(source, name) if name in helpers else ())]


@functools.lru_cache(maxsize=8)
def _helpers(source: PythonSource) -> Set[str]:
    """Functions on forward's path, but for forward."""
    functions = (node for node in source.in_forward if isinstance(node, Function) and node is not source.forward)
    return {function.name for function in functions}


def _compared(source: PythonSource) -> Set[ast.AST]:
    """What has a comparison in it, or a name that is assigned one and asked for its value."""

    def follows(mention: ast.AST) -> bool:
        above = source.parent(mention)
        return _is_given(source, mention) and not (isinstance(above, ast.Attribute) or _is_identity(above))

    comparisons = (node for node in source.nodes if isinstance(node, ast.Compare) and not _is_identity(node))
    return made_from(source, comparisons, _stands_for(source), 1, follows=follows)


def _is_identity(node: ast.AST | None) -> bool:
    """Whether it compares what things are, not their values."""
    return isinstance(node, ast.Compare) and all(
        isinstance(operator, ast.Is | ast.IsNot | ast.In | ast.NotIn) for operator in node.ops
    )
