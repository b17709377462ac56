"""What is compiled once per machine and toolchain: precompiled headers, the support library, the launch counter.

    precompiled = Precompiled(toolchain, folder)         # folder: in the build cache, one per fingerprint
    flags = precompiled.header("slim_cuda")              # built under a file lock the first time, by one process
    precompiled.compile_host(bench, text, flags, "unit.o")      # g++ on one unit that starts from it
    precompiled.link(bench, [...], "unit.so")                   # as stock links, minus what is not needed

A unit that starts from a header gets its flags and may not change them; macros such as TORCH_EXTENSION_NAME are
defined in its text. When a header cannot be made (a PyTorch whose headers have another shape), `NotPrepared` says why,
the failure is remembered, and the builder takes the next route.

Other modules may add headers of their own: `precompiled.header(HeaderSpec(name, text, ...))`; the CPU back end does.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

from pydantic import TypeAdapter

from dice.kernels.builder.artefacts import LIMITS, Artefacts, NotPrepared, PrepareReport
from dice.kernels.builder.bodies import bodies as taken
from dice.kernels.builder.bodies import function_name, without_bodies
from dice.kernels.builder.compiler import Meter, ToolJail, ToolRun, Workbench, first_error
from dice.kernels.builder.headers import CSRC, CUDA_EXTRAS, HEADERS, HeaderSpec, files_digest, source_digest
from dice.kernels.builder.one_text import in_long_lines, included_files, neighbours, says_once
from dice.kernels.builder.slim_headers import cuda_host_headers, slim_headers
from dice.kernels.builder.toolchain import Toolchain
from dice.kernels.builder.vocabulary import Vocabulary, device_headers, read_vocabulary

_WRAPPED = (
    "__cudaRegisterFunction",
    "cudaLaunchKernel",
    "cudaLaunchCooperativeKernel",
    "cudaLaunchKernelExC",
    "__cudaGetKernel",
    "__cudaLaunchKernel",
)
_SUPPORT_OBJECTS = ("binding.o", "clocks.o", "functions.o", "bodies.o")
_TORCH = "#include <torch/types.h>\n#include <torch/extension.h>\n#include <c10/util/Logging.h>\n"
"""PyTorch for units that start from a slim header. Logging.h: the slim headers do not reach it, PyTorch's do; macros such as
AT_CUDNN_CHECK use it."""
_TORCH_INCLUDE = re.compile(r"^#include <(?:torch|c10)/.*>\n", re.MULTILINE)
"""In the text of a header: what is read as one text (one_text.py)."""
HIDE_ARCHIVES = "-Wl,--exclude-libs,ALL"
"""Where g++ takes its own library from an archive, that copy must serve nobody else: cuDNN called into it and crashed."""
_FIRST_HEADER = "slim_cuda"
_LIBRARY = ("_ZNSt", "_ZNKSt", "_ZSt", "_ZN9__gnu_cxx", "_ZNK9__gnu_cxx")
"""Beginnings of the standard library's symbols: the support library shows those alone that units lack."""
_NO_LINES = ("-fno-diagnostics-show-caret",)
"""A line of the headers that a message is about has a megabyte; no line of a candidate is shown, whose file g++ has not."""
_STAND_INS = "link"
_OWN_LIBRARY, _OWN_SONAME = "libstdc++.so", "libstdc++.so.6"
_EXPORTS = "exports.map"
_FUNCTIONS = "functions.txt"
_CANARY = "read from the precompiled header"


