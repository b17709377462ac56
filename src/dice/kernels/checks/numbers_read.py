"""Conditions that are made from numbers of a tensor, in whatever way they read them.

Nothing here lists what brings numbers to the host: `float(x[0])`, NumPy, `repr` and `torch.linalg.norm` are a few of the
ways. Listed is what may be asked of a tensor without its numbers: kind, size and identity.
"""

from __future__ import annotations

import ast
from collections.abc import Set

from dice.kernels.checks.choices import work_of
from dice.kernels.checks.extensions import extension_names
from dice.kernels.checks.inputs import SHAPE_ONLY, forward_parameters, made_inputs
from dice.kernels.checks.python_names import identifier_of
from dice.kernels.checks.python_source import PythonSource
from dice.kernels.source.lexer import words
from dice.python_scope import bindings_of

_OF_KINDS = SHAPE_ONLY | words(
    "is_floating_point is_complex is_sparse is_nested is_meta is_quantized is_inference is_leaf is_pinned is_conj is_neg "
    "grad_fn names itemsize nbytes storage_offset isinstance type len is_tensor hasattr getattr callable "
    "has_torch_function has_torch_function_unary has_torch_function_variadic"
)
_OF_ADDRESSES = words("data_ptr id hash")
"""Judged by themselves: a kernel may ask how memory is aligned."""
_OF_SIZE = ast.Lt | ast.LtE | ast.Gt | ast.GtE | ast.Eq | ast.NotEq
"""Comparisons of what things hold; the others ask what they are."""
_ROUNDS = 6
"""Steps by which numbers are followed through variables."""


class NumbersRead:
    """Which expressions of forward read numbers of `tensors`."""

    def __init__(self, source: PythonSource, tensors: Set[str]) -> None:
        self._source, self._names = source, set(tensors)
        self._of_extensions = source.mentioning(extension_names(source))
        bound = [
            (found.name, found.value)
            for node in source.in_forward
            for found in bindings_of(node)
            if found.value is not None and not found.attribute
        ]
        for _ in range(_ROUNDS if tensors else 0):
            more = {name for name, value in bound if name not in self._names and self.by(value)}
            if not more:
                break
            self._names |= more

    def by(self, condition: ast.AST) -> bool:
        """Whether an expression does."""
        pending = [condition]
        while pending:
            node = pending.pop()
            if isinstance(node, ast.Name) and node.id in self._names:
                return True
            if self._asks_for_less(node):
                continue
            if isinstance(node, ast.comprehension):
                pending += node.ifs
            elif isinstance(node, ast.BoolOp | ast.ListComp | ast.GeneratorExp):
                pending += [part for part in ast.iter_child_nodes(node) if not self._is_outcome(part)]
            else:
                pending += ast.iter_child_nodes(node)
        return False

    def _asks_for_less(self, node: ast.AST) -> bool:
        """Whether it asks for kind, size, address or identity, or calls a function of the file or an extension, which are
        read where they stand."""
        if isinstance(node, ast.Compare):
            return not any(isinstance(item, _OF_SIZE) for item in node.ops)
        if not isinstance(node, ast.Call | ast.Attribute):
            return False
        name = identifier_of(node.func if isinstance(node, ast.Call) else node) or ""
        if name in _OF_KINDS | _OF_ADDRESSES or self._source.definitions(name):
            return True
        return isinstance(node, ast.Call) and node.func in self._of_extensions

    def _is_outcome(self, part: ast.AST) -> bool:
        """Whether it is a value that `and`, `or` or a list gives, no question: `(late and torch.relu(x)) or ext.relu(x)`."""
        return not isinstance(part, ast.Compare | ast.UnaryOp | ast.comprehension) and any(
            work_of(self._source).of([part])
        )


def tensors_given(source: PythonSource, reference: PythonSource | None) -> set[str]:
    """forward's parameters that the problem draws as tensors."""
    made = made_inputs(reference) if reference is not None else []
    return {
        name
        for name, values in zip(forward_parameters(source), made, strict=False)
        if values and not any(isinstance(value, ast.Constant | ast.UnaryOp) for value in values)
    }
