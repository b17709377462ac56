"""In the candidate's process: load what the builder made, and read and steer its launch counters.

    module = load_extension(result.path, request.name)
    reset_launches(result.path); module.forward(x); read_launches(result.path)   # {"relu_kernel": 1}
    set_launches(result.path, enabled=False)     # the extension's launches do nothing from here on

A build that failed raises what PyTorch raises: `raise build_exception(result, name)`.

Every object made by a fast route, and every stock build that could be linked again, exports (csrc/extension/launch.cpp;
the CPU back end exports the same):

    dice_launch_entry* dice_launch_table(int* count)   rows {const char* name; void* host; void* handle; u64 ok; u64 failed}
    void dice_launch_reset(void)
    void dice_launch_enable(int on)
"""

from __future__ import annotations

import ctypes
import importlib.machinery
import importlib.util
import os
import re
import sys
from pathlib import Path
from types import ModuleType

from dice.errors import HarnessError
from dice.kernels.build_cache import entry_facts
from dice.kernels.extension import BuildResult


class _Entry(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("host", ctypes.c_void_p),
        ("handle", ctypes.c_void_p),
        ("launches", ctypes.c_uint64),
        ("failures", ctypes.c_uint64),
    ]


def load_extension(path: str | Path, name: str, *, is_python_module: bool = True) -> ModuleType | str:
    """Import the shared object as `torch.utils.cpp_extension` would; without `is_python_module`, load it and return its path.

    Raises what the import raises: ImportError for undefined symbols or a missing module initialiser.
    """
    facts = entry_facts(path)
    _load_support(facts.get("support"))
    if not is_python_module:
        import torch

        torch.ops.load_library(str(path))
        return str(path)
    built_as: str = facts.get("module") or name
    if facts.get("table"):
        # The table's module takes the name that it is told.
        ctypes.CDLL(facts["support"]).dice_name_next_module(name.encode())
    spec = importlib.util.spec_from_file_location(built_as, str(path))
    if spec is None or not isinstance(spec.loader, importlib.machinery.ExtensionFileLoader):
        raise ImportError(f"{path}: not an extension module")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.__name__ = name
    spec.name = name
    return module


def _load_support(path: str | None) -> None:
    """The support library, loaded once and globally visible, so that objects need not know where it lies."""
    if path is None:
        return
    import torch  # noqa: F401  # its libraries must be there first

    flags = sys.getdlopenflags()
    ctypes.CDLL(path, mode=flags | os.RTLD_GLOBAL)


def build_exception(result: BuildResult, name: str) -> Exception:
    """The exception that PyTorch raises when a build fails (`torch.utils.cpp_extension._run_ninja_build`)."""
    return RuntimeError(f"Error building extension '{name}': {result.message}")


def read_launches(path: str | Path) -> dict[str, int]:
    """Launches per kernel since the last reset; kernels that never ran are listed with 0. {} when it cannot count."""
    return _read(path, "launches")


def read_failed_launches(path: str | Path) -> dict[str, int]:
    """Launches that the CUDA runtime refused, per kernel, without zeros."""
    return {name: count for name, count in _read(path, "failures").items() if count}


def reset_launches(path: str | Path) -> None:
    """Set all counts of this object to 0."""
    library = _library(path)
    if hasattr(library, "dice_launch_reset"):
        library.dice_launch_reset()


def set_launches(path: str | Path, *, enabled: bool) -> None:
    """Let launches through (True, the initial state), or make them do nothing and succeed."""
    library = _library(path)
    if hasattr(library, "dice_launch_enable"):
        library.dice_launch_enable(int(enabled))


def _library(path: str | Path) -> ctypes.CDLL:
    """The object, which must be loaded already (RTLD_NOLOAD)."""
    try:
        return ctypes.CDLL(str(path), mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
    except OSError as error:
        raise HarnessError(f"{path} is not loaded in this process.") from error


def _read(path: str | Path, field: str) -> dict[str, int]:
    library = _library(path)
    if not hasattr(library, "dice_launch_table"):
        return {}
    library.dice_launch_table.restype = ctypes.POINTER(_Entry)
    count = ctypes.c_int()
    table = library.dice_launch_table(ctypes.byref(count))
    counts: dict[str, int] = {}
    for entry in table[: count.value]:
        name = _readable(entry.name.decode("utf-8", "replace"))
        counts[name] = counts.get(name, 0) + getattr(entry, field)
    return counts


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
