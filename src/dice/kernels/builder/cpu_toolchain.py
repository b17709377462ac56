"""What all builds of the CPU back end share: the flags of g++, the headers, and the library that runs kernels."""

from __future__ import annotations

import functools
import platform
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

from dice.kernels.builder.artefacts import NotPrepared
from dice.kernels.builder.compiler import Meter
from dice.kernels.builder.cpu_aliases import alias_folder
from dice.kernels.builder.headers import CSRC, HeaderSpec, files_digest, source_digest
from dice.kernels.builder.precompiled import Precompiled
from dice.kernels.cpu import LIBRARY

CPU_CSRC = CSRC / "cpu"


@functools.cache
def machine_flags() -> tuple[str, ...]:
    """Instruction set for g++: with masked vector stores where this computer has them, else the compiler's default."""
    if platform.machine() != "x86_64":
        return ()
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return ()
    match = re.search(r"^flags\s*:(.*)$", text, re.MULTILINE)
    flags = set(match.group(1).split()) if match else set()
    return ("-march=x86-64-v3",) if flags >= {"avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "abm"} else ()


# -fwrapv and -fno-strict-aliasing: as device code behaves. Symbols stay in the object: many are loaded into one process,
# perhaps beside a real CUDA runtime.
COMPILE_FLAGS = (
    "-O2",
    "-fno-trapping-math",
    "-fno-math-errno",
    "-fvect-cost-model=dynamic",
    "-fwrapv",
    "-fno-strict-aliasing",
    "-fno-gnu-unique",
    "-fvisibility=hidden",
    "-w",
)

_CUDA_HEADERS = "#include <c10/util/Logging.h>\n#include <cuda_runtime.h>\n"
_HEADER_TEXTS = {
    "slim_cpu": f'#include <torch/types.h>\n#include <torch/extension.h>\n#include "binding.h"\n{_CUDA_HEADERS}',
    "full_cpu": f"#include <torch/types.h>\n#include <torch/extension.h>\n{_CUDA_HEADERS}",
}


def cpu_header(precompiled: Precompiled, name: str) -> HeaderSpec:
    """`slim_cpu`: PyTorch slim, the binding table, CUDA's built-ins; `full_cpu`: untouched PyTorch with pybind11."""
    return HeaderSpec(
        name,
        _HEADER_TEXTS[name],
        slim=name == "slim_cpu",
        flags=(*COMPILE_FLAGS, *machine_flags()),
        includes=(CPU_CSRC / "include", alias_folder(precompiled), CSRC / "extension"),
    )


def runtime_library(precompiled: Precompiled) -> Path:
    """`libdice_cpu.so`, behind all CPU objects; compiled the first time (30 s of CPU). Raises NotPrepared."""
    machine = [flag.removeprefix("-march=") for flag in machine_flags()]
    digests = (
        files_digest(CPU_CSRC, CSRC / "extension"),
        *map(source_digest, ("artefacts.py", "precompiled.py", "slim_headers.py", "cpu_toolchain.py")),
    )
    name = "-".join(["cpu", *digests, *machine])
    return precompiled.artefact(name, partial(_make_runtime, precompiled)) / LIBRARY


def prepare(precompiled: Precompiled, *, everything: bool = False) -> None:
    """Make what all CPU builds need, or `everything` that some need, once per machine. Raises NotPrepared."""
    names = tuple(_HEADER_TEXTS) if everything else ("slim_cpu",)
    tasks: list[Callable[[], object]] = [partial(runtime_library, precompiled)]
    tasks += [partial(precompiled.header, cpu_header(precompiled, name)) for name in names]
    for outcome in precompiled.side_by_side(tasks, len(tasks)):  # each is a compiler's work, on one core
        if isinstance(outcome, NotPrepared):
            raise outcome


def _make_runtime(precompiled: Precompiled, out: Path, meter: Meter) -> None:
    tools = precompiled.toolchain
    slim = ["-isystem", precompiled.slim_folder()]  # two units read PyTorch: half of their time
    flags = [*slim, *tools.cxx_flags("cpp"), "-O2", "-fvisibility=hidden", "-fno-gnu-unique", *machine_flags()]
    objects = {f"{source.stem}.o": source for source in sorted((CPU_CSRC / "runtime").glob("*.cpp"))}
    compile_one = [tools.cxx, *flags, "-I", CPU_CSRC / "include", "-c"]
    precompiled.compile_side_by_side(meter, [[*compile_one, objects[o], "-o", o] for o in objects], out)
    link = [*tools.link_flags("cpp"), f"-Wl,-soname,{LIBRARY}", "-lpthread"]
    precompiled.compile_own(meter, [tools.cxx, *objects, *link, "-o", LIBRARY], out)
    precompiled.stand_in(meter, LIBRARY, out)
