"""What the routes of a fast build have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

from dice.kernels.builder.compiler import Workbench
from dice.kernels.builder.flags import BuildFlags
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
    fallbacks: list[str] = field(default_factory=list)
    """Why each way that was tried first did not do."""

    @property
    def preprocess(self) -> Preprocess:
        """The compiler's preprocessor, for texts of this build."""
        return partial(expanded, self.bench)

    def write_headers(self, headers: Iterable[SourceFile], render: Callable[[str], str] = str) -> None:
        """Put the candidate's own headers into the folder, each as `render` makes it."""
        write_files(self.bench.folder, ((file.name, render(file.text)) for file in headers))

    def check_standards(self, flags: BuildFlags) -> None:
        """Raise FinalRefusal when PyTorch's headers do not compile under a C++ standard of the flags."""
        for standard in {flag for flag in (*flags.main, *flags.host) if flag.startswith("-std=")}:
            check_standard(standard, self.precompiled.toolchain, self.bench)
