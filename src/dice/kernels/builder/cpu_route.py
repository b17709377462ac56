"""The CPU back end: a candidate's CUDA source as C++ units, and the library that runs them.

    built = CpuBuild(request, module, precompiled, bench).run()

A kernel keeps its meaning (csrc/cpu/include/dice_cpu/launch.h): threads of a block are loops, or fibres where they wait
for each other; blocks are spread over cores. CUDA's headers are our own (csrc/cpu/include), cuBLAS and cuDNN calls go
to PyTorch's CPU operators. What is missing is reported by name, as `unsupported_on_cpu: <what>`, never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from dice.kernels.builder.binding import BindingRefused, table_from_module
from dice.kernels.builder.compiler import ToolRun, first_error
from dice.kernels.builder.cpu_errors import check_rules, declared_by_torch, own_error
from dice.kernels.builder.cpu_static_shared import check_static_shared
from dice.kernels.builder.cpu_toolchain import cpu_header, runtime_library
from dice.kernels.builder.cpu_unsupported import UNKNOWN_PARAMETER, unsupported
from dice.kernels.builder.device_image import readable_names
from dice.kernels.builder.flags import as_lines, standards
from dice.kernels.builder.main_unit import MainUnit
from dice.kernels.builder.outcome import Built, Declined, FinalRefusal, broken_rule
from dice.kernels.builder.request_sources import Sources, sources_of
from dice.kernels.builder.route import Route
from dice.kernels.builder.unknown_flags import accepted_flags
from dice.kernels.cpu.host_rewrite import rewrite_host
from dice.kernels.cpu.rewrite import rewrite_cuda
from dice.kernels.cpu.unsupported import UnsupportedOnCpu
from dice.kernels.source.lexer import Refuted, SplitRefused, matching, tokenize

_HALF = re.compile(
    r"\b(half2?|__\w*half\w*|nv_half2?|__h\w+|h(exp|log|sqrt|rsqrt|rcp|sin|cos|floor|ceil|rint|tanh)\w*)\b"
)
_TOOLKIT = re.compile(r"/cuda(?:-[\d.]+)?(?:/|$)")
"""In the path of a folder with CUDA's own headers, in whose place ours stand."""
_BFLOAT = re.compile(r"bfloat16|bf16|__nv_bfloat")
_NORM = re.compile(r"\br?norm\s*\(")
_TORCH_NAMESPACES = ("at::cuda", "c10::cuda")
_TORCH_CUDA_HEADER = re.compile(r"#\s*include\s*[<\"](?:ATen|c10|torch)/[^>\"]*(?:cuda|cudnn|CUDA)")
_HALF_MACROS = (
    "__CUDA_NO_HALF_OPERATORS__",
    "__CUDA_NO_HALF_CONVERSIONS__",
    "__CUDA_NO_BFLOAT16_CONVERSIONS__",
    "__CUDA_NO_HALF2_OPERATORS__",
)

# GCC calls a function before every access to memory, volatile ones apart: the runtime makes lanes take turns there.
_LOCKSTEP_FLAGS = ("-fsanitize=thread", "--param", "tsan-distinguish-volatile=1", "-U__SANITIZE_THREAD__")

# It calls one at the beginning of every piece of code without a branch: the runtime counts them.
_STEPS_FLAG = "-fsanitize-coverage=trace-pc"


@dataclass(frozen=True)
class CpuUnit:
    """One C++ unit. `flags`: beyond those of the header."""

    text: str
    flags: tuple[str, ...]


