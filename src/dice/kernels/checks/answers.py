"""Answers that are not computed, as far as the candidate's Python shows it.

Caches keyed by address or fingerprint, and outputs that read no input; with what `prediction` and `sniffing` find.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence, Set
from typing import Literal

from dice.kernels.checks.finding import finding, one_of_each
from dice.kernels.checks.inputs import SHAPE_ONLY, forward_parameters, made_inputs
from dice.kernels.checks.made_from import made_from
from dice.kernels.checks.prediction import predictions
from dice.kernels.checks.python_names import identifiers
from dice.kernels.checks.python_source import PythonSource
from dice.kernels.checks.remembered import Remembered
from dice.kernels.checks.sniffing import sniffing
from dice.kernels.checks.weights import is_weight, passed_values
from dice.kernels.records.verdict import Finding
from dice.kernels.source.lexer import words
from dice.python_scope import bindings_of

_MAKERS = ("torch.empty", "torch.empty_like", "torch.empty_strided")
_LIKE = (
    "torch.empty_like",
    "torch.zeros_like",
    "torch.ones_like",
    "torch.full_like",
    "torch.rand_like",
    "torch.randn_like",
    "len",
)
_ADDRESSES = words("data_ptr untyped_storage storage _cdata _version")
_READERS = words("item tolist tobytes")


def answer_findings(source: PythonSource, reference: PythonSource | None) -> list[Finding]:
    """At most one finding of each name, with the first line that shows it."""
    return one_of_each(
        finding(name, "static", f"{note}{source.line(node)}") for name, node, note in _all(source, reference)
    )


def _all(source: PythonSource, reference: PythonSource | None) -> Iterator[tuple[str, ast.AST, str]]:
    yield from _caches(source)
    yield from _unread_inputs(source, reference)
    yield from _unwritten_output(source)
    yield from predictions(source, reference)
    yield from sniffing(source, reference)


def _fingerprints(source: PythonSource, about: Set[ast.AST]) -> Set[ast.AST]:
    """Expressions that identify an input, also through variables: its address, id, version, or some of its values.

    about: what is made from a function's argument.
    """
    found: list[ast.AST] = []
    for node in source.nodes:
        identified: ast.AST | None = None
        if isinstance(node, ast.Attribute) and node.attr in _ADDRESSES:
            identified = node.value
        elif isinstance(node, ast.Call) and source.dotted(node.func) in ("id", "hash", "str", "repr") and node.args:
            identified = node.args[0]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _READERS:
            identified = node.func.value
        if identified in about:
            found.append(node)
    keys: dict[str, list[ast.expr]] = {}
    for name, value in _named(source):
        if not _launches(value):
            keys.setdefault(name, []).append(value)

    def follows(mention: ast.AST) -> bool:
        return isinstance(mention, ast.Name)

    return made_from(source, found, lambda name: keys.get(name, ()), len(source.nodes), follows=follows)


def _about_inputs(source: PythonSource) -> Set[ast.AST]:
    """Expressions that are made from a function's argument, not from the module's own weights."""
    harmless: dict[tuple[ast.AST | None, str], bool] = {}

    def follows(mention: ast.AST) -> bool:
        return isinstance(mention, ast.Name) and not _is_shape(source, mention)

    def is_sought(name: ast.Name) -> bool:
        place = (source.function_around(name), name.id)
        if place not in harmless:
            harmless[place] = is_weight(source, name) or _only_gets_shapes(source, name)
        return not harmless[place]

    mentions = (node for name in source.arguments for node in source.mentions(name) if follows(node))
    sought = [node for node in mentions if isinstance(node, ast.Name) and is_sought(node)]

    def stands_for(name: str) -> Sequence[ast.expr]:
        return [] if name in source.arguments or name in ("self", "cls") else source.values(name)

    return made_from(source, sought, stands_for, 3, follows=follows)


def _is_shape(source: PythonSource, node: ast.AST) -> bool:
    above = source.parent(node)
    return isinstance(above, ast.Attribute) and above.attr in SHAPE_ONLY


def _only_gets_shapes(source: PythonSource, name: ast.Name) -> bool:
    """Whether an argument of a helper is made of shapes, dtypes and devices in every call: these say nothing of values."""
    passed = passed_values(source, name)
    used = [inner for value in passed for inner in ast.walk(value) if isinstance(inner, ast.Name)]
    above = [source.parent(inner) for inner in used]
    return bool(used) and all(isinstance(node, ast.Attribute) and node.attr in SHAPE_ONLY for node in above)


def _caches(source: PythonSource) -> Iterator[tuple[str, ast.AST, str]]:
    about = _about_inputs(source)
    fingerprints, kept = _fingerprints(source, about), Remembered(source, about)
    inputs = set(forward_parameters(source))
    for node in source.in_forward:
        if isinstance(node, ast.Subscript):
            by_tensor = isinstance(node.slice, ast.Name) and node.slice.id in inputs and _is_mapping(source, node.value)
            if kept.is_kept(node.value) and (by_tensor or node.slice in fingerprints):
                yield "result_cache", node, ""
        elif isinstance(node, ast.Call) and source.dotted(node.func) in ("getattr", "hasattr", "setattr"):
            if len(node.args) > 1 and node.args[1] in fingerprints:
                yield "result_cache", node, ""
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            lookup = node.func.attr in ("get", "setdefault", "pop", "__contains__", "__getitem__")
            if lookup and kept.is_kept(node.func.value) and node.args and node.args[0] in fingerprints:
                yield "result_cache", node, ""
        for sides, how in _compared(source, node):
            if _asks_for_the_same(source, sides, how, kept, fingerprints):
                yield "result_cache", node, ""
        compares = isinstance(node, ast.Call) and source.dotted(node.func) in ("torch.equal", "torch.allclose")
        if compares and any(map(kept.is_kept, node.args)):  # pyright: ignore[reportAttributeAccessIssue]
            yield "result_cache", node, ""
    yield from _memoised(source, inputs)


_How = Literal["is", "equals", "exceeds"]


def _asks_for_the_same(
    source: PythonSource, sides: Sequence[ast.expr], how: _How, kept: Remembered, fingerprints: Set[ast.AST]
) -> bool:
    """Whether a comparison asks if what is remembered is an input, or has its address, version or values.

    One that asks for the larger has a bound on one side, unless a fingerprint is kept there.
    """
    of_kept = [side for side in sides if kept.is_kept(side) or kept.holds_input(_identified(source, side))]
    if how == "exceeds":
        of_kept = [side for side in of_kept if not fingerprints.isdisjoint(kept.values(side))]
    others = {*sides} - {*of_kept}
    return bool(of_kept) and any(side in fingerprints or (how == "is" and kept.is_input(side)) for side in others)


def _compared(source: PythonSource, node: ast.AST) -> Iterator[tuple[Sequence[ast.expr], _How]]:
    """What an expression compares, and how: `a is b`, `operator.is_(a, b)`, `a > b`."""
    if isinstance(node, ast.Compare):
        kinds = {type(each) for each in node.ops}
        ordered = kinds <= {ast.Lt, ast.LtE, ast.Gt, ast.GtE}
        yield (
            [node.left, *node.comparators],
            "is" if kinds & {ast.Is, ast.IsNot} else "exceeds" if ordered else "equals",
        )
    elif isinstance(node, ast.Call):
        name = source.dotted(node.func)
        if name in ("operator.is_", "operator.is_not"):
            yield node.args, "is"
        elif name in ("operator.eq", "operator.ne"):
            yield node.args, "equals"


def _identified(source: PythonSource, node: ast.AST) -> ast.expr | None:
    """What an expression identifies: its address, id, version or values, or what a weak reference leads to."""
    match node:
        case ast.Attribute(value=value, attr=name) if name in _ADDRESSES:
            return value
        case ast.Call(func=ast.Name(id="id" | "hash"), args=[value]):
            return value
        case ast.Call(func=ast.Attribute(value=value, attr=name)) if name in _ADDRESSES or name in _READERS:
            return value
        case ast.Call(func=reference, args=[], keywords=[]):
            return reference
    return None


def _named(source: PythonSource) -> Iterator[tuple[str, ast.expr]]:
    """Names in forward with what they stand for: all of a value, or an element of what is written out."""
    for node in source.in_forward:
        for found in bindings_of(node):
            written = isinstance(found.value, ast.Tuple | ast.List | ast.Set)
            if found.value is not None and not found.attribute and (found.whole or written):
                yield found.name, found.value


def _is_mapping(source: PythonSource, node: ast.expr) -> bool:
    """Whether a name was ever given a dict or a weak dictionary (not a table of weights)."""
    mappings = ("dict", "collections.OrderedDict", "weakref.WeakKeyDictionary", "collections.defaultdict")
    return any(
        isinstance(value, ast.Dict) or (isinstance(value, ast.Call) and source.dotted(value.func) in mappings)
        for name in identifiers([node])
        for value in source.values(name)
    )


def _launches(value: ast.expr) -> bool:
    """A call with an address among its arguments is a launch, not the making of a key."""
    return (
        isinstance(value, ast.Call)
        and not (isinstance(value.func, ast.Attribute) and value.func.attr in _ADDRESSES)
        and (len(value.args) > 1)
    )


def _memoised(source: PythonSource, inputs: set[str]) -> Iterator[tuple[str, ast.AST, str]]:
    """functools.lru_cache and similar on forward, or on a function that forward calls with one of its inputs."""
    remembering: dict[str, ast.AST] = {}
    for node in source.nodes:
        if isinstance(node, ast.FunctionDef) and any(_memoises(source, item) for item in node.decorator_list):
            remembering[node.name] = node
    for node in source.nodes:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and _memoises(source, node.value.func):
            remembering |= dict.fromkeys(identifiers(node.targets) - {"self"}, node)
    if source.forward is not None and remembering.get("forward") is source.forward:
        yield "result_cache", source.forward, ""
    for call in source.in_forward:
        if isinstance(call, ast.Call) and any(isinstance(item, ast.Name) and item.id in inputs for item in call.args):
            yield from (("result_cache", remembering[name], "") for name in identifiers([call.func]) & set(remembering))


def _memoises(source: PythonSource, function: ast.expr) -> bool:
    """Whether a function makes another one remember its results: `functools.cache`, `lru_cache(maxsize=8)`."""
    if isinstance(function, ast.Call):
        made_already = any(not isinstance(item, ast.Constant) for item in function.args)  # `cache(build)()`: its result
        return not made_already and _memoises(source, function.func)
    name = source.dotted(function) or ""
    return name.endswith(("lru_cache", "functools.cache"))


def _unread_inputs(source: PythonSource, reference: PythonSource | None) -> Iterator[tuple[str, ast.AST, str]]:
    """An input whose values the reference reads and the candidate does not read."""
    if source.forward is None or reference is None or reference.forward is None:
        return
    if source.computes_names or source.values("forward"):
        return
    if source.forward.args.vararg is not None or reference.forward.args.vararg is not None:
        return
    mine, theirs = forward_parameters(source), forward_parameters(reference)
    tensors = _tensor_inputs(reference)
    for index, name in enumerate(mine[: len(theirs)]):
        if index in tensors and _is_read(reference, theirs[index]) and not _is_read(source, name):
            yield "constant_output", source.forward, f"the values of input {name} are never read: "


def _tensor_inputs(problem: PythonSource) -> set[int]:
    """Indices of the values of the problem's get_inputs that are known to be tensors."""
    found: set[int] = set()
    for index, values in enumerate(made_inputs(problem)):
        made = [part for value in values for part in ast.walk(value) if isinstance(part, ast.Call)]
        if any((problem.dotted(part.func) or "").startswith("torch.") for part in made):
            found.add(index)
    return found


