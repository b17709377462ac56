"""Candidates that act outside their own code, as far as their Python shows it: patches, frames, processes, files."""

from __future__ import annotations

import ast
import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from dice.kernels.checks.finding import finding, one_of_each
from dice.kernels.checks.log_listeners import stops_a_listener
from dice.kernels.checks.once import once
from dice.kernels.checks.python_source import PythonSource
from dice.kernels.checks.said import only_said
from dice.kernels.checks.seen import Seen
from dice.kernels.checks.sensitive import (
    BASES,
    CALL_PREFIXES,
    CALLS,
    EVALUATION_VARIABLES,
    FRAME_ATTRIBUTES,
    HARNESSES,
    PICKLE_HOOKS,
    RAW_MEMORY,
    SETTINGS,
    SHADOWS,
    STDLIB,
    TIMERS,
    VERDICT_WORDS,
    proc_finding,
)
from dice.kernels.records.verdict import Finding

_POOLS = ("concurrent.futures.ThreadPoolExecutor", "concurrent.futures.thread.ThreadPoolExecutor")
_DESCRIPTORS = ("os.open", "tempfile.mkstemp")
_FILES = ("open", "io.open", "tempfile.NamedTemporaryFile", "tempfile.TemporaryFile")
_SYSTEM_SETTINGS = ("sys.dont_write_bytecode", "sys.stdout", "sys.stderr")
"""The verifier does not read what a candidate prints; it is kept for people who look for the cause of a failure."""


def tampering_findings(source: PythonSource, seen: Seen | None = None) -> list[Finding]:
    """One finding for each kind of tampering, with the first line that shows it. seen: what a run showed; without one, a
    module imported by a computed name only warns."""
    return one_of_each(
        finding(name, "static", f"{note}{source.line(node)}", warns=seen is None and _imports_by_name(source, node))
        for name, node, note in _all(source)
        if not (_imports_by_name(source, node) and _imported_harmless(node, seen))
    )


def _imports_by_name(source: PythonSource, node: ast.AST) -> bool:
    """Whether it is `importlib.import_module` of a name that cannot be read: which module it is, the run shows."""
    return (
        isinstance(node, ast.Call)
        and source.dotted(node.func) == "importlib.import_module"
        and bool(node.args)
        and source.text(node.args[0]) is None
    )


def _imported_harmless(node: ast.AST, seen: Seen | None) -> bool:
    """Whether a call imported something in the run, and nothing but libraries that no rule forbids."""
    if seen is None or not isinstance(node, ast.Call):
        return False
    names = {name for line, name in seen.imported if node.lineno <= line <= (node.end_lineno or node.lineno)}
    return bool(names) and not any(_is_watched(name) for name in names)


def _is_watched(module: str) -> bool:
    root = module.partition(".")[0]
    return root in STDLIB or root.startswith((".", "_")) or root in ("torch", "cffi", "requests", *HARNESSES)


def _all(source: PythonSource) -> Iterator[tuple[str, ast.AST, str]]:
    yield from _calls(source)
    yield from _patches(source)
    yield from _reads(source)
    yield from _classes(source)
    yield from _imports(source)
    yield from _files(source)
    yield from _printed_results(source)


def _calls(source: PythonSource) -> Iterator[tuple[str, ast.AST, str]]:
    for call, name in source.calls(source.live):
        kind = CALLS.get(name) or next((kind for head, kind in CALL_PREFIXES.items() if name.startswith(head)), None)
        if name.startswith("ctypes.") and set(name.split(".")) & RAW_MEMORY:
            kind = "memory_tampering"
        if name in ("torch.library.Library", "torch.library.impl", "torch.library.register_kernel"):
            kind = "torch_patched" if call.args and (source.text(call.args[0]) or "").startswith("aten") else None
        if kind is None or (name in _POOLS and _ends_before_forward(source, call)):
            continue
        if kind == "environment_sniffing" and only_said(source, call):
            continue
        if name == "atexit.register" and stops_a_listener(source, call):
            continue
        if kind == "early_exit" and _fails(call):
            continue
        if kind == "result_forging" and name != "os.dup2" and call.args and _is_own_file(source, call.args[0]):
            continue
        if name in ("exit", "quit") and source.definitions(name):
            continue
        yield kind, call, f"{name}: " if name not in ast.unparse(call.func) else ""
    for node in source.live:
        if isinstance(node, ast.Raise) and node.exc is not None and "SystemExit" in ast.unparse(node.exc):
            fails = isinstance(node.exc, ast.Call) and _fails(node.exc)
            if not fails:
                yield "early_exit", node, ""


