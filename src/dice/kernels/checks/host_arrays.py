"""NumPy that computes with an input's values inside forward: work of the host that neither operators nor launches show.

What merely hands values on is no work: a conversion, a copy, a read of a few numbers. Whole numbers of the problem (lengths,
offsets), and a few coefficients, may be planned with on the host.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator

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
_ROUNDS = 6
"""Steps by which an array is followed through variables and functions."""


def host_array_findings(source: PythonSource, reference: PythonSource | None, seen: Seen | None) -> list[Finding]:
    """`host_computation` where NumPy computes with floating values of an input; a run that left the line out acquits."""
    return one_of_each(
        finding("host_computation", "static", f"NumPy: {source.line(node)}", warns=seen is None)
        for node in _computations(source, reference)
        if seen is None or not seen.lines or seen.lines & set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    )


def _computations(source: PythonSource, reference: PythonSource | None) -> Iterator[ast.expr | ast.AugAssign]:
    spared = count_inputs(source, reference) | _small_inputs(source, reference)
    arrays = _Arrays(source, set(forward_parameters(source)) - spared)
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
        if any(arrays.holds(part) for part in parts):
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


class _Arrays:
    """Which expressions are NumPy arrays of an input's values."""

    def __init__(self, source: PythonSource, inputs: set[str]) -> None:
        self._source, self._values, self._names = source, set(inputs), set[str]()
        for _ in range(_ROUNDS):
            for node in source.in_forward:
                self._follow(node)

    def holds(self, node: ast.expr) -> bool:
        """Whether it is such an array, or computed from one."""
        if isinstance(node, ast.Name):
            return node.id in self._names
        if isinstance(node, ast.Attribute):
            return node.attr not in SHAPE_ONLY and self.holds(node.value)
        if isinstance(node, ast.Subscript):
            return self.holds(node.value)
        if isinstance(node, ast.BinOp):
            return self.holds(node.left) or self.holds(node.right)
        if not isinstance(node, ast.Call):
            return False
        name, given = identifier_of(node.func), _owner(node.func)
        if name in _ARRAYS:
            return any(self._is_input(part) for part in given)
        if (self._source.dotted(node.func) or "").startswith("numpy."):
            return any(self._is_input(part) or self.holds(part) for part in node.args)
        return name not in ("item", "tolist", "tobytes") and any(self.holds(part) for part in given)

    def _is_input(self, node: ast.expr) -> bool:
        """Whether an expression is made from an input's values by methods: `x.detach().cpu()`."""
        while isinstance(node, ast.Call | ast.Attribute | ast.Subscript):
            if isinstance(node, ast.Attribute) and node.attr in SHAPE_ONLY:
                return False
            node = node.func if isinstance(node, ast.Call) else node.value
        return isinstance(node, ast.Name) and node.id in self._values

    def _follow(self, node: ast.AST) -> None:
        """Through an assignment, and into the parameters of the candidate's own functions."""
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._bind(target, node.value)
        elif isinstance(node, ast.Call):
            for function in self._source.definitions(identifier_of(node.func) or ""):
                if isinstance(function, ast.FunctionDef):
                    names = [name for name in positional_parameters(function) if name not in ("self", "cls")]
                    for name, value in zip(names, node.args, strict=False):
                        self._bind(ast.Name(name), value)

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            for each, part in zip(target.elts, value.elts, strict=True):
                self._bind(each, part)
        elif isinstance(target, ast.Name):
            self._names |= {target.id} if self.holds(value) else set()
            self._values |= {target.id} if self._is_input(value) else set()


def _owner(function: ast.expr) -> list[ast.expr]:
    """What a method is called of, if it is one: `x` of `x.numpy` and of `getattr(x, "numpy")`."""
    if isinstance(function, ast.Attribute):
        return [function.value]
    return function.args[:1] if isinstance(function, ast.Call) and identifier_of(function) else []
