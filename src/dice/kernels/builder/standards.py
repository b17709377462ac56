"""A C++ standard that a candidate asks for and PyTorch's own headers refuse (`-std=c++14`)."""

from __future__ import annotations

from pathlib import Path

from dice.kernels.builder.certainty import certain
from dice.kernels.builder.compiler import Meter, ToolLimits, raise_out_of_limits
from dice.kernels.builder.toolchain import Toolchain

_OLD_STANDARDS = frozenset({"98", "03", "0x", "11", "1y", "14"})


def check_standard(
    standard: str, toolchain: Toolchain, work: Path, meter: Meter, limits: ToolLimits, deadline: float
) -> None:
    """Raise Certain when PyTorch's own header does not compile under `standard`, a -std flag."""
    if standard.removeprefix("-std=").removeprefix("c++").removeprefix("gnu++") not in _OLD_STANDARDS:
        return
    (work / "standard.cpp").write_text("#include <torch/types.h>\n")
    flags = [*toolchain.cxx_flags("cpp"), standard, "-Wfatal-errors", "-fsyntax-only"]
    done = meter.run([toolchain.cxx, *flags, "standard.cpp"], work, limits, deadline=deadline)
    raise_out_of_limits(done)
    if not done.ok:
        raise certain(done.output, f"PyTorch's headers under {standard}")