def _ends_before_forward(source: PythonSource, pool: ast.Call) -> bool:
    """Whether a pool's threads have ended when forward runs: a `with` block elsewhere, which waits for all of them, or a
    variable of which the same statements ask for that at their end.

    Not so where the block stays open (a generator), or where the pool gets more than tasks.
    """
    item = source.parent(pool)
    block = source.parent(item) if item is not None else None
    if block is None or source.computes_names or pool in source.in_forward:
        return False
    match item:
        case ast.withitem(optional_vars=ast.Name() | None as variable) if isinstance(block, ast.With):
            name = variable.id if variable is not None else None
        case ast.Assign(targets=[ast.Name(id=name)]) if _is_shut_down(source, item, name):
            pass
        case _:
            return False
    mentions = [node for node in source.mentions(name or "") if isinstance(node, ast.Name)]
    tasks = all(
        isinstance(above := source.parent(mention), ast.Attribute) and above.attr in ("map", "submit", "shutdown")
        for mention in mentions
        if isinstance(mention.ctx, ast.Load)
    )
    return tasks and not _is_left_open(source, block)


@once
def _is_left_open(_: PythonSource, block: ast.AST) -> bool:
    return any(isinstance(node, ast.Yield | ast.YieldFrom | ast.Await) for node in ast.walk(block))


def _is_shut_down(source: PythonSource, made: ast.Assign, name: str) -> bool:
    """Whether a statement behind the one that makes a pool waits for its threads, and none between leaves the block."""
    block = source.parent(made)
    if block is None or isinstance(block, ast.ClassDef) or len(source.values(name)) != 1:
        return False
    places, leaving, ends = _order(source, block)
    place = places.get(made)
    if place is None:
        return False
    end = min((each for each in ends.get(name, ()) if each > place), default=None)
    return end is not None and bisect_right(leaving, place) == bisect_left(leaving, end)


@once
def _order(_: PythonSource, block: ast.AST) -> tuple[dict[ast.stmt, int], list[int], dict[str, list[int]]]:
    """The places of the statements in a block; of those that may leave it; and of those that wait for a pool, by its name."""
    statements: list[ast.stmt] = getattr(block, "body", [])
    ends: dict[str, list[int]] = {}
    for place, statement in enumerate(statements):
        match statement:
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="shutdown")) as call):
                if ast.unparse(call) in (f"{name}.shutdown()", f"{name}.shutdown(wait=True)", f"{name}.shutdown(True)"):
                    ends.setdefault(name, []).append(place)
    leaving = [place for place, statement in enumerate(statements) if any(map(_leaves, ast.walk(statement)))]
    return {statement: place for place, statement in enumerate(statements)}, leaving, ends


def _leaves(node: ast.AST) -> bool:
    return isinstance(node, ast.Return | ast.Break | ast.Continue)


def _is_own_file(source: PythonSource, descriptor: ast.expr) -> bool:
    """Whether a descriptor is that of a file which the candidate opens itself; which file it is, the run shows."""
    if isinstance(descriptor, ast.Call):
        function = descriptor.func
        if isinstance(function, ast.Attribute) and function.attr == "fileno" and isinstance(function.value, ast.Name):
            opened = source.values(function.value.id)
            return bool(opened) and all(_calls_one_of(source, value, _FILES) for value in opened)
        return source.dotted(function) == "os.open"
    if not isinstance(descriptor, ast.Name):
        return False
    given = descriptor.id in source.parameters
    opened = source.values(descriptor.id)
    return bool(opened) and not given and all(_calls_one_of(source, value, _DESCRIPTORS) for value in opened)


def _calls_one_of(source: PythonSource, value: ast.expr, names: tuple[str, ...]) -> bool:
    return isinstance(value, ast.Call) and source.dotted(value.func) in names


def _fails(call: ast.Call) -> bool:
    """Whether an exit reports failure: a non-zero constant, or text."""
    name = ast.unparse(call.func)
    if call.args and isinstance(call.args[0], ast.JoinedStr):
        return not name.endswith("_exit")
    value = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else None
    return value not in (None, 0, False) and not name.endswith("_exit")


