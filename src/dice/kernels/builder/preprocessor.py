"""The C++ preprocessor in the compilers' jail, for sources whose macros must be expanded before they are read."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from dice.kernels.builder.compiler import Meter, ToolLimits
from dice.kernels.source.lexer import SplitRefused

_NAME = "dice_macros"
_TIMEOUT_S = 30.0
_MEMORY_GIB = 2.0
_TEXT_GIB = 4 / 1024
"""Of the expanded text: macros can grow without bounds."""


@dataclass
class Preprocessor:
    """`dice.kernels.source.macros.Preprocess` for one build in the folder `work`."""

    meter: Meter
    work: Path
    deadline: float

    def __call__(self, text: str) -> str:
        """`text` with its macros expanded; no header is read. Raises SplitRefused."""
        (self.work / f"{_NAME}.cpp").write_text(text, encoding="utf-8", errors="surrogatepass")
        flags = ["-E", "-P", "-undef", "-nostdinc", "-std=c++20"]
        timeout_s = min(_TIMEOUT_S, max(0.0, self.deadline - time.monotonic()))
        limits = ToolLimits(timeout_s, memory_gib=_MEMORY_GIB, file_gib=_TEXT_GIB)
        done = self.meter.run(["g++", *flags, f"{_NAME}.cpp", "-o", f"{_NAME}.ii"], self.work, limits)
        if not done.ok:
            grew = done.timed_out or done.out_of_memory or "signal terminated program" in done.output
            lines = done.output.strip().splitlines()
            raise SplitRefused(f"macros cannot be expanded: {'they grow too large' if grew or not lines else lines[0]}")
        return (self.work / f"{_NAME}.ii").read_text(encoding="utf-8", errors="surrogatepass")
