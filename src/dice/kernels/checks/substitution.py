"""Candidates without custom code: the paper's four definitions, as far as the text shows them."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Iterator, Sequence, Set

from dice.kernels.checks.cuda_kernels import aten_calls, has_device_lambda, kernel_names, library_calls
from dice.kernels.checks.extensions import extension_names, is_builder
from dice.kernels.checks.finding import finding
from dice.kernels.checks.python_names import identifiers
from dice.kernels.checks.python_source import PythonSource, Try
from dice.kernels.checks.torch_calls import torch_computations
from dice.kernels.records.verdict import Finding
from dice.kernels.source.cuda_source import CudaSource
from dice.kernels.source.lexer import words
from dice.python_scope import Function, dotted_name, positional_parameters

_OTHER_BUILDERS = ("RawKernel", "RawModule", "_compile_kernel", "nvrtcCompileProgram", "nvrtcCreateProgram")
_COMPILED = words(
    "torch.compile torch.jit.script torch.jit.trace torch.jit.trace_module torch._dynamo.optimize torch.export.export "
    "torch.jit.freeze torch.jit.optimize_for_inference torch.jit.script_method torch._inductor.compile"
)
_JITERATOR = "torch.cuda.jiterator."
"""Makes kernels, with loops and launches, of functions of single elements."""


_MARKS = ("__global__", "__device__", "torch::Tensor", "at::Tensor", "#include", "PYBIND11_")


@functools.lru_cache(maxsize=8)
def cuda_strings(source: PythonSource) -> list[tuple[ast.expr, CudaSource]]:
    """Strings of the file that are C++ or CUDA text, with their places; prose that names such things is left out."""
    found: list[tuple[ast.expr, CudaSource]] = []
    for node, text in source.strings():
        if any(mark in text for mark in _MARKS):
            unit = CudaSource(text)
            if unit.functions or not any(token.kind == "unknown" for token in unit.tokens):
                found.append((node, unit))
    return found


def kernels_in_text(source: PythonSource) -> dict[str, str]:
    """Kernels defined in any string of the file: name -> the line where the string begins."""
    found: dict[str, str] = {}
    for node, unit in cuda_strings(source):
        for name in kernel_names(unit):
            found.setdefault(name, source.line(node))
    return found


def paper_findings(source: PythonSource, built: Sequence[CudaSource] | None) -> Iterator[Finding]:
    """Definitions 1 to 3. `built`: the sources of the requested builds, where they are known.

    After a run, launch counts decide definition 3. From the text alone it is a finding only where forward cannot reach
    any extension.
    """
    written = kernels_in_text(source)
    if not written and not any(kernel_names(unit) for unit in built or []):
        units = built if built is not None else [unit for _, unit in cuda_strings(source)]
        library = next((call for unit in units for call in library_calls(unit)), None)
        if library is not None:
            yield finding("library_only", "static", f"no __global__ function; the CUDA code calls {library}")
        elif not any(has_device_lambda(unit) for unit in units):
            yield finding("no_custom_kernel", "static", _why_no_kernel(source, units))
        return
    names = ", ".join(sorted(written)[:6]) or "a kernel"
    if built is not None:
        if not any(kernel_names(unit) or has_device_lambda(unit) for unit in built) and not _other_builder(source):
            asked = f"{len(built)} source text(s) without a kernel were" if built else "nothing was"
            yield finding("kernel_never_built", "static", f"{names} is in the text, but {asked} given to a builder")
        return
    build_calls = [call for call, name in source.calls(source.live) if is_builder(name)]
    if source.computes_names or _other_builder(source):
        return
    if not build_calls:
        where = next(iter(written.values()), "")
        yield finding("kernel_never_built", "static", f"{names} is never given to load_inline or load ({where})")
    elif (
        source.entry in source.tree.body
        and source.forward is not None
        and not (extension_names(source) | {"ops"}) & identifiers([*source.behind_forward, *_of_objects(source)])
    ):
        yield finding(
            "kernel_never_launched", "static", f"forward reaches no extension ({source.line(source.forward)})"
        )


def _of_objects(source: PythonSource) -> Iterable[ast.AST]:
    """What the objects run that live code may make: modules in a list that grows, in a dictionary, returned by a function."""
    classes = [item for name in identifiers(source.live) for item in source.definitions(name)]
    made = [item for item in classes if isinstance(item, ast.ClassDef) and item is not source.entry]
    methods = [part for item in made for part in item.body if isinstance(part, Function) and part.name != "__init__"]
    return source.reach_from([*methods])


def _why_no_kernel(source: PythonSource, units: Sequence[CudaSource]) -> str:
    if any(name.startswith("triton") for name in source.imported):
        return "only Triton kernels; a CUDA kernel is asked for"
    aten = next((call for unit in units for call in aten_calls(unit)), None)
    if aten is not None:
        return f"no __global__ function; the C++ code calls {aten}"
    return "no __global__ function in any string or source"


def _other_builder(source: PythonSource) -> bool:
    return bool(identifiers(source.live) & set(_OTHER_BUILDERS))


def substitution_findings(source: PythonSource) -> Iterator[Finding]:
    """Definition 4 and similar tricks in the text: the reference reused, compiled, used as fallback, or decorated."""
    yield from _reference_reused(source)
    for node in source.live:
        name = source.dotted(node) if isinstance(node, ast.Attribute | ast.Name) else None
        if name in _COMPILED or (name or "").startswith(_JITERATOR):
            yield finding("compiled_by_pytorch", "static", source.line(node))
            break
    yield from _fallbacks(source)
    yield from _unused_results(source)


def _reference_reused(source: PythonSource) -> Iterator[Finding]:
    entry = source.entry
    if entry is None or _has_kernels(source, "Model"):
        return
    bases = {source.dotted(base) or getattr(base, "id", "") for base in entry.bases}
    own = any(isinstance(item, ast.FunctionDef) and item.name == "forward" for item in entry.body)
    inherits = any(base.rpartition(".")[2] in ("Model", "Reference", "ReferenceModel") for base in bases)
    if inherits and not own:
        yield finding("reference_reused", "static", f"{source.line(entry)}: forward is inherited")
        return
    for call in (node for node in source.in_forward if isinstance(node, ast.Call)):
        function = call.func
        if not isinstance(function, ast.Attribute):
            continue
        above = inherits and function.attr == "forward" and _is_above(function.value, bases)
        if above or _holds_model(source, function.attr):
            yield finding("reference_reused", "static", source.line(call))
            return


def _is_above(owner: ast.expr, bases: Set[str]) -> bool:
    """Whether it is `super()`, or what that has, or one of the bases."""
    if dotted_name(owner) in bases:
        return True
    while isinstance(owner, ast.Attribute | ast.Subscript | ast.Call):
        if isinstance(owner, ast.Call) and isinstance(owner.func, ast.Name):
            return owner.func.id == "super"
        owner = owner.func if isinstance(owner, ast.Call) else owner.value
    return False


def _has_kernels(source: PythonSource, name: str) -> bool:
    """Whether a class of this file calls an extension; then it is no copy of the reference."""
    extensions = extension_names(source)
    return any(identifiers(ast.walk(item)) & extensions for item in source.definitions(name))


def _holds_model(source: PythonSource, identifier: str) -> bool:
    return any(
        isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "Model"
        for value in source.values(identifier)
    )


def _fallbacks(source: PythonSource) -> Iterator[Finding]:
    """A try/except on forward's path whose handler computes with PyTorch, not one that raises, warns or cleans up."""
    tries = [node for node in source.in_forward if isinstance(node, Try)]
    computing = source.leading_to(torch_computations(source, source.nodes)) if tries else set[ast.AST]()
    returning = source.around(node for node in source.nodes if isinstance(node, ast.Return))
    before = source.before(computing)
    for node in tries:
        left_out = node in before and not returning.isdisjoint(node.body)  # by the body's return
        for handler in node.handlers:
            if left_out or handler in computing:
                reached = source.reach_from([handler, *source.after(node)] if left_out else [handler])
                computation = next(torch_computations(source, reached))
                yield finding(
                    "fallback_to_pytorch", "static", f"{source.line(handler)} leads to {source.line(computation)}"
                )
                return