class CpuBuild(Route):
    """One candidate's build for the CPU."""

    def run(self) -> Built:
        """Build. Raises Declined (`unsupported_on_cpu: <what>`), FinalRefusal (the candidate's error), OutOfLimits or
        NotPrepared."""
        sources = None
        try:
            self.flags = accepted_flags(self.request, self.precompiled.toolchain, self.bench)
            sources = sources_of(self.request, self.preprocess)
            self.write_headers(sources.headers, rewrite_host)
            self.check_standards()
            if sources.cuda is not None:
                check_rules(sources.cuda, sources.cuda_name, self.preprocess)
            objects, table = self._objects(sources)
            library = runtime_library(self.precompiled)
            return Built(
                self._link(objects, library),
                "cpu",
                launches="none" if sources.cuda is None else "counted",
                facts={"module": self.module, "table": table, "libraries": [str(library)]},
                fallbacks=tuple(self.fallbacks),
            )
        except SplitRefused as refused:
            if sources is not None and (error := self._own_error(sources, refused)) is not None:
                raise error from refused
            raise Declined(f"unsupported_on_cpu: {refused.reason}", tuple(self.fallbacks)) from refused

    def _own_error(self, sources: Sources, refused: SplitRefused) -> FinalRefusal | None:
        """The candidate's own error behind a source that this back end does not take; None when that is not certain."""
        if sources.cuda is None:
            return None
        if isinstance(refused, Refuted):
            return broken_rule(refused, sources.cuda_name)

        def check(unit: str) -> ToolRun:
            text = f"#define TORCH_EXTENSION_NAME {self.module}\n{as_lines(self.flags.host_macros)}{unit}"
            return self._run(text, "full_cpu", "check.o", ["-fsyntax-only", "-Wfatal-errors"])

        return own_error(sources.cuda, sources.cuda_name, check, alone=self.is_alone(sources.headers))

    def _objects(self, sources: Sources) -> tuple[list[str | Path], bool]:
        """Objects of all units, and whether the bindings are a table."""
        if sources.cuda is None:
            return self._mains(sources.mains)
        if not (sources.inline and self._fits(sources)):
            objects, table = self._mains(sources.mains)
            out, with_table = self._unit("", sources)
            return [*objects, out], table and with_table
        main = sources.mains[0]
        try:
            text = rewrite_host(main.with_table(self.module))
        except BindingRefused:
            text = rewrite_host(main.exact(self.module))
        out, table = self._unit(text, sources)
        return [out], table

    def _fits(self, sources: Sources) -> bool:
        """Whether main.cpp may stand before the .cu in one unit: nothing but prototypes and bindings."""
        text = sources.mains[0].text
        tokens = tokenize(text)
        plain = not any(t.text in ("{", "=", "template", "namespace", "using") for t in tokens)
        return plain and not any(t.kind == "directive" and "include" not in t.text for t in tokens)

    def _mains(self, mains: Sequence[MainUnit]) -> tuple[list[str | Path], bool]:
        objects: list[str | Path] = []
        table = True
        for i, main in enumerate(mains):
            macros = as_lines(self.flags.main_macros)
            try:
                text, with_table = main.with_table(self.module), True
            except SplitRefused:
                text, with_table = main.exact(self.module), False
            out, with_table = self._compile(
                macros + rewrite_host(text),
                with_table,
                f"main_{i}.o",
                (),
                macros + rewrite_host(main.exact(self.module)),
            )
            objects.append(out)
            table = table and with_table
        return objects, table

    def _unit(self, main: str, sources: Sources) -> tuple[str, bool]:
        assert sources.cuda is not None
        cuda, table = sources.cuda, "PYBIND11_MODULE(" not in main
        if "PYBIND11_MODULE" in cuda:
            try:
                cuda = _with_module_table(cuda, sources.cuda_name, self.module)
            except SplitRefused:
                table = False
        exact = f"#define TORCH_EXTENSION_NAME {self.module}\n"
        full_main = exact + (rewrite_host(sources.mains[0].exact(self.module)) if main else "")
        unit = self._render(exact + main, sources.cuda_name, cuda)
        full = self._render(full_main, sources.cuda_name, sources.cuda)
        out, table = self._compile(unit.text, table, "cuda.o", unit.flags, full.text)
        if not unit.flags and not self.request.counts_steps:  # instrumented code keeps what is dropped otherwise
            readable = partial(readable_names, self.bench)
            check_static_shared(self.bench.folder / out, sources.cuda, sources.cuda_name, readable)
        return out, table

    def _render(self, main: str, name: str, cuda: str) -> CpuUnit:
        """The unit of `main` (C++ that comes first and sees no CUDA) and the source `cuda`, called `name` in messages.

        Raises SplitRefused.
        """
        macros = self.flags.host_macros
        source = rewrite_cuda(cuda, self.preprocess, assertions=not any("NDEBUG" in line for line in macros))
        lines = [main, '#line 1 "dice_cpu"', *(f"#define {macro}" for macro in _HALF_MACROS), *macros]
        lines.append("#include <dice_cpu/cuda_unit.h>")
        if any("extended-lambda" in flag for flag in self.flags.device):
            lines.append("#define __CUDACC_EXTENDED_LAMBDA__ 1")
        if _HALF.search(cuda):
            lines.append("#include <cuda_fp16.h>")
        if _BFLOAT.search(cuda):
            lines.append("#include <cuda_bf16.h>")
        if _NORM.search(cuda):
            lines.append("#include <dice_cpu/norms.h>")
        lines.append(f"#define DICE_CPU_TRACK DICE_CPU_TRACK_{'INDEX' if source.track_index else 'NOTHING'}")
        kernels = ", ".join(f'"{kernel}"' for kernel in source.kernels)
        lines.append(f"DICE_CPU_KERNELS({kernels})")
        lines += [f'#line 1 "{name}"', source.text]
        flags = _LOCKSTEP_FLAGS if source.lockstep else ()
        return CpuUnit("\n".join(lines) + "\n", flags)

    def _compile(self, text: str, table: bool, out: str, flags: Sequence[str], full: str) -> tuple[str, bool]:
        """Object of `text` with the slim header if it has a table, else of `full`, which says the same with pybind11."""
        include = self.include_flags(folder for folder in self.flags.folders if not _TOOLKIT.search(folder))
        if table:
            # the first error decides; going on to the end of the unit takes four times as long
            done = self._run(text, "slim_cpu", out, [*flags, *include, "-Wfatal-errors"])
            if not done.ok and UNKNOWN_PARAMETER in done.output:
                done = self._run(text, "slim_cpu", out, [*flags, *include, "-fmax-errors=5"])
            if done.ok:
                return out, True
            self._give_up_if_unsupported(done, full)
            self.fallbacks.append(f"cpu: {first_error(done.output)}")
        done = self._run(full, "full_cpu", out, [*flags, *include, "-Wfatal-errors"])
        if not done.ok:
            self._give_up_if_unsupported(done, full)
            raise FinalRefusal(done.output, "g++, with PyTorch's own headers")
        return out, False

    def _run(self, text: str, header: str, out: str, flags: Sequence[str]) -> ToolRun:
        own = self.precompiled.toolchain.standard
        others = [flag for flag in standards(self.flags.host) if flag != own]
        precompiled = self.precompiled.header(cpu_header(self.precompiled, header), others)
        flags = [*flags, _STEPS_FLAG] if self.request.counts_steps else flags
        return self.precompiled.compile_host(self.bench, text, precompiled, out, [*flags, "-I", str(self.bench.folder)])

    def _give_up_if_unsupported(self, done: ToolRun, text: str) -> None:
        """Raises UnsupportedOnCpu, or FinalRefusal where PyTorch's headers would not help either."""
        what = unsupported(done.output)
        if what is None:
            return
        scope, _, name = what.rpartition("::")
        if scope in _TORCH_NAMESPACES:
            own_headers = any(self.bench.folder.rglob("*.h")) or any(self.bench.folder.rglob("*.cuh"))
            if not own_headers and not _TORCH_CUDA_HEADER.search(text):
                raise FinalRefusal(done.output, "a name of a header that the source does not include")
            if not declared_by_torch(name, self.precompiled.toolchain.torch_root / "include"):
                raise FinalRefusal(done.output, "a name that no header of PyTorch's declares")
        raise UnsupportedOnCpu(what)

    def _link(self, objects: Sequence[str | Path], library: Path) -> Path:
        done = self.precompiled.link(self.bench, objects, "extension.so", libraries=[library])
        if not done.ok:
            raise FinalRefusal(done.output, "the linker, on the same objects")
        return self.bench.folder / "extension.so"


def _with_module_table(text: str, name: str, module: str) -> str:
    """The text of the file `name` with its one PYBIND11_MODULE as a binding table. Raises SplitRefused."""
    tokens = tokenize(text)
    places = [i for i, token in enumerate(tokens) if token.text == "PYBIND11_MODULE"]
    if len(places) != 1:
        raise SplitRefused("two modules in one extension")
    brace = matching(tokens, places[0] + 1) + 1
    start, end = tokens[places[0]].start, tokens[matching(tokens, brace)].end
    line = text.count("\n", 0, end) + 1
    table = table_from_module(text[start:end], module)
    return f'{text[:start]}\n{table}#line {line} "{name}"\n{text[end:]}'
