"""The split routes: one candidate, from its sources to a shared object, part by part.

An extension has up to three parts: main.cpp, the host side of the .cu, and the device side. Each host part is tried
with cheaper headers first, so one difficult part does not make the others dear:

    main.cpp          before the .cu's host side in one unit (plain prototypes only)  ->  alone, with the binding table
                      ->  slim headers and real pybind11  ->  untouched torch/extension.h, the exact stock text
    host side of .cu  slim headers  ->  untouched headers
    device side       nvcc without PyTorch's headers

`SplitBuild.run` returns a Built, or raises Declined (left to stock), FinalRefusal (stock would refuse it too) or OutOfLimits.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dice.kernels.builder.artefacts import NotPrepared
from dice.kernels.builder.binding import BindingRefused
from dice.kernels.builder.compiler import ToolRun, first_error
from dice.kernels.builder.device_build import DeviceBuild
from dice.kernels.builder.final_refusal import NARROWING, FinalRefusals
from dice.kernels.builder.flags import as_lines, standards
from dice.kernels.builder.headers import slim_cuda_header
from dice.kernels.builder.host_unit import DEVICE_CALL, render_host
from dice.kernels.builder.launch_symbols import uncounted_launches
from dice.kernels.builder.main_unit import MainUnit
from dice.kernels.builder.outcome import Built, Declined, FinalRefusal, broken_rule
from dice.kernels.builder.request_sources import sources_of
from dice.kernels.builder.route import Route
from dice.kernels.builder.unknown_flags import accepted_flags
from dice.kernels.source.cuda_source import CudaSource, split_source
from dice.kernels.source.diagnostics import errors, read_gcc
from dice.kernels.source.host_rules import check_host_rules
from dice.kernels.source.lexer import Refuted, SplitRefused

_ROUTES = ("split", "split_pybind", "split_full_headers")
_TABLE, _PYBIND, _FULL = range(3)


class SplitBuild(Route):
    """One candidate's build with host and device code apart."""

    level = _TABLE

    def run(self) -> Built:
        """Build on the cheapest split route that works."""
        try:
            self.sources = sources_of(self.request, self.preprocess)
            tools = self.precompiled.toolchain
            self.flags = accepted_flags(self.request, tools, self.bench)
            place = self.sources.cuda_name, self.sources.cuda_first_line
            self.final = FinalRefusals(self.precompiled, self.bench, *place)
            return self._run()
        except (SplitRefused, NotPrepared) as refused:
            reason = refused.reason if isinstance(refused, SplitRefused) else str(refused)
            raise Declined(f"{_ROUTES[self.level]}: {reason}", tuple(self.fallbacks)) from refused

    def _run(self) -> Built:
        self.write_headers(self.sources.headers)
        self.check_standards()
        split = self._split()
        objects: list[str | Path] = []
        if split is None:
            objects += self._mains()
        else:
            combined = self._combined(split)
            objects += [combined] if combined else [*self._mains(), self._host(split)]
            device = DeviceBuild(self.precompiled, self.final, self.bench)
            objects.append(device.run(split, self.sources, Path(self.bench.folder, objects[-1]), self.flags))
        path = self._link(objects, split is not None)
        return Built(
            path,
            _ROUTES[self.level],
            launches="counted" if split is not None else uncounted_launches(path),
            facts={"module": self.module, "table": self.level == _TABLE},
            fallbacks=tuple(self.fallbacks),
        )

    def _split(self) -> CudaSource | None:
        text = self.sources.cuda
        if text is None:
            return None
        try:
            split = split_source(text, self.preprocess)
            check_host_rules(split)
            return split
        except Refuted as refuted:
            raise broken_rule(refuted, self.sources.cuda_name, self.sources.cuda_first_line) from refuted
        except SplitRefused:
            # main.cpp's verdict is cheaper than a stock build, and so is a plain syntax error.
            for main in self.sources.mains:
                self._check_main(main)
            self.final.check_unsplit(text, alone=self.is_alone(self.sources.headers))
            raise

    def _mains(self) -> list[str]:
        return [self._main(main, f"main_{i}.o") for i, main in enumerate(self.sources.mains)]

    def _combined(self, split: CudaSource) -> str | None:
        """One unit of main.cpp's prototypes, the binding table and the host side; None when they do not fit together."""
        main = self.sources.mains[0] if len(self.sources.mains) == 1 else None
        if main is None or not self.sources.inline or self.flags.main_macros:
            return None
        try:
            if not main.fits_before(split):
                return None
            text = main.with_table(self.module)
        except SplitRefused as refused:
            self._fall(_PYBIND, refused.reason)
            return None
        host = self._host_text(split)
        done = self._compile_host(text + host, self._slim_cuda(split), "combined.o")
        if done.ok:
            return "combined.o"
        found = errors(read_gcc(done.output))
        if not found or found[0].file != self.sources.cuda_name:
            self._check_main(main)
        if found and found[0].file == self.sources.cuda_name:
            self._check_host(split)
        self._fall(self.level, f"one unit: {first_error(done.output)}")
        return None

    def _main(self, main: MainUnit, out: str) -> str:
        """Object of a C++ file by the cheapest way that compiles."""
        macros, flags, include = as_lines(self.flags.main_macros), self.flags.main, self._main_include()
        if self.level == _TABLE:
            try:
                done = self._compile(macros + main.with_table(self.module), "slim_cpp", out, flags, include)
                if done.ok:
                    return out
                reason = first_error(done.output)
            except SplitRefused as refused:
                reason = refused.reason
            self._check_main(main)
            self._fall(_PYBIND, reason)
        text = macros + main.exact(self.module)
        if self.level == _PYBIND:
            done = self._compile(text, "slim_pybind", out, flags, [*include, "-fmax-errors=3"])
            if done.ok:
                return out
            self._check_main(main)
            self._fall(_FULL, first_error(done.output))
        done = self._compile(text, "extension", out, flags, include)
        if not done.ok:
            raise FinalRefusal(done.output, "main.cpp, exactly as stock compiles it")
        return out

    def _check_main(self, main: MainUnit) -> None:
        """Raise FinalRefusal when the exact main.cpp does not compile."""
        text = as_lines(self.flags.main_macros) + main.exact(self.module)
        self.final.check_main(text, standards(self.flags.main), self._main_include())

    def _host_text(self, split: CudaSource, table: bool = True) -> str:
        lines = [f"#define TORCH_EXTENSION_NAME {self.module}"]
        lines += [f"#define {name} 1" for name in self.precompiled.toolchain.half_macros]
        module = self.module if table else None
        text = render_host(split, self.sources.cuda_name, self.sources.cuda_first_line, module)
        return as_lines([*lines, *self.flags.host_macros]) + text

    def _slim_cuda(self, split: CudaSource) -> str:
        name = slim_cuda_header(item.name for item in split.of_kind("include"))
        try:
            self.precompiled.header(name)
        except NotPrepared:
            return "slim_cuda"
        return name

    def _host(self, split: CudaSource) -> str:
        """Object of the host side of the .cu."""
        if self.level < _FULL:
            try:
                text = self._host_text(split)
                done = self._compile_host(text, self._slim_cuda(split), "host.o")
                if done.ok:
                    return "host.o"
                reason = first_error(done.output)
            except BindingRefused as refused:
                reason = refused.reason
            self._check_host(split)
            self._fall(_FULL, reason)
        text = self._host_text(split, table=False)
        for header in ("types_cuda", "extension_cuda"):
            done = self._compile_host(text, header, "host.o")
            if done.ok:
                return "host.o"
        raise SplitRefused(f"host code: {first_error(done.output)}")

    def _check_host(self, split: CudaSource) -> None:
        """Raise FinalRefusal or SplitRefused when the host side does not compile with the untouched headers either."""
        text = self._host_text(split, table=False)
        self.final.check_host(text, split, standards(self.flags.host), self.include_flags(self.flags.folders))

    def _compile(self, text: str, header: str, out: str, flags: Sequence[str], more: Sequence[str | Path]) -> ToolRun:
        """g++ on one unit. Raises OutOfLimits, and FinalRefusal when host code calls a device function."""
        precompiled = self.precompiled.header(header, flags)
        done = self.precompiled.compile_host(self.bench, text, precompiled, out, more)
        if not done.ok and DEVICE_CALL in done.output:
            raise FinalRefusal(done.output, "a rule of CUDA")
        return done

    def _compile_host(self, text: str, header: str, out: str) -> ToolRun:
        """g++ on the host side of the .cu. Raises SplitRefused for narrowing in braces, which nvcc judges otherwise."""
        flags = [*self.include_flags(self.flags.folders), "-Wnarrowing", "-fmax-errors=20"]
        done = self._compile(text, header, out, self.flags.host, flags)
        if done.ok and NARROWING in done.output:
            raise SplitRefused("narrowing in braces")
        return done

    def _link(self, objects: Sequence[str | Path], counts_launches: bool) -> Path:
        flags = list(self.flags.link)
        if flags:
            stock = self.precompiled.toolchain.link_flags("cuda" if self.sources.cuda is not None else "cpp")
            flags += [flag for flag in stock if flag.startswith("-L")]
        done = self.precompiled.link(self.bench, objects, "extension.so", counts_launches=counts_launches, flags=flags)
        if not done.ok:
            if "cannot find -l" in done.output or "multiple definition of" in done.output:
                raise FinalRefusal(done.output, "the linker, on the same objects")
            raise SplitRefused(f"link: {first_error(done.output)}")
        return self.bench.folder / "extension.so"

    def _fall(self, level: int, reason: str) -> None:
        self.fallbacks.append(f"{_ROUTES[self.level]}: {reason}")
        self.level = max(self.level, level)

    def _main_include(self) -> list[str]:
        """`include_flags` for main.cpp, which finds CUDA's headers if the extension has CUDA sources."""
        tools, found = self.precompiled.toolchain, self.include_flags(self.flags.folders)
        with_cuda = tools.backend == "cuda" and (self.sources.cuda is not None or self.request.with_cuda)
        return [*found, "-isystem", str(tools.cuda_home / "include")] if with_cuda else found
