"""NumPy that computes with an input's values inside forward: work of the host that neither operators nor launches show.

What merely hands values on is no work: a conversion, a copy, a read of a few numbers. Whole numbers of the problem (lengths,
offsets), and a few coefficients, may be planned with on the host.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from dice.kernels.checks.finding import finding, one_of_each
from dice.kernels.checks.inputs import SHAPE_ONLY, count_inputs, forward_parameters, made_inputs
from dice.kernels.checks.python_names import identifier_of
from dice.kernels.checks.python_source import PythonSource
from dice.kernels.checks.seen import Seen
from dice.kernels.records.verdict import Finding
from dice.kernels.source.lexer import words
from dice.python_scope import positional_parameters

_ARRAYS = words("numpy __array__")
_HANDED_ON = words(
    "array asarray ascontiguousarray asfortranarray copy astype reshape ravel flatten view transpose squeeze item tolist "
    "tobytes from_numpy as_tensor tensor frombuffer len print float int bool str repr format data_as id type isinstance"
)
"""Functions and methods that compute nothing."""
_FEW = 64
"""Elements of an input that the host may compute with."""


def host_array_findings(source: PythonSource, reference: PythonSource | None, seen: Seen | None) -> list[Finding]:
    """`host_computation` where NumPy computes with floating values of an input; a run that left the line out acquits."""
    return one_of_each(
        finding("host_computation", "static", f"NumPy: {source.line(node)}", warns=seen is None)
        for node in _computations(source, reference)
        if seen is None or not seen.lines or seen.lines & set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    )


def _computations(source: PythonSource, reference: PythonSource | None) -> Iterator[ast.expr | ast.AugAssign]:
    spared = count_inputs(source, reference) | _small_inputs(source, reference)
    arrays = _arrays(source, set(forward_parameters(source)) - spared)
    for node in source.in_forward:
        if isinstance(node, ast.BinOp):
            parts: list[ast.expr] = [node.left, node.right]
        elif isinstance(node, ast.AugAssign):
            parts = [node.target, node.value]
        elif isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
            parts = [node.operand]
        elif isinstance(node, ast.Call) and identifier_of(node.func) not in _HANDED_ON:
            owner = _owner(node.func)
            by_numpy = (source.dotted(node.func) or "").startswith(("numpy.", "scipy."))
            parts = [*owner, *(node.args if by_numpy else [])]
        else:
            continue
        if not arrays.isdisjoint(parts):
            yield node


def _small_inputs(source: PythonSource, reference: PythonSource | None) -> set[str]:
    """forward's parameters that the problem draws with a few elements."""
    made = made_inputs(reference) if reference is not None else []
    return {
        name
        for name, values in zip(forward_parameters(source), made, strict=False)
        if reference is not None and values and all(_elements(reference, value) <= _FEW for value in values)
    }


def _elements(problem: PythonSource, value: ast.expr) -> float:
    """Elements of `torch.rand(3, 3)` and the like; infinity where the sizes cannot be read off."""
    if not isinstance(value, ast.Call) or (problem.dotted(value.func) or "").rpartition(".")[0] != "torch":
        return math.inf
    count = 1.0
    for size in (
        part for item in value.args for part in (item.elts if isinstance(item, ast.List | ast.Tuple) else [item])
    ):
        found = problem.values(size.id) if isinstance(size, ast.Name) else [size]
        number = found[0].value if len(found) == 1 and isinstance(found[0], ast.Constant) else math.inf
        count *= number if isinstance(number, int | float) else math.inf
    return count


_Place = ast.AST | str | tuple[str, int]
"""An expression, a name, or an argument of the functions with a name."""


def _arrays(source: PythonSource, inputs: Iterable[str]) -> Set[_Place]:
    """Expressions that are NumPy arrays of an input's values or computed from one, also through variables and functions."""
    users: dict[_Place, list[_Place]] = {}
    bound: dict[_Place, list[_Place]] = {}
    for value, target in _bindings(source):
        users.setdefault(value, []).append(target)
        origin = _root(value) if isinstance(value, ast.AST) else value
        if origin is not None:
            bound.setdefault(origin, []).append(target)
    values = _closure(inputs, bound)
    arrays: list[_Place] = []
    for node in source.nodes:
        if isinstance(node, ast.Name):
            users.setdefault(node.id, []).append(node)
        elif (isinstance(node, ast.Attribute) and node.attr not in SHAPE_ONLY) or isinstance(node, ast.Subscript):
            users.setdefault(node.value, []).append(node)
        elif isinstance(node, ast.BinOp):
            users.setdefault(node.left, []).append(node)
            users.setdefault(node.right, []).append(node)
        elif isinstance(node, ast.Call):
            name = identifier_of(node.func)
            by_numpy = (source.dotted(node.func) or "").startswith("numpy.")
            parts = _owner(node.func) if name in _ARRAYS or not by_numpy else node.args
            if (name in _ARRAYS or by_numpy) and any(_root(part) in values for part in parts):
                arrays.append(node)
            if name not in _ARRAYS and name not in ("item", "tolist", "tobytes"):
                for part in parts:
                    users.setdefault(part, []).append(node)
    return _closure(arrays, users)


def _closure(begin: Iterable[_Place], users: Mapping[_Place, Sequence[_Place]]) -> Set[_Place]:
    """What some of `begin` get to through their users, and theirs."""
    found: set[_Place] = set(begin)
    waiting = [*found]
    while waiting:
        fresh = [user for user in users.get(waiting.pop(), ()) if user not in found]
        found.update(fresh)
        waiting += fresh
    return found


def _bindings(source: PythonSource) -> Iterator[tuple[_Place, _Place]]:
    """What is given to what: by assignments, and to the parameters of the candidate's own functions."""
    called: set[str] = set()
    for node in source.in_forward:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _bound(target, node.value)
        elif isinstance(node, ast.Call) and source.definitions(name := identifier_of(node.func) or ""):
            yield from ((value, (name, place)) for place, value in enumerate(node.args))
            called.add(name)
    for name in called:
        for function in source.definitions(name):
            if isinstance(function, ast.FunctionDef):
                taken = [each for each in positional_parameters(function) if each not in ("self", "cls")]
                yield from (((name, place), parameter) for place, parameter in enumerate(taken))


def _bound(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, str]]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        for each, part in zip(target.elts, value.elts, strict=True):
            yield from _bound(each, part)
    elif isinstance(target, ast.Name):
        yield value, target.id


def _root(node: ast.AST) -> str | None:
    """The name from which an expression is made by methods: `x` of `x.detach().cpu()`."""
    while isinstance(node, ast.Call | ast.Attribute | ast.Subscript):
        if isinstance(node, ast.Attribute) and node.attr in SHAPE_ONLY:
            return None
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None


def _owner(function: ast.expr) -> list[ast.expr]:
    """What a method is called of, if it is one: `x` of `x.numpy` and of `getattr(x, "numpy")`."""
    if isinstance(function, ast.Attribute):
        return [function.value]
    return function.args[:1] if isinstance(function, ast.Call) and identifier_of(function) else []
