"""Which shared objects can launch kernels that our launch table does not count."""

from __future__ import annotations

import re
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from dice.kernels.records.extension import LaunchCount

_LAUNCHES = re.compile(r"_*(?:cuda|cu)(?:Launch|GraphLaunch)")
"""Functions of the CUDA runtime and the driver that start kernels."""
_UNREADABLE = (ELFError, OSError, ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)
"""What pyelftools raises for a file that is no whole shared object."""


def uncounted_launches(path: Path) -> LaunchCount:
    """How an object without kernels of its own launches: `none`, or `unknown` when it imports a function that launches or
    cannot be read."""
    names = imported_functions(path)
    return "unknown" if names is None or any(_LAUNCHES.match(name) for name in names) else "none"


def imported_functions(path: Path) -> list[str] | None:
    """Undefined names in the dynamic symbol table of a shared object; None where it cannot be read."""
    try:
        with path.open("rb") as stream:
            table = ELFFile(stream).get_section_by_name(".dynsym")
            if not isinstance(table, SymbolTableSection):
                return []
            return [symbol.name for symbol in table.iter_symbols() if symbol["st_shndx"] == "SHN_UNDEF" and symbol.name]
    except _UNREADABLE:
        return None
