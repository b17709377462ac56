"""The sources of a request as units: main.cpp or several C++ files, and at most one .cu."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass

from dice.kernels.builder.main_unit import MainUnit
from dice.kernels.records.extension import ExtensionRequest, SourceFile
from dice.kernels.source.lexer import SplitRefused
from dice.kernels.source.macros import Preprocess

_TORCH = re.compile(
    r"^\s*#\s*include\s*[<\"](?:torch/(?:extension|torch|types|all|python)\.h|ATen/ATen\.h)[>\"]", re.MULTILINE
)
_LOCAL = re.compile(r"^[ \t]*#[ \t]*include[ \t]*\"([^\"\n]+)\"[ \t]*(?://.*)?$", re.MULTILINE)
_INLINE_NAMES = ("main.cpp", "cuda.cu")
_MOST_PASTES = 2000
"""Of headers into one file. Each that includes the next one twice doubles their number."""


@dataclass(frozen=True)
class Sources:
    """Units of a request.

    mains: C++ files. cuda: text of the .cu, its local headers pasted in, or None. cuda_first_line: the line of `cuda`'s
    first line in the file that stock would compile. headers: further files, to lie beside the C++ files.
    inline: from load_inline (headers are implied), not from files.
    """

    mains: tuple[MainUnit, ...]
    cuda: str | None
    cuda_name: str
    cuda_first_line: int
    headers: tuple[SourceFile, ...]
    inline: bool


def sources_of(request: ExtensionRequest, preprocess: Preprocess | None = None) -> Sources:
    """The units of a request. `preprocess`: as for `split_source`.

    Raises SplitRefused for what only stock builds: several .cu files, `no_implicit_headers`, standalone programs.
    """
    if request.no_implicit_headers or request.is_standalone:
        raise SplitRefused("no_implicit_headers or is_standalone")
    if request.kind == "load_inline":
        main = MainUnit(
            "\n".join(request.cpp_sources),
            request.functions,
            request.with_pytorch_error_handling,
            _INLINE_NAMES[0],
            preprocess=preprocess,
        )
        cuda = "\n".join(request.cuda_sources) if request.cuda_sources else None
        return Sources((main,), cuda, _INLINE_NAMES[1], 4, request.headers, inline=True)
    others = (*request.headers, *request.files)
    cuda_files = [file for file in request.files if file.name.endswith((".cu", ".cuh"))]
    if len(cuda_files) > 1:
        raise SplitRefused("several .cu files")
    mains = []
    for file in request.files:
        if file not in cuda_files:
            if not _TORCH.search(paste_headers(file, others, request.extra_include_paths)):
                raise SplitRefused("a C++ file without PyTorch's header")
            mains.append(MainUnit(file.text, None, False, file.name, False, preprocess))
    cuda, name = None, ""
    if cuda_files:
        name = cuda_files[0].name
        cuda = paste_headers(cuda_files[0], others, request.extra_include_paths)
        if not _TORCH.search(cuda):
            raise SplitRefused("a .cu without PyTorch's header")
    return Sources(tuple(mains), cuda, name, 1, request.headers, inline=False)


def paste_headers(file: SourceFile, others: Sequence[SourceFile], folders: Sequence[str]) -> str:
    """The file's text with each local header in the place of its #include, one with `#pragma once` in that of the first.

    Raises SplitRefused where headers include each other, or too many of them.
    """
    by_name = {posixpath.normpath(other.name): other for other in others}
    pasted: set[str] = set()
    pastes = 0

    def paste(text: str, place: str, depth: int) -> str:
        if depth > 20:
            raise SplitRefused("headers that include each other")

        def replace(match: re.Match[str]) -> str:
            nonlocal pastes
            paths = [posixpath.join(folder, match.group(1)) for folder in (place, *folders)]
            for name in map(posixpath.normpath, paths):
                if name in by_name:
                    if name in pasted and "#pragma once" in by_name[name].text:
                        return ""
                    pasted.add(name)
                    pastes += 1
                    if pastes > _MOST_PASTES:
                        raise SplitRefused("too many local headers")
                    header = re.sub(r"^[ \t]*#[ \t]*pragma[ \t]+once.*$", "", by_name[name].text, flags=re.MULTILINE)
                    return paste(header, posixpath.dirname(name), depth + 1)
            return match.group(0)

        return _LOCAL.sub(replace, text)

    return paste(file.text, posixpath.dirname(posixpath.normpath(file.name)), 0)