def _patches(source: PythonSource) -> Iterator[tuple[str, ast.AST, str]]:
    """What is assigned (by `for` and `with` as well) or deleted, setattr and mock.patch on objects that are not the
    candidate's."""
    for node in source.live:
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            yield from _patched(source, node, _target(source, node))
        if isinstance(node, ast.Call):
            name = source.dotted(node.func) or ""
            if (
                name in ("setattr", "delattr", "builtins.setattr", "object.__setattr__", "type.__setattr__")
                and len(node.args) > 1
            ):
                owner, key = source.dotted(node.args[0]), source.text(node.args[1])
                yield from _patched(source, node, f"{owner}.{key or '?'}" if owner else None)
            elif name.rpartition(".")[2] in ("patch", "object") and "mock" in name and node.args:
                yield from _patched(source, node, source.text(node.args[0]) or source.dotted(node.args[0]))
            elif name.rpartition(".")[2] in ("update", "pop", "setdefault", "__setitem__", "__setattr__"):
                owner = name.rpartition(".")[0]
                if owner == "sys.modules":
                    yield "modules_tampered", node, ""
                elif isinstance(node.func, ast.Attribute) and (source.dotted(node.func.value) or "").endswith(
                    ".__dict__"
                ):
                    yield from _patched(
                        source, node, f"{(source.dotted(node.func.value) or '').removesuffix('.__dict__')}.?"
                    )


def _target(source: PythonSource, item: ast.Attribute | ast.Subscript) -> str | None:
    if isinstance(item, ast.Subscript) and source.dotted(item.value) == "sys.modules":
        return "sys.modules[]"
    name = source.dotted(item)
    if name is None and isinstance(item, ast.Subscript) and (source.dotted(item.value) or "").startswith("torch."):
        return source.dotted(item.value)  # a table of PyTorch's
    return name


def _patched(source: PythonSource, node: ast.AST, target: str | None) -> Iterator[tuple[str, ast.AST, str]]:
    if target is None or ("." not in target and target != "sys.modules[]"):
        return
    if target.startswith("sys.modules"):
        yield "modules_tampered", node, ""
        return
    root = target.partition(".")[0]
    note = f"{target}: "
    if any(target == timer or target.startswith(timer + ".") for timer in TIMERS):
        yield "timer_patched", node, note
    elif root == "torch" and not target.startswith(SETTINGS):
        yield "torch_patched", node, note
    elif root == "dice":
        yield "harness_import", node, note
    elif target in ("sys.excepthook", "sys.unraisablehook", "threading.excepthook"):
        yield "process_hook", node, note
    elif target.startswith(("os.environ", "logging.", "warnings.")) or target in _SYSTEM_SETTINGS:
        return
    elif root in ("builtins", "__builtins__", "numpy") or (root in STDLIB and root in source.imported_roots):
        yield "interpreter_patched", node, note


def _reads(source: PythonSource) -> Iterator[tuple[str, ast.AST, str]]:
    for node in source.live:
        if isinstance(node, ast.Attribute):
            if node.attr in FRAME_ATTRIBUTES:
                yield "frame_access", node, ""
            if node.attr == "__subclasses__":
                yield "dynamic_code", node, ""
            name = source.dotted(node)
            if name in ("sys.argv", "sys.orig_argv") and not only_said(source, node):
                yield "environment_sniffing", node, ""
            elif node.attr == "__code__" and isinstance(node.ctx, ast.Store) and name is None:
                yield "interpreter_patched", node, "code object: "
            if name == "sys.modules" and not _is_one_module(source, node):
                yield "environment_sniffing", node, ""
            if node.attr == "__module__" and isinstance(node.ctx, ast.Load):
                yield "environment_sniffing", node, ""
        if isinstance(node, ast.Compare) and _asks_for_its_name(node):
            yield "environment_sniffing", node, ""
        variable = _environment_variable(source, node)
        if variable is not None and any(part in variable.upper() for part in EVALUATION_VARIABLES):
            yield "environment_sniffing", node, ""


def _is_one_module(source: PythonSource, node: ast.AST) -> bool:
    """Whether `sys.modules` is followed by a name; then the rules for that module's name apply."""
    above = source.parent(node)
    if isinstance(above, ast.Attribute):
        return above.attr in ("pop", "update", "setdefault", "__setitem__")
    return isinstance(above, ast.Subscript)


def _asks_for_its_name(node: ast.Compare) -> bool:
    """Whether `__name__` is compared with anything but `__main__`."""
    sides = [node.left, *node.comparators]
    names = any(isinstance(side, ast.Name) and side.id == "__name__" for side in sides)
    return names and not any(isinstance(side, ast.Constant) and side.value == "__main__" for side in sides)


def _environment_variable(source: PythonSource, node: ast.AST) -> str | None:
    """Name of the environment variable that `node` reads, if it reads one."""
    if isinstance(node, ast.Call) and source.dotted(node.func) in ("os.environ.get", "os.getenv") and node.args:
        return source.text(node.args[0]) or "?"
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and source.dotted(node.value) == "os.environ":
        return source.text(node.slice) or "?"
    return None


