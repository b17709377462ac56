"""Branches of forward on what tells about the process and the machine instead of the inputs: a clock, the callers' files, the
number of threads, the version of an input.

A kernel may ask such things, for a log or to choose a block size. It hides something where the answer decides whether its
kernels run, or whether PyTorch computes: no run shows the branch that was not taken.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from dice.kernels.checks.inputs import forward_parameters
from dice.kernels.checks.python_source import PythonSource, identifiers
from dice.kernels.checks.substitution import extension_names
from dice.kernels.checks.torch_calls import torch_computations
from dice.kernels.source.lexer import words

_MODULES = words(
    "time datetime os sys platform socket resource threading _thread multiprocessing inspect traceback warnings getpass pwd "
    "random secrets uuid tempfile gc psutil faulthandler"
)
_HARMLESS = ("os.environ", "os.getenv", "os.path.", "os.fspath", "sys.getsizeof")
"""A program's own settings."""
_OF_PYTORCH = (
    "torch.get_num_threads",
    "torch.get_num_interop_threads",
    "torch.initial_seed",
    "torch.get_rng_state",
    "torch.random.",
    "torch.cuda.memory",
    "torch.cuda.max_memory",
    "torch.cuda.mem_get_info",
    "torch.cuda.utilization",
    "torch.cuda.clock_rate",
)
_HISTORY = words("_version _base")
"""Attributes of an input that tell what was done with it before."""
_FAR = 6


def circumstances(source: PythonSource, reference: PythonSource | None) -> Iterator[tuple[str, ast.AST, str]]:
    """`environment_sniffing` for each choice in forward between kernels and none, by the process's circumstances, unless the
    reference makes such choices, too."""
    if reference is not None and next(_asked(reference), None) is not None:
        return
    for node, ways in _asked(source):
        if len({_work(source, way) for way in ways if not _raises(way)}) > 1:
            yield "environment_sniffing", node, ""


def _asked(source: PythonSource) -> Iterator[tuple[ast.AST, list[list[ast.AST]]]]:
    inputs = set(forward_parameters(source))
    for node in source.in_forward:
        for condition, ways in _choices(source, node):
            if _asks(source, condition, inputs):
                yield node, ways


def _raises(way: Sequence[ast.AST]) -> bool:
    return bool(way) and isinstance(way[-1], ast.Raise)


def _choices(source: PythonSource, node: ast.AST) -> Iterator[tuple[ast.expr, list[list[ast.AST]]]]:
    """A condition, and what runs under each of its outcomes."""
    if isinstance(node, ast.If):
        behind: list[ast.AST] = [*source.after(node)]
        yield node.test, [_until_left(node.body, behind), _until_left(node.orelse, behind)]
    elif isinstance(node, ast.While):
        yield node.test, [[*node.body], []]
    elif isinstance(node, ast.IfExp):
        yield node.test, [[node.body], [node.orelse]]
    elif isinstance(node, ast.BoolOp):
        yield node.values[0], [[node.values[0]], [*node.values[1:]]]
    elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Tuple | ast.List):
        yield node.slice, [[item] for item in node.value.elts]
    elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Dict):
        yield node.slice, [[item] for item in node.value.values]


def _until_left(block: Sequence[ast.stmt], behind: list[ast.AST]) -> list[ast.AST]:
    leaves = bool(block) and isinstance(block[-1], ast.Return | ast.Raise)
    return [*block] if leaves else [*block, *behind]


def _asks(source: PythonSource, condition: ast.expr, inputs: set[str]) -> bool:
    """Whether a condition is made from a circumstance, also through variables and functions. How an extension was built is
    none."""
    pending: list[tuple[ast.AST, int]] = [(condition, 0)]
    seen = set(extension_names(source))
    while pending:
        value, depth = pending.pop()
        for node in ast.walk(value):
            if isinstance(node, ast.Attribute) and node.attr in _HISTORY and identifiers([node.value]) & inputs:
                return True
            if isinstance(node, ast.Call) and _is_circumstance(source, source.dotted(node.func) or ""):
                return True
            if isinstance(node, ast.Name | ast.Attribute) and depth < _FAR:
                name = node.id if isinstance(node, ast.Name) else node.attr
                made: list[ast.AST] = [*source.values(name), *_functions(source, name)]
                pending += [(found, depth + 1) for found in made if name not in seen]
                seen.add(name)
    return False


def _functions(source: PythonSource, name: str) -> list[ast.AST]:
    return [item for item in source.definitions(name) if not isinstance(item, ast.ClassDef)]


def _is_circumstance(source: PythonSource, name: str) -> bool:
    if name.startswith(_OF_PYTORCH):
        return True
    root = name.partition(".")[0]
    return root in _MODULES and source.is_imported(name) and not name.startswith(_HARMLESS)


def _work(source: PythonSource, way: list[ast.AST]) -> tuple[bool, bool]:
    """Whether it reaches an extension, and whether it computes with PyTorch."""
    reached = source.reach_from(way)
    launches = bool(identifiers(reached) & extension_names(source))
    return launches, next(torch_computations(source, reached), None) is not None
