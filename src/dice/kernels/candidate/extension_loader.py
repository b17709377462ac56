"""In the candidate's process: load what the builder made, and read and steer its launch counters.

    module = load_extension(result.path, request.name)
    reset_launches(); module.forward(x); read_launches()     # {"relu_kernel": 1}: of all extensions together
    set_launches(enabled=False)                              # launches do nothing from here on

A build that failed raises what PyTorch raises: `raise build_exception(result, name)`.

Every object made by a fast route, and every stock build that could be linked again, exports (csrc/extension/launch.cpp;
the CPU back end exports the same):

    dice_launch_entry* dice_launch_table(int* count)   rows {const char* name; void* host; void* handle; u64 ok; u64 failed}
    void dice_launch_reset(void)
    void dice_launch_enable(int on)
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import functools
import importlib.machinery
import importlib.util
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from dice.kernels.records.extension import BuildResult
from dice.kernels.records.object_facts import object_facts

_FIRST_DESCRIPTOR = 200
"""Duplicates are numbered from here, away from what programs close by number."""


class _Entry(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("host", ctypes.c_void_p),
        ("handle", ctypes.c_void_p),
        ("launches", ctypes.c_uint64),
        ("failures", ctypes.c_uint64),
    ]


_bindings: dict[str, ctypes.PyDLL] = {}
"""Support libraries whose functions can be watched, by path (csrc/extension/binding.cpp)."""
_loaded: dict[str, ctypes.CDLL] = {}
"""Extensions of this process, by path: what dlopen keeps too, in a form that can be asked."""


def load_extension(path: str | Path, name: str, *, is_python_module: bool = True) -> ModuleType | str:
    """Import the shared object as `torch.utils.cpp_extension` would; without `is_python_module`, load it.

    `path` may be `/proc/self/fd/N`: the object is then loaded through a duplicate of that descriptor, which stays open.
    Returns the module, or the path. Raises what the import raises: ImportError for undefined symbols or a missing
    module initialiser.
    """
    path = _lasting(str(path))
    facts = object_facts(path)
    libraries = [_library(library) for library in facts["libraries"]]
    if not is_python_module:
        import torch

        torch.ops.load_library(path)
        _loaded[path] = ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
        return path
    if facts["table"]:
        libraries[0].dice_name_next_module(name.encode())  # the table's module takes the name that it is told
        _bindings.setdefault(facts["libraries"][0], ctypes.PyDLL(facts["libraries"][0]))
    loader = importlib.machinery.ExtensionFileLoader(facts["module"], path)
    spec = importlib.util.spec_from_file_location(facts["module"], path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    module.__name__ = name
    spec.name = name
    _loaded[path] = ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
    return module


def _lasting(path: str) -> str:
    """The path itself; for a descriptor, that of a duplicate: dlopen takes a path that it has seen for the same object."""
    match = re.fullmatch(r"/(?:proc/self|dev)/fd/(\d+)", path)
    if match is None:
        return path
    return f"/proc/self/fd/{fcntl.fcntl(int(match.group(1)), fcntl.F_DUPFD_CLOEXEC, _FIRST_DESCRIPTOR)}"


def _library(path: str) -> ctypes.CDLL:
    """A library of ours, loaded once and visible to all, so that objects need not know where it lies."""
    import torch  # noqa: F401  # its libraries must be there first

    return ctypes.CDLL(path, mode=sys.getdlopenflags() | os.RTLD_GLOBAL)


def build_exception(result: BuildResult, name: str) -> Exception:
    """The exception that PyTorch raises when a build fails (`torch.utils.cpp_extension._run_ninja_build`)."""
    return RuntimeError(f"Error building extension '{name}': {result.message}")


def read_launches() -> dict[str, int]:
    """Launches per kernel since the last reset, of all extensions; kernels that never ran are listed with 0.

    Extensions that cannot count (`BuildResult.launches`) contribute nothing.
    """
    return _read("launches")


def read_failed_launches() -> dict[str, int]:
    """Launches that the CUDA runtime refused, per kernel, without zeros."""
    return {name: count for name, count in _read("failures").items() if count}


def reset_launches() -> None:
    """Set the counts of all extensions to 0."""
    for library in _counting():
        library.dice_launch_reset()


def set_launches(*, enabled: bool) -> None:
    """Let the launches of all extensions through (as at first), or make them do nothing and succeed."""
    for library in _counting():
        library.dice_launch_enable(int(enabled))


@contextlib.contextmanager
def watched_calls(watcher: Callable[[str, tuple[Any, ...]], None]) -> Iterator[None]:
    """Tell `watcher` the name and the arguments of each call into an extension with a table of functions, before the
    call. Those that pybind11 binds itself are not seen."""
    for library in _bindings.values():
        library.dice_watch_calls(ctypes.py_object(watcher))
    try:
        yield
    finally:
        for library in _bindings.values():
            library.dice_watch_calls(ctypes.py_object(None))


def _counting() -> list[ctypes.CDLL]:
    return [library for library in _loaded.values() if hasattr(library, "dice_launch_table")]


def _read(field: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    for library in _counting():
        library.dice_launch_table.restype = ctypes.POINTER(_Entry)
        count = ctypes.c_int()
        table = library.dice_launch_table(ctypes.byref(count))
        for entry in table[: count.value]:
            name = _readable(entry.name.decode("utf-8", "replace"))
            counts[name] = counts.get(name, 0) + getattr(entry, field)
    return counts


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
