"""Ways to escape the timer, as far as the candidate's Python shows them: counted calls, side streams, lazy outputs."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Set

from dice.kernels.checks.asides import is_aside
from dice.kernels.checks.errors import ends_with_an_error
from dice.kernels.checks.finding import finding, one_of_each
from dice.kernels.checks.messages import only_prints
from dice.kernels.checks.once import once
from dice.kernels.checks.python_names import identifiers
from dice.kernels.checks.python_source import PythonSource
from dice.kernels.checks.reports import only_reports
from dice.kernels.checks.result_checks import only_checks_results
from dice.kernels.checks.rings import only_turns
from dice.kernels.checks.seen import Seen
from dice.kernels.records.verdict import Finding
from dice.kernels.source.lexer import words
from dice.python_scope import Binding, bindings_of

_TENSOR_METHODS = words(
    """
    cpu cuda to numpy clone detach contiguous item tolist float double half reshape view size sum allclose isnan
    equal abs max mean copy_ data_ptr untyped_storage __eq__ __sub__ __getitem__ __torch_function__
    """
)
_STREAMS = ("torch.cuda.Stream", "torch.cuda.ExternalStream", "torch.cuda.streams.Stream", "torch.Stream")
_ENTERED = ("torch.cuda.stream", "torch.cuda.set_stream", "torch.cuda.StreamContext", "torch.cuda.streams.stream")
_DELAYS = ("time.sleep", "torch.cuda._sleep", "select.select")
_GRAPHS = words("torch.cuda.CUDAGraph torch.cuda.graph torch.cuda.make_graphed_callables torch.cuda.graphs.graph")


def timing_findings(source: PythonSource, seen: Seen | None = None) -> list[Finding]:
    """At most one finding of each name, with the first line that shows it. seen: what a run showed; without one, a
    sleep that may never be reached only warns."""
    return one_of_each(
        finding(name, "static", source.line(node), warns=seen is None and _is_sleep(source, node))
        for name, node in _all(source)
        if seen is None or seen.slept is not False or not _is_sleep(source, node)
    )


def _is_sleep(source: PythonSource, node: ast.AST) -> bool:
    """Whether it is a call that the run records whenever it happens (`dice.kernels.candidate.audit_events`)."""
    return isinstance(node, ast.Call) and source.dotted(node.func) == "time.sleep"


def _all(source: PythonSource) -> Iterator[tuple[str, ast.AST]]:
    yield from _counters(source)
    yield from _streams(source)
    yield from _overrides(source)


_ASSIGNMENTS = ast.Assign | ast.AnnAssign | ast.NamedExpr


def _counters(source: PythonSource) -> Iterator[tuple[str, ast.AST]]:
    """A counter that survives the call, that forward increments and then branches on."""
    counted = _advanced(source)
    of_counted = source.mentioning(counted)
    tainted = set(counted)
    for node in source.in_forward:
        if isinstance(node, _ASSIGNMENTS) and node.value in of_counted:
            tainted |= {binding.name for binding in bindings_of(node) if not binding.attribute}
    of_tainted = source.mentioning(tainted)
    for node in source.in_forward:
        # A flag (`if self.ready:`) or `is None` is not a count.
        tests = ast.walk(node.test) if isinstance(node, ast.If | ast.IfExp | ast.While) else ()
        counts = any(_counts(test) and test in of_tainted for test in tests)
        if (
            counts
            and not ends_with_an_error(source, node)
            and not is_aside(source, node)
            and not only_prints(source, node)
            and not only_reports(source, node)
            and not only_checks_results(source, node)
            and not only_turns(source, node, counted)
            and not _is_never_read(source, node)
        ):
            yield "call_counting", node


_OF_TEXTS = words("str len tuple list")


def _is_never_read(source: PythonSource, node: ast.AST) -> bool:
    """Whether a value goes into a list or table that nothing else reads: `lines[:] = [text] if n % 1000 == 0 else lines`."""
    above = source.parent(node)
    if not isinstance(above, ast.Assign) or above.value is not node:
        return False
    kept = [
        target.value.id
        for target in above.targets
        if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name)
    ]
    inside = set(ast.walk(above))
    mentions = (each for name in kept for each in source.mentions(name) if isinstance(each, ast.Name))
    read = any(isinstance(each.ctx, ast.Load) and each not in inside for each in mentions)
    begun = (value for name in kept for value in source.values(name))
    calls = (part.func for part in inside if isinstance(part, ast.Call))
    return (
        len(kept) == len(above.targets)
        and not read
        and all(isinstance(value, ast.List | ast.Dict) for value in begun)  # no other name for what something reads
        and all(source.dotted(function) in _OF_TEXTS for function in calls)
    )


def _counts(test: ast.AST) -> bool:
    """Whether an expression compares amounts, or takes a remainder."""
    if isinstance(test, ast.Compare):
        return not all(isinstance(operator, ast.Is | ast.IsNot | ast.In | ast.NotIn) for operator in test.ops)
    return isinstance(test, ast.BinOp) and isinstance(test.op, ast.Mod | ast.FloorDiv)


def _file_names(source: PythonSource) -> set[str]:
    """Names that the file itself is given values under."""
    targets: list[ast.AST] = []
    for node in source.tree.body:
        targets += node.targets if isinstance(node, ast.Assign) else ()
        targets += [node.target] if isinstance(node, ast.AnnAssign) else ()
    return {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}


def _advanced(source: PythonSource) -> set[str]:
    """Names of counters that survive a call and that forward changes by a step."""
    counted: set[str] = set()
    kept, measured = _file_names(source), _measured(source)
    declared = {
        name for node in source.in_forward if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names
    }
    for node in source.in_forward:
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add | ast.Sub):
            if isinstance(node.target, ast.Attribute):
                counted.add(node.target.attr)
            elif isinstance(node.target, ast.Name) and node.target.id in declared:
                counted.add(node.target.id)
            elif isinstance(node.target, ast.Subscript):
                counted |= identifiers([node.target.value]) & kept
        elif isinstance(node, _ASSIGNMENTS):
            counted |= {
                binding.name
                for binding in bindings_of(node)
                if (binding.attribute or binding.name in declared) and _is_a_step(binding)
            }
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "next" and node.args:
            counted |= {name for name in identifiers([node.args[0]]) if _is_counter(source, name)}
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "append":
            counted |= {node.func.value.id} & kept & measured if isinstance(node.func.value, ast.Name) else set()
    return counted


@once
def _is_counter(source: PythonSource, name: str) -> bool:
    return any("count(" in ast.unparse(value) for value in source.values(name))


def _is_a_step(binding: Binding) -> bool:
    """Whether a name is given what it was and a constant: `n = n + 1`."""
    value = binding.value
    if not isinstance(value, ast.BinOp):
        return False
    steps = any(isinstance(part, ast.Constant) for part in (value.left, value.right))
    return steps and binding.name in identifiers(ast.walk(value))


def _measured(source: PythonSource) -> set[str]:
    """Names whose length a branch of forward asks for."""
    tests = [node.test for node in source.in_forward if isinstance(node, ast.If | ast.IfExp | ast.While)]
    calls = [node for test in tests for node in ast.walk(test) if isinstance(node, ast.Call)]
    return {name for call in calls if identifiers([call.func]) == {"len"} for name in identifiers(call.args)}


def _streams(source: PythonSource) -> Iterator[tuple[str, ast.AST]]:
    """Side streams that are never joined, and CUDA graphs."""
    sides = _sides(source)
    joined = any(_joins(node, sides) for node in source.in_forward) or not _enters_stream(source)
    for call, name in source.calls(source.live):
        if name in _STREAMS and not joined:
            yield "side_stream", call
        if name in _GRAPHS:
            yield "cuda_graph", call
        if name in _DELAYS and call in source.in_forward:  # elsewhere nothing is timed
            yield "deliberate_delay", call


def _enters_stream(source: PythonSource) -> bool:
    """Whether work is put on a stream; a stream that is only made is no finding."""
    names = {name for _, name in source.calls(source.live)}
    return bool(names & set(_ENTERED)) or "cuda_stream" in identifiers(source.live)


def _joins(node: ast.AST, sides: Set[ast.AST]) -> bool:
    """Whether anything but the side stream waits: `side.wait_stream(current)` only forks. sides: what mentions one."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return False
    if node.func.attr == "synchronize":
        return True
    return node.func.attr in ("wait_stream", "wait_event") and node.func.value not in sides


