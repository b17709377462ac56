"""The CPU back end: a candidate's CUDA source as one C++ unit, and the library that runs it.

    unit = render_unit(main_text, [("cuda.cu", cuda_text)], flags)    # raises UnsupportedOnCpu, SplitRefused
    unit.text                       # for g++, from the header `CPU_HEADER`
    runtime = CpuRuntime(precompiled).library()     # libdice_cpu.so, compiled once per machine; objects link to it
    unsupported(compiler_output)    # what a failed compilation lacked of CUDA, or None: the candidate's own error

A kernel keeps its meaning (csrc/cpu/include/dice_cpu/launch.h): threads of a block are loops, or fibres where they wait
for each other; blocks are spread over cores. CUDA's headers are our own (csrc/cpu/include), cuBLAS and cuDNN calls go
to PyTorch's CPU operators. What is missing is reported by name, as `unsupported_on_cpu: <what>`, never guessed.
"""

from __future__ import annotations

import functools
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dice.kernels.compiler import Meter
from dice.kernels.cpu_rewrite import CpuSource, UnsupportedOnCpu, rewrite_cuda, rewrite_host
from dice.kernels.precompiled import CSRC, HeaderSpec, Precompiled, files_digest

CPU_CSRC = CSRC / "cpu"
_HALF = re.compile(r"\b(half2?|__\w*half\w*|nv_half2?|__h\w+|h(exp|log|sqrt|rsqrt|rcp|sin|cos|floor|ceil|rint|tanh)\w*)\b")
_BFLOAT = re.compile(r"bfloat16|bf16|__nv_bfloat")
_HALF_MACROS = (
    "__CUDA_NO_HALF_OPERATORS__",
    "__CUDA_NO_HALF_CONVERSIONS__",
    "__CUDA_NO_BFLOAT16_CONVERSIONS__",
    "__CUDA_NO_HALF2_OPERATORS__",
)


