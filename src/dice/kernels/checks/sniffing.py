"""Branches of forward on a statistic of an input: a choice of algorithm by the data, or of a launch by drawn lengths."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from dice.kernels.checks.extensions import extension_names
from dice.kernels.checks.inputs import SHAPE_ONLY, count_inputs, forward_parameters
from dice.kernels.checks.python_names import identifiers
from dice.kernels.checks.python_source import PythonSource
from dice.kernels.checks.torch_calls import torch_computations
from dice.kernels.source.lexer import words

_STATISTICS = words("max min amax amin mean std var sum norm any all abs quantile median item")
_BRANCH = ast.If | ast.IfExp | ast.While | ast.Match


def sniffing(source: PythonSource, reference: PythonSource | None) -> Iterator[tuple[str, ast.AST, str]]:
    """A branch in forward on a statistic of an input against a number, where the reference has no such branch."""
    if reference is not None and any(_is_sniff(reference, node) for node in reference.in_forward):
        return
    counts = count_inputs(source, reference)
    for node in source.in_forward:
        if not _is_sniff(source, node) or _leaves_for_nothing(source, node, counts):
            continue
        if not _dispatches(source, node, counts):
            yield "input_sniffing", node, ""


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


def _dispatches(source: PythonSource, node: ast.AST, counts: set[str]) -> bool:
    """Whether a branch on whole numbers that the problem draws, as lengths are, chooses between ways of launching.

    None of them computes with PyTorch, and none leaves forward without an extension.
    """
    if not isinstance(node, ast.If | ast.IfExp | ast.Match):
        return False
    values = _statistics(source, _test(node), set(forward_parameters(source)) - counts)
    return all(_is_exact(source, value) for value in values) and all(
        _launches(source, outcome) for outcome in _outcomes(node)
    )


def _outcomes(node: ast.If | ast.IfExp | ast.Match) -> Sequence[Sequence[ast.AST]]:
    if isinstance(node, ast.Match):
        return [case.body for case in node.cases]
    return [node.body, node.orelse] if isinstance(node, ast.If) else [[node.body], [node.orelse]]


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
    reached = source.reach_from([*outcome])
    leaves = any(isinstance(inner, ast.Return) for item in outcome for inner in ast.walk(item))
    computes = next(torch_computations(source, reached), None) is not None
    return not computes and (not leaves or bool(identifiers(reached) & extension_names(source)))


def _is_sniff(source: PythonSource, node: ast.AST) -> bool:
    if not isinstance(node, _BRANCH) or (isinstance(node, ast.While) and not _runs_once(node)):
        return False
    if isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise):
        return False  # a check of the input, not a choice of algorithm
    test = _test(node)
    compared = any(isinstance(inner, ast.Compare) and not _only_identity(inner) for inner in ast.walk(test))
    compared |= isinstance(node, ast.Match)  # with its cases
    return compared and bool(_statistics(source, test, set(forward_parameters(source))))


def _test(node: ast.If | ast.IfExp | ast.While | ast.Match) -> ast.expr:
    return node.subject if isinstance(node, ast.Match) else node.test


def _runs_once(node: ast.While) -> bool:
    """Whether a loop is a branch in another spelling: it leaves at the end of its first round."""
    return isinstance(node.body[-1], ast.Return | ast.Break)


def _statistics(source: PythonSource, condition: ast.expr, inputs: set[str]) -> list[ast.Call]:
    """Statistics of any of `inputs` in a branch's condition, and in what it compares."""
    tests: list[ast.AST] = [condition]
    for name in identifiers(ast.walk(condition)) - set(forward_parameters(source)):
        tests += [value for value in source.values(name) if isinstance(source.parent(value), ast.Assign)]
    return [
        inner
        for test in tests
        for inner in ast.walk(test)
        if isinstance(inner, ast.Call)
        and isinstance(inner.func, ast.Attribute)
        and inner.func.attr in _STATISTICS
        and _of_input(source, inner, inputs)
    ]


def _only_identity(node: ast.Compare) -> bool:
    return all(isinstance(operator, ast.Is | ast.IsNot | ast.In | ast.NotIn) for operator in node.ops)


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