def _unused_results(source: PythonSource) -> Iterator[Finding]:
    """forward drops the result of every call of an extension, or multiplies it by zero."""
    if source.forward is None:
        return
    of_extensions = source.mentioning(extension_names(source))
    loaded = {node.id for node in source.in_forward if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    calls = [node for node in source.in_forward if isinstance(node, ast.Call) and node.func in of_extensions]
    called, wasted = set(calls), dict[ast.Call, str]()
    for call in calls:
        zero = next((above for above in source.ancestors(call) if _is_zeroed(above)), None)
        if zero is not None:
            wasted[call] = f"multiplied by zero: {source.line(zero)}"
    for node in source.in_forward:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and node.value in called:
            target = node.targets[0]
            unread = isinstance(target, ast.Name) and target.id not in loaded
            if unread and not _writes_to_own_buffer(source, node.value):
                wasted[node.value] = f"the result is never used: {source.line(node)}"
    if calls and called <= wasted.keys():
        yield finding("kernel_output_unused", "static", next(iter(wasted.values())))


def _is_zeroed(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and (_is_zero(node.left) or _is_zero(node.right))
    )


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not isinstance(node.value, bool | str) and node.value in (0, 0.0)


def _writes_to_own_buffer(source: PythonSource, call: ast.Call) -> bool:
    """Whether an argument is an output argument: a local tensor that is not one of forward's parameters."""
    assert source.forward is not None
    parameters = set(positional_parameters(source.forward))
    return any(
        isinstance(argument, ast.Name) and argument.id not in parameters and source.values(argument.id)
        for argument in call.args
    )