@functools.cache
def machine_flags() -> tuple[str, ...]:
    """Instruction set for g++: with masked vector stores where this computer has them, else the compiler's default."""
    if platform.machine() != "x86_64":
        return ()
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return ()
    flags = set(re.findall(r"^flags\s*:(.*)$", text, re.MULTILINE)[:1] and text.split("flags", 1)[1].split("\n")[0].split())
    return ("-march=x86-64-v3",) if {"avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "abm"} <= flags else ()


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
# GCC calls a function before every access to memory, volatile ones apart: the runtime makes lanes take turns there.
LOCKSTEP_FLAGS = ("-fsanitize=thread", "--param", "tsan-distinguish-volatile=1", "-U__SANITIZE_THREAD__")


def cpu_header() -> HeaderSpec:
    """The precompiled header of CPU units: PyTorch slim, the binding table, CUDA's built-ins."""
    return HeaderSpec(
        "slim_cpu",
        '#include <torch/types.h>\n#include <torch/extension.h>\n#include <c10/util/Logging.h>\n#include "binding.h"\n#include <cuda_runtime.h>\n',
        flags=(*COMPILE_FLAGS, *machine_flags()),
        includes=(CPU_CSRC / "include", CSRC / "extension"),
    )


@dataclass(frozen=True)
class CpuUnit:
    """One C++ unit. `flags`: beyond those of the header. `kernels`: names, in the order of the launch table."""

    text: str
    flags: tuple[str, ...]
    kernels: tuple[str, ...]


def render_unit(
    main: str, sources: Sequence[tuple[str, str]], cuda_flags: Sequence[str] = (), *, race_check: bool = False
) -> CpuUnit:
    """The unit of `main` (C++ with the bindings; it comes first and sees no CUDA) and CUDA `sources` (name, text).

    `cuda_flags`: the candidate's own flags for nvcc, of which macros count. `race_check`: instrumented, fibres only.
    Raises UnsupportedOnCpu and SplitRefused.
    """
    undefined = {flag[2:] for flag in cuda_flags if flag.startswith("-U")}
    defined = [flag[2:] for flag in cuda_flags if flag.startswith("-D")]
    kernels: list[str] = []
    rewritten: list[tuple[str, CpuSource]] = []
    for name, text in sources:
        source = rewrite_cuda(
            text, kernel_offset=len(kernels), fibres_always=race_check, assertions="NDEBUG" not in defined
        )
        kernels += source.kernels
        rewritten.append((name, source))
    everything = "\n".join(text for _, text in sources)
    lines = [rewrite_host(main), '#line 1 "dice_cpu"']
    lines += [f"#define {macro}" for macro in _HALF_MACROS if macro not in undefined]
    lines += [f"#define {name} {value or '1'}" for name, _, value in (item.partition("=") for item in defined)]
    lines.append("#include <dice_cpu/cuda_unit.h>")
    if _HALF.search(everything):
        lines.append("#include <cuda_fp16.h>")
    if _BFLOAT.search(everything):
        lines.append("#include <cuda_bf16.h>")
    track = "INDEX" if any(source.track_index for _, source in rewritten) else "NOTHING"
    lines.append(f"#define DICE_CPU_TRACK DICE_CPU_TRACK_{track}")
    entries = ", ".join(f'{{"{kernel}"}}' for kernel in kernels)
    lines.append(f"DICE_CPU_LAUNCH_TABLE({max(len(kernels), 1)}, {entries})" if kernels else "DICE_CPU_NO_LAUNCHES")
    for name, source in rewritten:
        lines += [f'#line 1 "{name}"', source.text]
    flags = LOCKSTEP_FLAGS if race_check or any(source.lockstep for _, source in rewritten) else ()
    return CpuUnit("\n".join(lines) + "\n", flags, tuple(kernels))


class CpuRuntime:
    """The library behind all CPU objects: scheduler, runtime API, cuBLAS and cuDNN."""

    def __init__(self, precompiled: Precompiled) -> None:
        self.precompiled = precompiled

    def library(self) -> Path:
        """`libdice_cpu.so`, compiled the first time (about a minute of CPU). Raises NotPrepared."""
        name = f"cpu-{files_digest(CPU_CSRC)}"
        return self.precompiled._artefact(name, self._make) / "libdice_cpu.so"

    def _make(self, out: Path, meter: Meter) -> None:
        tools = self.precompiled.toolchain
        flags = [*tools.cxx_flags("cpp"), "-O2", "-fvisibility=hidden", "-fno-gnu-unique", *machine_flags()]
        objects = []
        for source in sorted((CPU_CSRC / "runtime").glob("*.cpp")):
            command = [tools.cxx, *flags, "-I", CPU_CSRC / "include", "-c", source, "-o", f"{source.stem}.o"]
            self.precompiled._run(meter, command, out)
            objects.append(f"{source.stem}.o")
        link = [*tools.link_flags("cpp"), "-Wl,-soname,libdice_cpu.so", "-lpthread"]
        self.precompiled._run(meter, [tools.cxx, *objects, *link, "-o", "libdice_cpu.so"], out)


_STATED = re.compile(r"unsupported_on_cpu: ([^\n\"]+)")
_MISSING_HEADER = re.compile(r"fatal error: ([\w./-]+): No such file")
_TOOLKIT_HEADER = re.compile(
    r"^(cub|thrust|cuda|cute|cutlass|nv|cooperative_groups)/|^(cu(fft|rand|sparse|solver|file|Complex)|npp|nvml|nvrtc|nvjpeg|"
    r"mma|nccl|texture|surface|cuda_(pipeline|awbarrier|fp8|fp6|fp4|gl_interop))\w*\.h$|^(ATen|c10|torch)/.*(cuda|cudnn|CUDA)"
)
_UNKNOWN_NAME = re.compile(r"error: ‘?'?(?:struct |class |enum )?([\w:]+)[’'](?: was not declared| has not been declared| does not name a type| is not a member)")
_MEMBER_OF = re.compile(r"error: ['‘](\w+)['’] (?:is not a member of|has not been declared in) ['‘]([\w:]+)['’]")
_CUDA_NAME = re.compile(
    r"^(cuda[A-Z]\w+|cu[A-Z]\w+|cublas\w+|CUBLAS\w+|cudnn\w+|CUDNN\w+|curand\w*|CURAND\w+|cusparse\w+|cusolver\w+|cufft\w+|nccl\w+|"
    r"__nv_\w+|__viadd\w+|__vi(max|min|bmax|bmin)\w+|tex[123]D\w*|surf[123]D\w*|__cluster\w*|cub|thrust|nvcuda|wmma|cooperative_groups)$"
)
_CUDA_NAMESPACE = re.compile(r"^(at::cuda|c10::cuda|cub|thrust|nvcuda|cooperative_groups|cuda)(::|$)")


def unsupported(output: str) -> str | None:
    """What of CUDA a failed g++ run missed, by its messages; None when the error is the candidate's own."""
    if match := _STATED.search(output):
        return match.group(1).strip()
    if (match := _MISSING_HEADER.search(output)) and _TOOLKIT_HEADER.search(match.group(1)):
        return f"<{match.group(1)}>"
    first = next((line for line in output.splitlines() if "error:" in line), "")
    if (match := _MEMBER_OF.search(first)) and _CUDA_NAMESPACE.match(match.group(2)):
        return f"{match.group(2)}::{match.group(1)}"
    if (match := _UNKNOWN_NAME.search(first)) and _CUDA_NAME.match(match.group(1).split("::")[-1]):
        return match.group(1)
    return None


__all__ = [
    "CpuRuntime",
    "CpuUnit",
    "UnsupportedOnCpu",
    "cpu_header",
    "machine_flags",
    "render_unit",
    "unsupported",
]
