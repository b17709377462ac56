"""In the candidate's process: load what the builder made, and steer its launches.

    use_ledger(address)                  # before anything is loaded: where launches are marked
    module = load_extension(result.path, request.name)
    kernels()                            # {hash: "relu_kernel"}: the names behind the marks, of all extensions together
    set_launches(enabled=False)          # launches do nothing from here on

A build that failed raises what PyTorch raises: `raise build_exception(result, name)`.

Objects of a GPU that were made by a fast route, and stock builds that could be linked again, export `dice_launch_open`
(csrc/extension/launch.cpp). Objects of the CPU back end export `dice_cpu_kernels`, and their runtime is steered.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import functools
import importlib.machinery
import importlib.util
import itertools
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from dice.kernels.candidate.clock_ahead import Clocks, set_ahead
from dice.kernels.cpu.runtime import AFTER_LAUNCHES, KEPT_PIECE, LOOK, CpuRuntime, KeptPiece, kept_pieces
from dice.kernels.records.extension import BuildResult
from dice.kernels.records.object_facts import object_facts
from dice.kernels.sandbox.launch_ledger import name_hash

_FIRST_DESCRIPTOR = 200
"""Duplicates are numbered from here, away from what programs close by number."""


class _Entry(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("host", ctypes.c_void_p), ("handle", ctypes.c_void_p)]


class _Control(ctypes.Structure):
    _fields_ = [
        ("entries", ctypes.POINTER(_Entry)),
        ("count", ctypes.POINTER(ctypes.c_int)),
        ("enabled", ctypes.POINTER(ctypes.c_int)),
        ("page", ctypes.POINTER(ctypes.c_void_p)),
        ("keep_arguments", ctypes.CFUNCTYPE(None, ctypes.c_size_t, ctypes.c_size_t)),
        ("kept_piece", KEPT_PIECE),
        ("after_launches", AFTER_LAUNCHES),
    ]


class _Binding(ctypes.Structure):  # csrc/extension/binding.cpp
    _fields_ = [
        ("watch_calls", ctypes.PYFUNCTYPE(None, ctypes.py_object)),
        ("without_gil", ctypes.POINTER(ctypes.c_bool)),
    ]


_bindings: dict[str, _Binding] = {}
"""The controls of support libraries, by path."""
_clocks: dict[str, Clocks] = {}
"""The clocks of support libraries that can be set ahead, by path."""
_paths: set[str] = set()
"""Of the objects, as they were loaded."""
_controls: list[_Control] = []
"""Of the objects that export `dice_launch_open`."""
_kernels: dict[int, str] = {}
"""Readable names of the kernels of the CPU back end's objects, by hash."""
_ledger = 0
"""Address of the ledger's page; 0: there is none."""


def use_ledger(address: int) -> None:
    """Have the launches of all extensions that are loaded from now on marked in the page at `address`."""
    global _ledger
    _ledger = address


def load_extension(path: str | Path, name: str, *, is_python_module: bool = True) -> ModuleType | str:
    """Import the shared object as `torch.utils.cpp_extension` would; without `is_python_module`, load it.

    `path` may be `/proc/self/fd/N`: the object is then loaded through a duplicate of that descriptor, which stays open.
    Returns the module, or the path. Raises what the import raises: ImportError for undefined symbols or a missing
    module initialiser.
    """
    path = _lasting(str(path))
    _paths.add(path)
    facts = object_facts(path)
    libraries = [_library(library) for library in facts["libraries"]]
    if (runtime := CpuRuntime.loaded()) is not None:  # whose controls are taken before the candidate's code can ask
        runtime.set_ledger(_ledger)
    if not is_python_module:
        _open(ctypes.CDLL(path))  # as torch.ops.load_library does, which looks for the descriptor's file by name
        return path
    if facts["table"]:
        libraries[0].dice_name_next_module(name.encode())  # the table's module takes the name that it is told
    loader = importlib.machinery.ExtensionFileLoader(facts["module"], path)
    spec = importlib.util.spec_from_file_location(facts["module"], path, loader=loader)
    assert spec is not None
    earlier = sys.modules.get(facts["module"])
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    if earlier is not None:  # a second model has built the same extension: no module was replaced by the candidate
        sys.modules[facts["module"]] = earlier
    module.__name__ = name
    spec.name = name
    _open(ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_LAZY))
    return module


def _open(library: ctypes.CDLL) -> None:
    """Take the controls of an object that has just been loaded. It gives them once: the second time it is the same object."""
    if hasattr(library, "dice_launch_open"):
        library.dice_launch_open.restype = ctypes.POINTER(_Control)
        control = library.dice_launch_open()
        if control:
            control.contents.page[0] = _ledger
            _controls.append(control.contents)
    if hasattr(library, "dice_cpu_kernels"):
        library.dice_cpu_kernels.restype = ctypes.POINTER(ctypes.c_char_p)
        names = library.dice_cpu_kernels()
        for name in itertools.takewhile(bool, (names[i] for i in itertools.count())):
            _kernels[_hash(name)] = _readable(name.decode("utf-8", "replace"))


def _lasting(path: str) -> str:
    """The path itself; for a descriptor, that of a duplicate: dlopen takes a path that it has seen for the same object."""
    match = re.fullmatch(r"/(?:proc/self|dev)/fd/(\d+)", path)
    if match is None:
        return path
    return f"/proc/self/fd/{fcntl.fcntl(int(match.group(1)), fcntl.F_DUPFD_CLOEXEC, _FIRST_DESCRIPTOR)}"


