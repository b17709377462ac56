"""Which names of a candidate's Python stand for its extensions."""

from __future__ import annotations

import ast
import functools
import heapq

from dice.kernels.checks.python_names import identifier_of, identifiers
from dice.kernels.checks.python_source import PythonSource

_BUILDERS = ("torch.utils.cpp_extension.load_inline", "torch.utils.cpp_extension.load")


def is_builder(name: str) -> bool:
    """Whether a dotted name is one of torch's extension builders, however it was imported."""
    return name in _BUILDERS or name.endswith((".load_inline", "cpp_extension.load")) or name == "load_inline"


@functools.lru_cache(maxsize=8)
def extension_names(source: PythonSource) -> set[str]:
    """Identifiers that may name an extension or one of its functions, not their results."""
    makers = _makers(source)
    found = set(makers)
    assignments = [node for node in source.nodes if isinstance(node, ast.Assign)]
    by_name: dict[str, list[int]] = {}  # the assignments that mention a name
    for place, node in enumerate(assignments):
        for name in identifiers(ast.walk(node.value)):
            by_name.setdefault(name, []).append(place)
    waiting = [(0, place) for place in range(len(assignments))]  # in rounds, in each as the file has them
    queued = {*waiting}
    while waiting:
        turn, place = heapq.heappop(waiting)
        queued.remove((turn, place))
        node = assignments[place]
        targets = {name for target in node.targets for name in identifiers(ast.walk(target))} - {"self", "cls"}
        if targets <= found or not _stands_for(source, node.value, found, makers):
            continue
        changed = {other for name in targets - found for other in by_name.get(name, ())}
        found |= targets
        for other in {(turn + (other <= place), other) for other in changed} - queued:
            queued.add(other)
            heapq.heappush(waiting, other)
    return found


def is_extension(source: PythonSource, value: ast.expr) -> bool:
    """Whether an expression is an extension and can be nothing else: all that is ever assigned to its name comes from a
    builder, and no argument has that name."""
    name = identifier_of(value) if isinstance(value, ast.Name | ast.Attribute) else None
    made = source.values(name) if name is not None else []
    built = (isinstance(item, ast.Call) and identifier_of(item.func) in _makers(source) for item in made)
    return bool(made) and name not in source.parameters and all(built)


def builds(source: PythonSource, call: ast.Call) -> bool:
    """Whether a call builds an extension, by PyTorch or by a function of the candidate's around it."""
    return identifier_of(call.func) in _makers(source) or is_builder(source.dotted(call.func) or "")


@functools.lru_cache(maxsize=8)
def _makers(source: PythonSource) -> set[str]:
    """Names of the functions that build an extension: PyTorch's, and the candidate's own around them."""
    from_module = (name for name, path in source.aliases.items() if path.rpartition(".")[0].endswith("cpp_extension"))
    own = {
        node.name
        for node in source.nodes
        if isinstance(node, ast.FunctionDef)
        and not (node.name.startswith("__") or node.name == "forward")
        and any(is_builder(name) for _, name in source.calls(ast.walk(node)))
    }
    return {"load_inline", *from_module} | own


def _stands_for(source: PythonSource, value: ast.expr, found: set[str], makers: set[str]) -> bool:
    """Whether an assigned value is, or contains, an extension or a function of one."""
    pending: list[ast.expr] = [value]
    while pending:
        part = pending.pop()
        if isinstance(part, ast.Call):
            names = identifiers(ast.walk(part.func))
            if names & makers or is_builder(source.dotted(part.func) or ""):
                return True
            if not names & found:
                pending += [*part.args, *(keyword.value for keyword in part.keywords)]
        elif isinstance(part, ast.Name | ast.Attribute):
            if (part.attr if isinstance(part, ast.Attribute) else part.id) in found:
                return True
            pending += [part.value] if isinstance(part, ast.Attribute) else []
        else:
            pending += [child for child in ast.iter_child_nodes(part) if isinstance(child, ast.expr)]
    return False