def _is_read(source: PythonSource, name: str) -> bool:
    assert source.forward is not None
    for node in ast.walk(source.forward):
        if not (isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)):
            continue
        above = source.parent(node)
        if isinstance(above, ast.Attribute) and above.attr in SHAPE_ONLY:
            continue
        if isinstance(above, ast.Call) and above.args[:1] == [node] and source.dotted(above.func) in _LIKE:
            continue
        return True
    return False


def _unwritten_output(source: PythonSource) -> Iterator[tuple[str, ast.AST, str]]:
    """forward returns a torch.empty(...) that is never passed to a function that could fill it."""
    if source.forward is None:
        return
    looked_at: set[str] = set()
    for node in ast.walk(source.forward):
        if not (isinstance(node, ast.Return) and node.value is not None) or _is_for_nothing(source, node):
            continue
        if isinstance(node.value, ast.Call) and source.dotted(node.value.func) in _MAKERS:
            yield "uninitialised_output", node, ""
        elif isinstance(node.value, ast.Name) and node.value.id not in looked_at:
            name = node.value.id
            looked_at.add(name)
            made = source.values(name)
            if made and all(isinstance(value, ast.Call) and source.dotted(value.func) in _MAKERS for value in made):
                uses = [n for n in ast.walk(source.forward) if isinstance(n, ast.Name) and n.id == name]
                if all(isinstance(use.ctx, ast.Store) or isinstance(source.parent(use), ast.Return) for use in uses):
                    yield "uninitialised_output", node, ""


def _is_for_nothing(source: PythonSource, node: ast.AST) -> bool:
    """Whether a statement is in the body of `if x.numel() == 0:` with no other condition."""
    above = source.parent(node)
    if not isinstance(above, ast.If) or node not in above.body:
        return False
    test = above.test
    return (
        isinstance(test, ast.Compare)
        and isinstance(test.left, ast.Call)
        and isinstance(test.left.func, ast.Attribute)
        and test.left.func.attr == "numel"
        and [type(operator) for operator in test.ops] == [ast.Eq]
        and isinstance(test.comparators[0], ast.Constant)
        and test.comparators[0].value == 0
    )