def _classes(source: PythonSource) -> Iterator[tuple[str, ast.AST, str]]:
    for node in source.live:
        if isinstance(node, ast.FunctionDef) and node.name in PICKLE_HOOKS:
            yield "process_hook", node, ""
    for node in source.nodes:
        if isinstance(node, ast.ClassDef) and not source.never_runs(node):
            bases = [source.dotted(base) for base in node.bases]
            for base in bases:
                if base in BASES:
                    yield BASES[base], node, ""


_LOOKS_FOR_MODULES = ("importlib.util.find_spec", "importlib.metadata.version", "importlib.metadata.distribution")


def _imports(source: PythonSource) -> Iterator[tuple[str, ast.AST, str]]:
    for node in source.live:
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        elif isinstance(node, ast.Call) and source.dotted(node.func) in _LOOKS_FOR_MODULES:
            names = [source.text(node.args[0]) or ""] if node.args else []
        elif isinstance(node, ast.Call) and source.dotted(node.func) in ("__import__", "importlib.import_module"):
            name = source.text(node.args[0]) if node.args else None
            if name is None:
                yield "dynamic_code", node, ""
                continue
            names = [name]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr":
            key = node.args[1] if len(node.args) > 1 else None
            if key is not None and source.text(key) in FRAME_ATTRIBUTES:
                yield "frame_access", node, ""
            computed = isinstance(key, ast.Call | ast.BinOp | ast.JoinedStr) and source.text(key) is None
            owner = source.dotted(next(iter(node.args), None)) or ""
            computed = computed and not (owner == "torch" and _names_a_type(key))
            computed = computed and owner != "torch.ops"  # the run records operators, however they are reached
            if computed and owner.partition(".")[0] in {"torch", "time", "os", "sys", "builtins"}:
                yield "dynamic_code", node, ""
        for name in names:
            if name == "__main__" or any(name == harness or name.startswith(harness + ".") for harness in HARNESSES):
                yield "harness_import", node, ""


def _names_a_type(key: ast.expr | None) -> bool:
    """Whether a computed name is `f"float{bits}"` or similar: such names in torch are types, or count as work."""
    head = key.values[0] if isinstance(key, ast.JoinedStr) and key.values else None
    return isinstance(head, ast.Constant) and head.value in ("float", "bfloat", "int", "uint", "complex")


def _files(source: PythonSource) -> Iterator[tuple[str, ast.AST, str]]:
    """Constant paths outside the scratch folder or with a module's name; other paths are seen while it runs."""
    for call, name in source.calls(source.live):
        if name not in ("open", "io.open", "os.open", "pathlib.Path", "builtins.open", "codecs.open"):
            continue
        paths = [*call.args[:1], *(item.value for item in call.keywords if item.arg in ("file", "path", "filename"))]
        modes = [*call.args[1:2], *(item.value for item in call.keywords if item.arg == "mode")]
        path = next(filter(None, map(source.text, paths)), None)
        mode = next(filter(None, map(source.text, modes)), "r")
        if path is None:
            continue
        stem = path.rpartition("/")[2]
        kind = "memory_tampering" if path.startswith(("/dev/mem", "/dev/nvidia")) else proc_finding(path)
        if kind is not None:
            yield kind, call, ""
        elif any(letter in mode for letter in "wax+") and (
            ".." in path.split("/") or (path.startswith("/") and not path.startswith(("/tmp/", "/dev/")))
        ):
            yield "file_written", call, ""
        elif any(letter in mode for letter in "wax+") and stem.endswith(".py") and stem[:-3] in SHADOWS:
            yield "file_written", call, "shadows a module: "
        elif stem.startswith(("eval_results", "reference", "expected", "ground_truth")):
            yield "file_written" if any(letter in mode for letter in "wax+") else "stored_results", call, ""


def _printed_results(source: PythonSource) -> Iterator[tuple[str, ast.AST, str]]:
    """Text that looks like a harness's result, sent to standard output."""
    for call, name in source.calls(source.live):
        if name not in (
            "print",
            "sys.stdout.write",
            "sys.__stdout__.write",
            "sys.stdout.buffer.write",
            "json.dumps",
            "json.dump",
        ):
            continue
        for node in ast.walk(call):
            keys: set[str] = set()
            if isinstance(node, ast.Dict):
                keys = {source.text(key) or "" for key in node.keys if key is not None}
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.strip().startswith("{"):
                keys = _json_keys(node.value)
            if len(keys & VERDICT_WORDS) >= 2:
                yield "result_forging", call, ""
                break


def _json_keys(text: str) -> set[str]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return set()
    return set(value) if isinstance(value, dict) else set()