class Precompiled(Artefacts):
    """Artefacts of one toolchain in one folder; safe for many processes. `jail`: where compilers run."""

    def __init__(self, toolchain: Toolchain, folder: Path, jail: ToolJail) -> None:
        super().__init__(folder, jail)
        self.toolchain = toolchain
        self.host_folder = folder.with_name(f"host-{toolchain.host_fingerprint}")
        """For what is the same with either back end."""
        self._vocabulary: Vocabulary | None = None

    def prepare(self, jobs: int | None = None, *, everything: bool = False) -> PrepareReport:
        """Make what every build needs, `jobs` at a time; the rest is made by the first build that needs it.

        `everything`: make the rest now, so that no build waits for it. Failures are reported, not raised.
        """
        started = time.monotonic()
        tasks: list[Callable[[], object]] = [self.support_library]
        if self.toolchain.backend == "cuda":  # cpu_route.py has its own headers
            names = list(HEADERS) if everything else [_FIRST_HEADER]
            tasks += [lambda name=name: self.header(name) for name in names]
            tasks += [self.launch_object, *([self.vocabulary] if everything else [])]
        for outcome in self.side_by_side(tasks, jobs):
            if isinstance(outcome, NotPrepared):
                self.report.failures[str(outcome).split(":")[0]] = str(outcome)
        self.report.seconds = time.monotonic() - started
        return self.report

    def header(self, name: str | HeaderSpec, flags: Sequence[str] = ()) -> tuple[str, ...]:
        """The flags of a unit that starts from the precompiled header `name` of HEADERS (or any other spec), `flags` among
        them. Raises NotPrepared."""
        spec = HEADERS[name] if isinstance(name, str) else name
        spec = replace(spec, flags=(*spec.flags, *flags))
        folder = self.artefact(f"headers/{spec.key}", lambda out, meter: self._make_header(spec, out, meter))
        return (*self._header_flags(spec), "-include", str(folder / "header.h"))

    def slim_folder(self) -> Path:
        """The slim headers. Raises NotPrepared."""
        return self.artefact(f"slim-{source_digest('slim_headers.py')}", self._make_slim)

    def torch_folder(self, spec: HeaderSpec) -> Path:
        """PyTorch's headers with the flags of `spec` as one text (one_text.py): the slim ones, without bodies of inline
        functions (bodies.py), or those that it includes. Raises NotPrepared."""
        flags = (*self._torch_flags(spec), *self.toolchain.cxx_flags(spec.kind), *spec.flags)
        text = _TORCH if spec.slim else "".join(_TORCH_INCLUDE.findall(spec.text))
        digest = hashlib.sha256("\0".join((text, *flags)).encode()).hexdigest()[:12]
        ours = map(source_digest, ("one_text.py", "bodies.py", "precompiled.py"))
        name = "-".join(("declared" if spec.slim else "torch", *ours, digest))
        return self.artefact(name, partial(self._make_torch, text, flags, spec.slim))

    def support_library(self) -> Path:
        """`libdice_support.so`: the binding's runtime, and functions that the slim headers only declare."""
        ours = map(source_digest, ("slim_headers.py", "precompiled.py", "bodies.py"))
        digests = "-".join((files_digest(CSRC / "extension"), *ours))
        objects = self.artefact(f"objects-{digests}", self._make_support_objects, self.host_folder)
        return self.artefact(f"support-{digests}", partial(self._make_support, objects)) / "libdice_support.so"

    def launch_object(self) -> Path:
        """Object file with the launch counter and the registration of device images (csrc/extension/launch.cpp)."""
        name = f"launch-{files_digest(CSRC / 'extension')}-{source_digest('precompiled.py')}"
        return self.artefact(name, self._make_launch) / "launch.o"

    def vocabulary(self) -> Vocabulary:
        """What the units of the split routes lack (backend cuda). Raises NotPrepared."""
        if self._vocabulary is None:
            ours = map(source_digest, ("vocabulary.py", "headers.py", "precompiled.py"))
            name = "-".join(("vocabulary", files_digest(CSRC / "extension"), *ours))
            folder = self.artefact(name, self._make_vocabulary)
            self._vocabulary = TypeAdapter(Vocabulary).validate_json((folder / "words.json").read_bytes())
        return self._vocabulary

    def compile_host(
        self,
        bench: Workbench,
        text: str,
        header: Sequence[str],
        out: str,
        flags: Sequence[str | Path] = (),
    ) -> ToolRun:
        """Compile the unit `text` to the file `out`; `-fsyntax-only` in `flags` leaves none. `header`: flags of the one that
        it starts from. Raises OutOfLimits."""
        source = bench.folder / Path(out).with_suffix(".cpp")
        source.write_text(text, encoding="utf-8")
        return bench.run([self.toolchain.cxx, *header, *_NO_LINES, *flags, "-c", source.name, "-o", out])

    def link(
        self,
        bench: Workbench,
        objects: Sequence[str | Path],
        out: str,
        *,
        counts_launches: bool = False,
        libraries: Sequence[Path] = (),
        flags: Sequence[str] = (),
    ) -> ToolRun:
        """Link the shared object `out`, which needs the support library and `libraries`, those that have a stand-in.

        PyTorch's libraries come in through the support library's own needs. Raises OutOfLimits.
        """
        command: list[str | Path] = [self.toolchain.cxx, "-shared", *objects]
        if counts_launches:
            command += [self.launch_object(), *wrap_flags()]
        needed = [library.parent / _STAND_INS / library.name for library in (*libraries, self.support_library())]
        command += ["-L", needed[-1].parent, "-Wl,--push-state,--no-as-needed", *needed, "-Wl,--pop-state"]
        return bench.run([*command, HIDE_ARCHIVES, *flags, "-o", out])

    def cuda_folder(self) -> Path:
        """Headers of CUDA and PyTorch whose host code (`cudaMemcpyToSymbol<T>`, ...) does not wait for nvcc."""
        return self.artefact(f"cuda-{source_digest('slim_headers.py')}", self._make_cuda)

    def _header_flags(self, spec: HeaderSpec) -> tuple[str, ...]:
        flags = spec.include_flags
        if _TORCH_INCLUDE.search(spec.text):
            flags += ["-isystem", str(self.torch_folder(spec))]
        return (*flags, *self._torch_flags(spec), *self.toolchain.cxx_flags(spec.kind), *spec.flags)

    def _torch_flags(self, spec: HeaderSpec) -> list[str]:
        """-isystem for the folders whose headers stand in the place of installed ones."""
        folders = [self.cuda_folder()] if spec.kind == "cuda" else []
        folders += [self.slim_folder()] if spec.slim else []
        return [word for folder in folders for word in ("-isystem", str(folder))]

    def stand_in(self, meter: Meter, library: str, out: Path, soname: str = "") -> None:
        """Make what is linked in the place of `library`: one of its name, or of `soname`, without symbols or needs.

        The linker would read all of PyTorch otherwise, 0.1 s a build, and g++'s own library, 0.03; the loader finds the
        symbols all the same, since the support library needs both.
        """
        folder = out / _STAND_INS
        folder.mkdir(exist_ok=True)
        (folder / "nothing.cpp").touch()
        flags = ["-shared", "-nostdlib", f"-Wl,-soname,{soname or library}"]
        self.compile_own(meter, [self.toolchain.cxx, *flags, "nothing.cpp", "-o", library], folder)

    def _own_library_is_shared(self, out: Path, meter: Meter) -> bool:
        """Whether g++ links its own library as the process has it. From an archive an extension takes what it needs."""
        found = self.try_own(meter, [self.toolchain.cxx, f"-print-file-name={_OWN_LIBRARY}"], out).output
        return "/" in found

    def _make_slim(self, out: Path, _: Meter) -> None:
        slim = slim_headers(self.toolchain.torch_root / "include")
        write_files(out, slim.files.items())
        (out / "support_functions.cpp").write_text(slim.support)

    def _make_cuda(self, out: Path, _: Meter) -> None:
        torch_include = self.toolchain.torch_root / "include"
        write_files(out, cuda_host_headers(self.toolchain.cuda_home / "include", torch_include).items())

    def _make_torch(self, includes: str, flags: Sequence[str], slim: bool, out: Path, meter: Meter) -> None:
        text = self._preprocessed(includes, flags, out, meter)
        installed = self.toolchain.torch_root / "include"
        roots = [installed / "torch" / "csrc" / "api" / "include", installed]
        folders = [*(Path(folder) for word, folder in pairwise(flags) if word == "-isystem"), *roots]
        read = included_files(text, folders).items()
        held = [name for name, path in read if says_once(path.read_text(errors="replace"))]
        files = dict.fromkeys(held, "#pragma once\n#include <torch/types.h>\n")
        if slim:
            defined = (self.support_library().parent / _FUNCTIONS).read_text().splitlines()
            text = without_bodies(text, frozenset(defined))
        files["torch/types.h"] = "#pragma once\n" + in_long_lines(text)
        write_files(out, files.items())
        # Others read those that stand beside them, so these have to be in one folder. With their times, by which g++ knows
        # a header that it has read.
        for root in roots:
            for path in root.rglob("*.h"):
                beside = neighbours(path)
                for file in (path, *beside) if beside else ():
                    copy = out / os.path.relpath(file, root)
                    if file.is_relative_to(root) and not copy.exists():
                        copy.parent.mkdir(parents=True, exist_ok=True)
                        shutil.copy2(file, copy)

    def _preprocessed(self, includes: str, flags: Sequence[str | Path], out: Path, meter: Meter) -> str:
        """What `includes` reads, with macros, in one text; files of its own in `out` are gone again."""
        (out / "torch.h").write_text(includes)
        command = [self.toolchain.cxx, *flags, "-E", "-dD", "-x", "c++-header", "torch.h", "-o", "torch.ii"]
        self.compile_own(meter, command, out)
        text = (out / "torch.ii").read_text()
        (out / "torch.h").unlink()
        (out / "torch.ii").unlink()
        return text

    def _symbols(self, library: str, words: Sequence[str], out: Path, meter: Meter) -> list[tuple[str, str]]:
        """What the file `library` in `out` defines: each symbol, and the name of its function as `bodies` says it."""
        listed = []
        for name, readable in (("symbols", ()), ("names", ("-C",))):
            command = 'file="$1"; shift; exec "$@" > "$file"'
            nm = ("nm", "-p", "--defined-only", *words, *readable, library)
            self.compile_own(meter, ["/bin/sh", "-c", command, "sh", name, *nm], out)
            listed.append([line.split(" ", 2)[2] for line in (out / name).read_text().splitlines()])
            (out / name).unlink()
        return [(symbol, function_name(readable)) for symbol, readable in zip(*listed, strict=True)]

    def _make_header(self, spec: HeaderSpec, out: Path, meter: Meter) -> None:
        # GCC silently reads header.h when header.h.gch does not fit; then this line speaks.
        (out / "header.h").write_text('#error "the precompiled header does not fit this compiler call"\n')
        (out / "source.h").write_text(spec.text)
        command = [self.toolchain.cxx, *self._header_flags(spec), "-x", "c++-header", "source.h", "-o", "header.h.gch"]
        self.compile_own(meter, command, out)
        # Where the header fits, a unit is read from it. This one ends before the templates that a header leaves to the end
        # of every unit: they take 20 s behind untouched PyTorch.
        (out / "canary.cpp").write_text(f'#error "{_CANARY}"\n')
        include = ("-include", str(out / "header.h"))
        flags = (*self._header_flags(spec), *include, "-Wfatal-errors", "-fsyntax-only")
        said = self.try_own(meter, [self.toolchain.cxx, *flags, "canary.cpp"], out).output
        if _CANARY not in said:
            raise NotPrepared(f"the precompiled header cannot be used: {first_error(said)}")

    def _make_vocabulary(self, out: Path, meter: Meter) -> None:
        tools = self.toolchain
        stock = HEADERS["extension_cuda"].text
        # A header whose own needs are not installed is left out.
        for name in CUDA_EXTRAS:
            (out / "try.cpp").write_text(f"#include <{name}>\n")
            if meter.run([tools.cxx, *tools.cxx_flags("cuda"), "-M", "try.cpp", "-o", "try.d"], out, LIMITS).ok:
                stock += f"#include <{name}>\n"
        include = HEADERS["extension_cuda"].include_flags
        gcc = [tools.cxx, *tools.cxx_flags("cuda"), *include, "-E", "-dD"]
        nvcc = [tools.nvcc, *tools.nvcc_flags, tools.standard, *include, "-E", "-Xcompiler", "-dD"]

        def preprocessed(name: str, source: str, command: Sequence[str]) -> str:
            (out / name).write_text(source)
            self.compile_own(meter, [*command, name, "-o", "words.ii"], out)
            return (out / "words.ii").read_text(errors="replace")

        by_nvcc = preprocessed("stock.cu", stock, nvcc)
        device = "".join(f"#include <{name}>\n" for name in sorted(device_headers(by_nvcc)))
        words = read_vocabulary(
            by_nvcc,
            preprocessed("bare.cu", "", nvcc),
            preprocessed("device.cu", device, nvcc),
            preprocessed("host.cpp", stock, gcc),
        )
        (out / "words.ii").unlink()
        (out / "words.json").write_bytes(TypeAdapter(Vocabulary).dump_json(words))

    def _make_support_objects(self, out: Path, meter: Meter) -> None:
        tools = self.toolchain
        flags = [*tools.cxx_flags("cpp"), "-O1", "-I", str(CSRC / "extension"), "-DTORCH_EXTENSION_NAME=dice_support"]
        functions = self.slim_folder() / "support_functions.cpp"
        (out / "bodies.cpp").write_text(_TORCH)
        emit_all = ("-O0", "-fkeep-inline-functions", "-ffunction-sections", "bodies.cpp")
        binding, clocks, own, bodies = _SUPPORT_OBJECTS
        sources: dict[str, tuple[str | Path, ...]] = {
            binding: (CSRC / "extension" / "binding.cpp",),
            clocks: (CSRC / "extension" / "clocks.cpp",),
            own: (functions,),
            bodies: emit_all,
        }
        before = {bodies: ("-isystem", self.slim_folder())}
        commands = [[tools.cxx, *before.get(o, ()), *flags, "-c", *sources[o], "-o", o] for o in sources]
        self.compile_side_by_side(meter, commands, out)
        text = self._preprocessed(_TORCH, [*before[bodies], *tools.cxx_flags("cpp")], out, meter)
        gone = {body.name for body in taken(text)}
        exported = [symbol for symbol, name in self._symbols(bodies, (), out, meter) if name in gone]
        of_library = [f"{symbol};" for symbol in exported if symbol.startswith(_LIBRARY)]
        hidden = " ".join(f"{prefix}*;" for prefix in _LIBRARY)
        (out / _EXPORTS).write_text("\n".join(("{ global:", *of_library, f"local: {hidden} }};\n")))

    def _make_support(self, objects: Path, out: Path, meter: Meter) -> None:
        tools = self.toolchain
        link = tools.link_flags("cuda" if tools.backend == "cuda" else "cpp")
        flags = ["-Wl,-soname,libdice_support.so", f"-Wl,--version-script={objects / _EXPORTS}", "-Wl,--gc-sections"]
        command = [tools.cxx, *(objects / name for name in _SUPPORT_OBJECTS), "-Wl,--no-as-needed", *link, *flags]
        self.compile_own(meter, [*command, HIDE_ARCHIVES, "-o", "libdice_support.so"], out)
        self.stand_in(meter, "libdice_support.so", out)
        if self._own_library_is_shared(out, meter):
            self.stand_in(meter, _OWN_LIBRARY, out, _OWN_SONAME)
        names = {name for _, name in self._symbols("libdice_support.so", ("-D",), out, meter)}
        (out / _FUNCTIONS).write_text("\n".join(sorted(names)))

    def _make_launch(self, out: Path, meter: Meter) -> None:
        flags = ["-O2", "-fPIC", "-std=c++17", *self.toolchain.include_flags]
        self.compile_own(
            meter, [self.toolchain.cxx, *flags, "-c", CSRC / "extension" / "launch.cpp", "-o", "launch.o"], out
        )


def write_files(folder: Path, files: Iterable[tuple[str, str]]) -> None:
    """Write texts to their paths below `folder`."""
    for name, text in files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def wrap_flags() -> list[str]:
    """Linker flags that lead launches and registrations through csrc/extension/launch.cpp."""
    return [f"-Wl,--wrap={name}" for name in _WRAPPED]
