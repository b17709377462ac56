"""The headers that are precompiled: what each includes, whose flags it takes, and the digests that name its folder."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

CSRC = Path(__file__).parent / "csrc"


@dataclass(frozen=True)
class HeaderSpec:
    """A header to precompile.

    text: what it includes. slim: search the slim headers before PyTorch's. kind: whose stock flags it takes
    (`cuda` adds the toolkit's include folder). flags: further flags, part of its identity (`-O3`, ...).
    includes: folders searched first, for headers of ours.
    """

    name: str
    text: str
    slim: bool = True
    kind: Literal["cpp", "cuda"] = "cpp"
    flags: tuple[str, ...] = ()
    includes: tuple[Path, ...] = ()

    @property
    def include_flags(self) -> list[str]:
        """-I for the folders that are searched first."""
        return [word for folder in self.includes for word in ("-I", str(folder))]

    @property
    def key(self) -> str:
        """Folder name."""
        data = json.dumps([self.text, self.slim, self.kind, self.flags, files_digest(*self.includes)])
        data += source_digest("slim_headers.py") if self.slim or self.kind == "cuda" else ""
        data += source_digest("bodies.py") if self.slim else ""
        data += source_digest("one_text.py") + source_digest("precompiled.py")  # as what it includes
        return f"{self.name}-{hashlib.sha256(data.encode()).hexdigest()[:12]}"


# Headers that candidates often include, each precompiled behind slim_cuda: used only for sources that include it.
CUDA_EXTRAS = ("ATen/cuda/CUDAContext.h", "c10/cuda/CUDAGuard.h", "c10/cuda/CUDACachingAllocator.h")
_BUILD = (CSRC / "extension",)
_CUDA = "#include <cuda.h>\n#include <cuda_runtime.h>\n"
_SLIM_CUDA = f'#include <torch/types.h>\n{_CUDA}#include <torch/extension.h>\n#include "binding.h"\n#include "host.h"\n'
HEADERS: dict[str, HeaderSpec] = {
    spec.name: spec
    for spec in (
        # Host part of a .cu, main.cpp's table included; main.cpp alone; main.cpp with real pybind11.
        HeaderSpec("slim_cuda", _SLIM_CUDA, kind="cuda", includes=_BUILD),
        *(
            HeaderSpec(
                f"slim_cuda_{i}",
                f"{_SLIM_CUDA}#include <{extra}>\n",
                kind="cuda",
                includes=_BUILD,
            )
            for i, extra in enumerate(CUDA_EXTRAS)
        ),
        HeaderSpec("slim_cpp", '#include <torch/extension.h>\n#include "binding.h"\n', includes=_BUILD),
        HeaderSpec(
            "slim_pybind",
            "#include <torch/extension.h>\n#include <torch/csrc/utils/pybind.h>\n#include <torch/csrc/Exceptions.h>\n",
        ),
        # Untouched headers.
        HeaderSpec(
            "types_cuda",
            f'#include <torch/types.h>\n{_CUDA}#include "host.h"\n',
            slim=False,
            kind="cuda",
            includes=_BUILD,
        ),
        HeaderSpec("extension", "#include <torch/extension.h>\n", slim=False),
        HeaderSpec(
            "extension_cuda",
            f'#include <torch/types.h>\n{_CUDA}#include <torch/extension.h>\n#include "host.h"\n',
            slim=False,
            kind="cuda",
            includes=_BUILD,
        ),
    )
}


def source_digest(module: str) -> str:
    """Digest of one of our modules, for what it makes."""
    return hashlib.sha256(Path(__file__).with_name(module).read_bytes()).hexdigest()[:12]


@functools.cache
def files_digest(*folders: Path) -> str:
    """Digest of the contents of all files in `folders`, which do not change while a process runs."""
    digest = hashlib.sha256()
    for folder in folders:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            digest.update(f"{folder.name}/{path.relative_to(folder)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def slim_cuda_header(included: Iterable[str]) -> str:
    """Name of the slim header for a .cu that includes these files."""
    files = set(included)
    return next((f"slim_cuda_{i}" for i, extra in enumerate(CUDA_EXTRAS) if extra in files), "slim_cuda")