def _library(path: str) -> ctypes.CDLL:
    """A library of ours, loaded once and visible to all, so that objects need not know where it lies. PyTorch's libraries
    are there already."""
    library = ctypes.CDLL(path, mode=sys.getdlopenflags() | os.RTLD_GLOBAL)
    if path not in _bindings and hasattr(library, "dice_call_watching"):
        library.dice_call_watching.restype = ctypes.POINTER(_Binding)
        if control := library.dice_call_watching():
            _bindings[path] = control.contents
        library.dice_clocks.restype = ctypes.POINTER(Clocks)
        if clocks := library.dice_clocks():
            _clocks[path] = clocks.contents
    return library


def build_exception(result: BuildResult, name: str) -> Exception:
    """The exception that PyTorch raises when a build fails (`torch.utils.cpp_extension._run_ninja_build`)."""
    return RuntimeError(f"Error building extension '{name}': {result.message}")


def kernels() -> dict[int, str]:
    """Readable names of the kernels of all extensions, by the hash that their launches are marked with."""
    found = dict(_kernels)
    for control in _controls:
        for entry in control.entries[: control.count[0]]:
            found[_hash(entry.name)] = _readable(entry.name.decode("utf-8", "replace"))
    return found


def loaded_paths() -> set[str]:
    """Paths that extensions were loaded from, as the dynamic loader knows them."""
    return set(_paths)


def set_clocks_ahead(seconds: int) -> int:
    """Set the clocks ahead of those of the machine, for the candidate's code; how many ways to ask for the time lead there. 0
    where no extension came with a support library."""
    clocks = next(iter(_clocks.values()), None)
    return set_ahead(clocks, seconds, _paths) if clocks is not None else 0


def set_launches(*, enabled: bool) -> None:
    """Let the launches of all extensions through (as at first), or make them do nothing and succeed."""
    for control in _controls:
        control.enabled[0] = int(enabled)
    if (runtime := CpuRuntime.loaded()) is not None:
        runtime.enable(enabled)


def keep_arguments(piece_bytes: int, all_bytes: int) -> None:
    """From here on, copy what arguments of launches point to, before and after each launch: at most `piece_bytes` behind each
    pointer and `all_bytes` for each extension. With 0, stop."""
    for keeper in _keepers():
        keeper.keep_arguments(piece_bytes, all_bytes)


def kept_arguments() -> list[KeptPiece]:
    """The copies in the order of their moments. They are gone after the next `keep_arguments`."""
    pieces = [piece for keeper in _keepers() for piece in kept_pieces(keeper.kept_piece)]
    return sorted(pieces, key=lambda piece: piece.moment)


@contextlib.contextmanager
def watched_launches(look: Callable[[list[KeptPiece]], None]) -> Iterator[None]:
    """Call `look` after each launch with what was kept of it, while `keep_arguments` keeps something: before the launch and
    after it. It may change memory and the copies, which later ones are compared with."""
    keepers = _keepers()
    seen = [0] * len(keepers)

    def after() -> None:
        pieces = []
        for index, keeper in enumerate(keepers):
            found = [*kept_pieces(keeper.kept_piece, seen[index])]
            seen[index] += len(found)
            pieces += found
        look(sorted(pieces, key=lambda piece: piece.moment))

    callback = LOOK(after)
    for keeper in keepers:
        keeper.after_launches(callback)
    try:
        yield
    finally:
        for keeper in keepers:
            keeper.after_launches(LOOK())


def _keepers() -> list[ctypes.Structure]:
    """The controls that keep what arguments of launches point to: those of the objects, and the CPU back end's."""
    runtime = CpuRuntime.loaded()
    return [*_controls, runtime.control] if runtime else [*_controls]


@contextlib.contextmanager
def watched_calls(watcher: Callable[[str, tuple[Any, ...]], None]) -> Iterator[None]:
    """Tell `watcher` the name and the arguments of each call into an extension with a table of functions, before the
    call. Those that pybind11 binds itself are not seen."""
    for binding in _bindings.values():
        binding.watch_calls(watcher)
    try:
        yield
    finally:
        for binding in _bindings.values():
            binding.watch_calls(None)


@contextlib.contextmanager
def without_interpreter_lock() -> Iterator[None]:
    """Run the functions of extensions with a table without Python's lock. Where a mode records operators, PyTorch's threads
    need it for each operator, and a function may wait for what it gave them to do."""
    for binding in _bindings.values():
        binding.without_gil[0] = True
    try:
        yield
    finally:
        for binding in _bindings.values():
            binding.without_gil[0] = False


_hash = functools.cache(name_hash)


@functools.cache
def _readable(mangled: str) -> str:
    """`void k<float>(float*, int)` of a mangled name, cut to `k<float>`."""
    demangled = _demangle(mangled)
    plain = demangled.removeprefix("void ")
    depth = 0
    for i, character in enumerate(plain):
        depth += (character == "<") - (character == ">")
        if character == "(" and depth == 0 and not plain.startswith("(anonymous", i):
            plain = plain[:i]
            break
    plain = re.sub(r"\b(?:dice_unnamed|\(anonymous namespace\))::", "", plain)
    return re.sub(r"\b_GLOBAL__N__\w+::", "", plain)


def _demangle(name: str) -> str:
    if not name.startswith("_Z"):
        return name  # a plain name, which the demangler would take for a type (`f` is float)
    library = ctypes.CDLL("libstdc++.so.6")
    library.__cxa_demangle.restype = ctypes.c_void_p
    status = ctypes.c_int()
    result = library.__cxa_demangle(name.encode(), None, None, ctypes.byref(status))
    if not result or status.value != 0:
        return name
    try:
        return (ctypes.cast(result, ctypes.c_char_p).value or b"").decode("utf-8", "replace")
    finally:
        ctypes.CDLL(None).free(ctypes.c_void_p(result))
