"""What the routes of a fast build have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from dice.kernels.builder.compiler import Workbench
from dice.kernels.builder.flags import BuildFlags, standards
from dice.kernels.builder.precompiled import Precompiled, write_files
from dice.kernels.builder.preprocessor import expanded
from dice.kernels.builder.unknown_flags import check_standard
from dice.kernels.records.extension import ExtensionRequest, SourceFile
from dice.kernels.source.macros import Preprocess


@dataclass
class Route:
    """One candidate's build. `module`: the name compiled into the object."""

    request: ExtensionRequest
    module: str
    precompiled: Precompiled
    bench: Workbench
    flags: BuildFlags = field(init=False)
    """Those of the request, from the beginning of `run` on."""
    fallbacks: list[str] = field(default_factory=list)
    """Why each way that was tried first did not do."""

    @property
    def preprocess(self) -> Preprocess:
        """The compiler's preprocessor, for texts of this build."""
        return partial(expanded, self.precompiled.toolchain.cxx, self.bench)

    def write_headers(self, headers: Iterable[SourceFile], render: Callable[[str], str] = str) -> None:
        """Put the candidate's own headers into the folder, each as `render` makes it."""
        write_files(self.bench.folder, ((file.name, render(file.text)) for file in headers))

    def include_flags(self, folders: Iterable[str]) -> list[str]:
        """-I for the request's include folders (relative: in the folder of the build), and for these."""
        paths = (self.bench.folder / path for path in (*self.request.extra_include_paths, *folders))
        return [word for path in paths for word in ("-I", str(path))]

    def is_alone(self, headers: Sequence[SourceFile]) -> bool:
        """Whether no header, folder or macro of the candidate's own stands before its .cu. `headers`: those not pasted in."""
        return not (headers or self.request.extra_include_paths or self.flags.folders or self.flags.host_macros)

    def check_standards(self) -> None:
        """Raise FinalRefusal when PyTorch's headers do not compile under a C++ standard of the flags."""
        for standard in set(standards((*self.flags.main, *self.flags.host))):
            check_standard(standard, self.precompiled.toolchain, self.bench)
