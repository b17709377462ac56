"""Conditions that are made from numbers of a tensor, in whatever way they read them.

Nothing here lists what brings numbers to the host: `float(x[0])`, NumPy, `repr` and `torch.linalg.norm` are a few of the
ways. Listed is what may be asked of a tensor without its numbers: kind, size and identity. Numbers are followed as if a
function of the file stood where it is called: into its parameters, through its variables, back by what it returns.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Set
from typing import NamedTuple

from dice.kernels.checks.callees import Called, Place, callees_of, given, takers
from dice.kernels.checks.choices import work_of
from dice.kernels.checks.extensions import extension_names
from dice.kernels.checks.inputs import SHAPE_ONLY, forward_parameters, made_inputs
from dice.kernels.checks.python_names import identifier_of
from dice.kernels.checks.python_source import PythonSource
from dice.kernels.checks.selections import asked_of, asks_size, has_numbers_in_bounds, is_made_to_size, masks, selects
from dice.kernels.source.lexer import words
from dice.python_scope import Function, Scope, Scopes, bindings_of, parameters

_OF_KINDS = SHAPE_ONLY | words(
    "is_floating_point is_complex is_sparse is_nested is_meta is_quantized is_inference is_leaf is_pinned is_conj is_neg "
    "grad_fn names itemsize nbytes storage_offset isinstance type len is_tensor hasattr getattr callable "
    "has_torch_function has_torch_function_unary has_torch_function_variadic empty_like zeros_like ones_like full_like"
)
_OF_ADDRESSES = words("data_ptr id hash _version _base")
"""Judged by themselves: a kernel may ask how memory is aligned."""
_OF_SIZE = ast.Lt | ast.LtE | ast.Gt | ast.GtE | ast.Eq | ast.NotEq
"""Comparisons of what things hold; the others ask what they are."""
_EQUALITIES = words("equal array_equal")
"""Functions that ask if all elements are those of another tensor."""
_PROPERTIES = words("property cached_property")
_ROUNDS = 12
"""Steps by which numbers are followed through variables and functions."""

_Variable = tuple[Scope | None, str]
"""A name with the scope that it belongs to; an attribute of any object has None."""


class Besides(NamedTuple):
    """What counts as reading numbers, besides what does anyway."""

    sizes: bool = False
    """How many elements a tensor has, where values say that: `len(x[x > 3])`."""
    kernels: frozenset[str] = frozenset()
    """Reading what these functions of C++ have made of numbers."""
    patterns: bool = True
    """Asking if elements are exactly a number: `(mask != 0).all()`. That is a question about a pattern, as a whole number's
    is, and not about the size of values."""


_USUAL = Besides()


class NumbersRead:
    """Which expressions of forward read numbers of `tensors`, parameters of forward's."""

    def __init__(
        self, source: PythonSource, tensors: Set[str], readers: Set[str] = frozenset(), besides: Besides = _USUAL
    ) -> None:
        """readers: functions of C++ that read a tensor's numbers and return one."""
        self._source, self._readers, self._besides = source, readers, besides
        self._masks = masks(source) if besides.sizes else frozenset[ast.AST]()
        self._sized: set[_Variable] = set()
        """Those that hold as many elements as numbers say."""
        self._scopes = scopes_of(source)
        self._of_extensions = source.mentioning(extension_names(source))
        functions = [node for node in source.in_forward if isinstance(node, Function | ast.Lambda)]
        self._variables: set[_Variable] = {
            (function, one.arg) for function in functions for one in parameters(function) if one.arg in tensors
        }
        self._callees = callees_of(source)
        self._handed: dict[Called, set[Place]] = {}
        """Places at which calls are given numbers."""
        self._handed_sized: dict[Called, set[Place]] = {}
        self._giving: set[ast.AST] = set()
        """Functions of which the result is made from numbers."""
        self._calls_giving: set[Called] = set()
        self._properties: set[str] = set()
        for _ in range(_ROUNDS if tensors else 0):
            known = len(self._variables) + len(self._giving) + len(self._sized)
            for node in source.in_forward:
                self._follow(node)
            self._enter_functions()
            if len(self._variables) + len(self._giving) + len(self._sized) == known:
                break

    def by(self, condition: ast.AST) -> bool:
        """Whether an expression does."""
        pending = [condition]
        while pending:
            node = pending.pop()
            if self._holds(node):
                return True
            if self._asks_for_less(node):
                if self._besides.sizes and asks_size(node) and any(map(self._is_sized, asked_of(node))):
                    return True
                continue
            if isinstance(node, ast.comprehension):
                pending += node.ifs
            elif isinstance(node, ast.BoolOp | ast.ListComp | ast.GeneratorExp):
                pending += [part for part in ast.iter_child_nodes(node) if not self._is_outcome(part)]
            else:
                pending += ast.iter_child_nodes(node)
        return False

    def _follow(self, node: ast.AST) -> None:
        """Note what a statement or a call hands on."""
        known: dict[ast.expr, bool] = {}
        sized: dict[ast.expr, bool] = {}
        for found in bindings_of(node):
            if found.value is None:
                continue
            if found.value not in known:
                known[found.value], sized[found.value] = self.by(found.value), self._is_sized(found.value)
            variable = (None if found.attribute else self._owner(node, found.name), found.name)
            self._variables |= {variable} if known[found.value] else set()
            self._sized |= {variable} if sized[found.value] else set()
        match node:
            case ast.Return(value=ast.expr() as value) if self.by(value) or self._is_under_numbers(node):
                self._giving.add(self._scopes.scope_of[node])
            case ast.Lambda(body=body) if self.by(body):
                self._giving.add(node)
            case ast.Assign(targets=targets, value=value):
                constant = isinstance(value, ast.Constant) and self._is_under_numbers(node)
                stored = [target for target in targets if constant or isinstance(target, ast.Subscript)]
                if stored and (constant or self.by(value)):
                    self._fill(stored)
            case ast.Call():
                self._follow_call(node)

    def _follow_call(self, call: ast.Call) -> None:
        handed = self._handed.setdefault(self._callees.of(call), set())
        handed.update(place for argument, place in given(call) if place not in handed and self.by(argument))
        if self._besides.sizes:
            sized = self._handed_sized.setdefault(self._callees.of(call), set())
            sized.update(place for argument, place in given(call) if self._is_sized(argument))
        self._fill(item.value for item in call.keywords if item.arg == "out" and any(map(self.by, call.args)))
        discarded = isinstance(self._source.parent(call), ast.Expr) and call.func not in self._of_extensions
        if discarded and isinstance(call.func, ast.Attribute) and any(map(self.by, call.args)):
            self._fill([call.func.value])  # kept.append(x), first.copy_(x[0])
        elif self._is_of_a_kernel(call) and any(map(self.by, call.args)):
            self._fill(call.args)  # kernels may write to any of them

    def _enter_functions(self) -> None:
        """Hand on what calls are given to the functions that they run, and what these give to the calls."""
        for called, places in self._handed.items():
            for function in self._callees.functions(called):
                self._variables.update((function, name) for place in places for name in takers(function, place))
                sized = self._handed_sized.get(called, ())
                self._sized.update((function, name) for place in sized for name in takers(function, place))
                if function in self._giving:
                    self._calls_giving.add(called)
        self._properties = {item.name for item in self._giving if isinstance(item, Function) and _is_property(item)}

    def _fill(self, containers: Iterable[ast.expr]) -> None:
        """Note that objects hold numbers."""
        for container in containers:
            while isinstance(container, ast.Subscript):
                container = container.value
            if isinstance(container, ast.Attribute):
                self._add(None, container.attr)
            elif isinstance(container, ast.Name) and container.id not in {"self", "cls", *self._source.aliases}:
                self._add(self._owner(container, container.id), container.id)

    def _add(self, owner: Scope | None, name: str) -> None:
        self._variables.add((owner, name))

    def _owner(self, node: ast.AST, name: str) -> Scope | None:
        return self._scopes.owner(name, self._scopes.scope_of[node])

    def _is_under_numbers(self, node: ast.AST) -> bool:
        """Whether a statement stands directly under a condition by numbers."""
        above = self._source.parent(node)
        return isinstance(above, ast.If | ast.While) and self.by(above.test)

    def _holds(self, node: ast.AST) -> bool:
        """Whether it is a name of numbers, or a call that gives them whatever it is given."""
        if isinstance(node, ast.Name):
            return (self._owner(node, node.id), node.id) in self._variables
        if isinstance(node, ast.Call):
            return identifier_of(node.func) in self._readers or self._callees.of(node) in self._calls_giving
        if not isinstance(node, ast.Attribute):
            return False
        return (None, node.attr) in self._variables or node.attr in self._properties

    def _asks_for_less(self, node: ast.AST) -> bool:
        """Whether it asks for kind, size, address or identity, or calls a function of the file or an extension, which are
        judged by what they give."""
        if isinstance(node, ast.Compare):
            return not any(isinstance(item, _OF_SIZE) for item in node.ops) and not self._searches(node)
        if not isinstance(node, ast.Call | ast.Attribute):
            return False
        if not self._besides.patterns and isinstance(node, ast.Call) and is_of_a_pattern(self._source, node):
            return True
        name = identifier_of(node.func if isinstance(node, ast.Call) else node) or ""
        if name in _OF_KINDS | _OF_ADDRESSES or self._source.definitions(name):
            return True
        return isinstance(node, ast.Call) and node.func in self._of_extensions and not self._is_of_a_kernel(node)

    def _is_of_a_kernel(self, call: ast.Call) -> bool:
        return identifier_of(call.func) in self._besides.kernels and call.func in self._of_extensions

    def _searches(self, node: ast.Compare) -> bool:
        """Whether it looks for something in what was made of numbers, text or a list: `"inf" in str(x)`. What is kept under
        keys is no such thing."""
        for operator, searched in zip(node.ops, node.comparators, strict=True):
            named = self._source.values(searched.id) if isinstance(searched, ast.Name) else [searched]
            made = (value for value in named if isinstance(value, ast.Call | ast.JoinedStr))
            if isinstance(operator, ast.In | ast.NotIn) and any(map(self.by, made)):
                return True
        return False

    def _is_sized(self, node: ast.AST) -> bool:
        """Whether it holds as many elements as numbers say."""
        pending = [node] if self._besides.sizes else []
        while pending:
            part = pending.pop()
            match part:
                case ast.Name():
                    found = (self._owner(part, part.id), part.id) in self._sized
                case ast.Attribute():
                    found = (None, part.attr) in self._sized
                    pending.append(part.value)
                case ast.Subscript(value=value, slice=index):
                    found = (index in self._masks and self.by(index)) or has_numbers_in_bounds(index, self.by)
                    pending += [value, index]
                case ast.Call(args=arguments):
                    found = (selects(part) and any(map(self.by, asked_of(part)))) or (
                        is_made_to_size(part) and any(map(self.by, arguments))
                    )
                    pending += asked_of(part)
                case _:
                    found = False
                    pending += ast.iter_child_nodes(part)
            if found:
                return True
        return False

    def _is_outcome(self, part: ast.AST) -> bool:
        """Whether it is a value that `and`, `or` or a list gives, no question: `(late and torch.relu(x)) or ext.relu(x)`."""
        return not isinstance(part, ast.Compare | ast.UnaryOp | ast.comprehension) and any(
            work_of(self._source).of([part])
        )


