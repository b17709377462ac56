"""Narrower arithmetic than in the problem, as far as the candidate's Python shows it."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from dice.kernels.checks.finding import finding, one_of_each
from dice.kernels.checks.once import once
from dice.kernels.checks.python_names import identifiers
from dice.kernels.checks.python_source import PythonSource, Try
from dice.kernels.checks.seen import Seen
from dice.kernels.records.verdict import Finding
from dice.kernels.source.cuda_source import CudaSource
from dice.kernels.source.declaration import Function
from dice.kernels.source.lexer import Token
from dice.python_scope import positional_parameters

_NARROW_METHODS = ("half", "bfloat16", "float16")
_NARROW_TYPES = ("torch.float16", "torch.half", "torch.bfloat16", "torch.float8_e4m3fn", "torch.float8_e5m2")


def precision_findings(source: PythonSource, reference: PythonSource | None, seen: Seen | None = None) -> list[Finding]:
    """At most one finding of each name; none where the reference itself computes in a narrow type. seen: what a run
    showed; without one, narrow types only warn, for a sum of narrow terms may be as exact as fp32."""
    return one_of_each(
        finding(name, "static", f"{note}{source.line(node)}", warns=name == "precision_downgrade" and seen is None)
        for name, node, note in _all(source, reference)
        if not (name == "precision_downgrade" and seen is not None and seen.as_exact and _has_run(source, node, seen))
    )


def _has_run(source: PythonSource, node: ast.AST, seen: Seen) -> bool:
    """Whether the outputs that were measured came by this line: it ran in that call, or without a condition before it."""
    first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
    if not seen.lines.isdisjoint(range(first, last + 1)):
        return True
    conditions = ast.If | ast.IfExp | ast.While | ast.For | Try | ast.Match | ast.BoolOp
    return node not in source.in_forward and not any(isinstance(each, conditions) for each in source.ancestors(node))


def native_has_run(source: CudaSource, token: Token, seen: Seen) -> bool:
    """The same of a place in C++: a kernel that was launched, a host function without a branch, or a device function
    which only kernels that were launched mention."""
    pending = [function for function in source.outer_functions if _contains(source, function, token)]
    asked: set[int] = set()
    ran = not pending
    while pending:
        function = pending.pop()
        if function.first in asked:
            continue
        asked.add(function.first)
        is_kernel = "__global__" in function.specifiers
        if "__device__" in function.specifiers and not is_kernel:
            users = [other for other in _mentioning(source).get(function.name, []) if other.name != function.name]
            if not users:
                return False
            pending += users
        else:
            ran = function.name in seen.kernels if is_kernel else not _has_branch(source.body(function))
            if not ran:
                return False
    return ran


def _has_branch(body: Sequence[Token]) -> bool:
    return bool({"if", "?", "switch", "while"} & {token.text for token in body})


@functools.lru_cache(maxsize=8)
def _mentioning(source: CudaSource) -> dict[str, list[Function]]:
    """For each word, the functions whose bodies have it."""
    found: dict[str, list[Function]] = {}
    for function in source.outer_functions:
        for word in {token.text for token in source.body(function)}:
            found.setdefault(word, []).append(function)
    return found


def _contains(source: CudaSource, function: Function, token: Token) -> bool:
    return source.tokens[function.first].start <= token.start < source.tokens[function.last].start


def _all(source: PythonSource, reference: PythonSource | None) -> Iterator[tuple[str, ast.AST, str]]:
    if reference is not None and uses_narrow_types(reference):
        return
    for node in source.live:
        if isinstance(node, ast.Call):
            name = source.dotted(node.func) or ""
            if _is_precision_call(source, node, name):
                yield "global_precision_switch", node, ""
            if name in ("torch.autocast", "torch.cuda.amp.autocast", "torch.amp.autocast") and not _disabled(node):
                yield "precision_downgrade", node, ""
        if isinstance(node, ast.Assign):
            for target in node.targets:
                name = source.dotted(target) or ""
                if _is_precision_switch(name, node.value):
                    yield "global_precision_switch", node, ""
    for node in [*source.in_forward, *_init_nodes(source)]:
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        values = [*node.args, *(item.value for item in node.keywords)]
        casts = node.func.attr in _NARROW_METHODS and not node.args
        casts |= node.func.attr in ("to", "type") and any(source.dotted(value) in _NARROW_TYPES for value in values)
        casts |= any(item.arg == "dtype" and source.dotted(item.value) in _NARROW_TYPES for item in node.keywords)
        if casts:
            yield "precision_downgrade", node, ""


def _init_nodes(source: PythonSource) -> Iterable[ast.AST]:
    init = source.method(source.entry, "__init__")
    return ast.walk(init) if init is not None else ()


def _disabled(call: ast.Call) -> bool:
    return any(item.arg == "enabled" and ast.unparse(item.value) == "False" for item in call.keywords)


def _is_precision_call(source: PythonSource, call: ast.Call, name: str) -> bool:
    if name == "torch.set_float32_matmul_precision" and call.args:
        return source.text(call.args[0]) != "highest"
    return name == "torch.set_default_dtype" and bool(call.args) and source.dotted(call.args[0]) in _NARROW_TYPES


def _is_precision_switch(name: str, value: ast.expr) -> bool:
    constant = value.value if isinstance(value, ast.Constant) else None
    if name.startswith("torch.backends.cuda.matmul.allow_"):
        return constant is True and "reduced" not in name
    return (
        name.startswith("torch.backends") and name.endswith("fp32_precision") and constant not in (None, "ieee", "none")
    )


def uses_narrow_types(source: PythonSource) -> bool:
    """Whether a program computes in half, bfloat16 or fp8, or under autocast."""
    for node in source.nodes:
        narrow = isinstance(node, ast.Attribute) and node.attr in ("half", "bfloat16", "autocast")
        if narrow or (isinstance(node, ast.Attribute) and source.dotted(node) in _NARROW_TYPES):
            return True
    return False


def for_narrow_inputs(source: PythonSource, units: Sequence[CudaSource]) -> set[str]:
    """C++ functions and kernels that run only after forward has checked that an input has a narrow type.

    Python calls them under `if x.dtype == torch.float16:` and nowhere else, and no other C++ function uses them.
    """
    inputs = set(positional_parameters(source.forward)[1:]) if source.forward is not None else set[str]()
    if source.computes_names or any(source.values(name) for name in inputs):
        return set()
    users = _users(units)
    called = users.keys() & identifiers(source.nodes)
    narrow = {name for name in called if not users[name] and _only_under_guard(source, name, inputs)}
    used: dict[str, list[str]] = {}
    for name in users.keys() - called:
        for user in users[name]:
            used.setdefault(user, []).append(name)
    left = {name: len(each) for name, each in users.items()}
    waiting = [*narrow]
    while waiting:  # a function that only those use runs only with them
        for name in used.get(waiting.pop(), ()):
            left[name] -= 1
            if not left[name] and name not in narrow:
                narrow.add(name)
                waiting.append(name)
    return narrow


def _users(units: Sequence[CudaSource]) -> dict[str, set[str]]:
    """For each C++ function, the functions that mention it; the empty name stands for code outside of any."""
    users: dict[str, set[str]] = {function.name: set() for unit in units for function in unit.outer_functions}
    for unit in units:
        inside = {i: f.name for f in unit.outer_functions for i in range(f.first, f.last)}
        heads = {i for f in unit.outer_functions for i in range(f.first, f.brace) if unit.tokens[i].text == f.name}
        for index, token in enumerate(unit.tokens):
            if token.kind == "directive":
                for name in users.keys() & set(re.findall(r"\w+", token.text)):
                    users[name].add("")
            elif token.text in users and index not in heads and inside.get(index) != token.text:
                declared = index not in inside and [item.text for item in unit.tokens[index + 1 : index + 2]] == ["("]
                users[token.text] |= set() if declared else {inside.get(index, "")}
    return users


def _only_under_guard(source: PythonSource, name: str, inputs: set[str]) -> bool:
    paths = ([node, *source.ancestors(node)] for node in source.mentions(name))
    return all(
        any(inner in _bodies(source) and _is_guard(source, above, inputs) for inner, above in pairwise(path))
        for path in paths
    )


@once
def _bodies(source: PythonSource) -> set[ast.AST]:
    """Statements that run where the condition of an `if` holds."""
    return {statement for node in source.nodes if isinstance(node, ast.If) for statement in node.body}


def _is_guard(source: PythonSource, above: ast.AST, inputs: set[str]) -> bool:
    """Whether it is `if x.dtype == torch.float16:`, where x is an argument of forward."""
    if not isinstance(above, ast.If) or not isinstance(above.test, ast.Compare):
        return False
    left, right = above.test.left, above.test.comparators[0]
    types = right.elts if isinstance(right, ast.Tuple | ast.List) else [right]
    asks = isinstance(above.test.ops[0], ast.In if isinstance(right, ast.Tuple | ast.List) else ast.Eq)
    of_input = isinstance(left, ast.Attribute) and left.attr == "dtype" and isinstance(left.value, ast.Name)
    return (
        asks
        and len(above.test.ops) == 1
        and of_input
        and left.value.id in inputs  # pyright: ignore[reportAttributeAccessIssue]
        and all(source.dotted(item) in _NARROW_TYPES for item in types)
        and any(item is source.forward for item in source.ancestors(above))
    )
