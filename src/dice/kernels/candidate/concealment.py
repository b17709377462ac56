"""What a candidate finds of the verifier when it looks around in its process: as little as Python allows.

Nothing that acquits rests on this (`dice.kernels.records.evidence`). It keeps candidates from behaving otherwise because
they see where they are.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import sys
from pathlib import Path
from types import ModuleType

_PACKAGE = __name__.partition(".")[0]
_ARGUMENT_FIELDS = (48, 49)
"""Of /proc/self/stat, counted from 1: where the command line begins and ends in memory."""


def conceal(program: str) -> None:
    """Forget the package by name; let `program` be what Python was started with. Modules that are loaded go on working."""
    for name in [name for name in sys.modules if name.partition(".")[0] == _PACKAGE]:
        del sys.modules[name]
    blank = ModuleType("__main__")
    vars(blank)["__builtins__"] = __builtins__
    sys.modules["__main__"] = blank
    for entry in [entry for entry in sys.path if holds_the_package_alone(entry)]:
        sys.path.remove(entry)
        sys.path_importer_cache.pop(entry, None)
    sys.argv[:] = [program]
    sys.orig_argv[:] = [sys.executable, program]
    with contextlib.suppress(OSError, ValueError):
        _rename([sys.executable, program])
    gc.collect()
    gc.freeze()  # gc.get_objects() leaves out what is frozen


def holds_the_package_alone(folder: str) -> bool:
    """Whether a folder of the path is a checkout's. In one that holds PyTorch too, the package can still be imported: anew,
    without anything of this process in it. One that this user may not read holds nothing."""
    return os.path.isdir(f"{folder}/{_PACKAGE}/kernels") and not os.path.isdir(f"{folder}/torch")


def _rename(command: list[str]) -> None:
    """Have /proc/self/cmdline say another command, in the memory of the old one."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    begin, end = (int(fields[number - 3]) for number in _ARGUMENT_FIELDS)
    text = b"".join(word.encode() + b"\0" for word in command)
    if 0 < begin < end and len(text) < end - begin:
        ctypes.memmove(begin, text.ljust(end - begin, b"\0"), end - begin)