@functools.lru_cache(maxsize=16)
def _numbers_read(
    source: PythonSource, tensors: frozenset[str], readers: frozenset[str], besides: Besides
) -> NumbersRead:
    return NumbersRead(source, tensors, readers, besides)


def numbers_read(
    source: PythonSource, tensors: Set[str], readers: Set[str] = frozenset(), besides: Besides = _USUAL
) -> NumbersRead:
    """`NumbersRead`, once for all that ask for the same of a file."""
    return _numbers_read(source, frozenset(tensors), frozenset(readers), besides)


def is_of_a_pattern(source: PythonSource, statistic: ast.Call) -> bool:
    """Whether it asks if elements are exactly a number (`Besides.patterns`)."""
    if identifier_of(statistic.func) in _EQUALITIES:
        return True
    if not isinstance(statistic.func, ast.Attribute) or statistic.func.attr not in ("all", "any"):
        return False
    whole = source.dotted(statistic.func.value) == "torch" and bool(statistic.args)
    subject = statistic.args[0] if whole else statistic.func.value
    return (
        isinstance(subject, ast.Compare)
        and all(isinstance(operator, ast.Eq | ast.NotEq) for operator in subject.ops)
        and all(isinstance(value, ast.Constant) for value in subject.comparators)
    )


@functools.lru_cache(maxsize=8)
def scopes_of(source: PythonSource) -> Scopes:
    """The scopes of a file."""
    return Scopes(source.tree)


def _is_property(function: Function) -> bool:
    return any(identifier_of(decorator) in _PROPERTIES for decorator in function.decorator_list)


def tensors_given(source: PythonSource, reference: PythonSource | None) -> set[str]:
    """forward's parameters that the problem draws as tensors."""
    made = made_inputs(reference) if reference is not None else []
    return {
        name
        for name, values in zip(forward_parameters(source), made, strict=False)
        if values and not any(isinstance(value, ast.Constant | ast.UnaryOp) for value in values)
    }
