"""The C++ preprocessor in the compilers' jail, for sources whose macros must be expanded before they are read."""

from __future__ import annotations

from dice.kernels.builder.compiler import ToolLimits, Workbench
from dice.kernels.source.lexer import SplitRefused

_NAME = "dice_macros"
_LIMITS = ToolLimits(30.0, memory_gib=2.0, file_gib=4 / 1024)
"""Macros can make a text grow without bounds."""


def expanded(cxx: str, bench: Workbench, text: str) -> str:
    """`text` with its macros expanded by the compiler `cxx`; no header is read. Raises SplitRefused."""
    (bench.folder / f"{_NAME}.cpp").write_text(text, encoding="utf-8", errors="surrogatepass")
    command = [cxx, "-E", "-P", "-undef", "-nostdinc", "-std=c++20", f"{_NAME}.cpp", "-o", f"{_NAME}.ii"]
    done = bench.meter.run(command, bench.folder, _LIMITS, bench.deadline)
    if not done.ok:
        grew = done.timed_out or done.out_of_memory or "signal terminated program" in done.output
        lines = done.output.strip().splitlines()
        raise SplitRefused(f"macros cannot be expanded: {'they grow too large' if grew or not lines else lines[0]}")
    return (bench.folder / f"{_NAME}.ii").read_text(encoding="utf-8", errors="surrogatepass")