def _sides(source: PythonSource) -> Set[ast.AST]:
    """What mentions a name that is ever given a new stream."""
    made = (name for name in source.mentioned if any(_makes_stream(source, value) for value in source.values(name)))
    return source.mentioning(made)


def _makes_stream(source: PythonSource, value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and source.dotted(value.func) in _STREAMS


def _overrides(source: PythonSource) -> Iterator[tuple[str, ast.AST]]:
    """Methods put on a returned tensor: `out.cpu = ...`, a swapped `__class__`, as_subclass."""
    for node in source.in_forward:
        if isinstance(node, ast.Assign):
            callable_value = isinstance(node.value, ast.Lambda | ast.Call) or (
                isinstance(node.value, ast.Name) and bool(source.definitions(node.value.id))
            )
            for target in node.targets:
                if not isinstance(target, ast.Attribute) or _is_of_a_class(target):
                    continue
                if target.attr == "__class__" or (target.attr in _TENSOR_METHODS and callable_value):
                    yield "lazy_output", node
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "as_subclass":
            yield "lazy_output", node


def _is_of_a_class(target: ast.Attribute) -> bool:
    """Whether an attribute is the model's or a class's."""
    return isinstance(target.value, ast.Name) and (target.value.id in ("self", "cls") or target.value.id[:1].isupper())
