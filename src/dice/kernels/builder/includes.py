"""Which files a candidate's sources may read while they are compiled: the toolchain's and its own."""

from __future__ import annotations

import os
import re

from dice.kernels.builder.flags import FlagForbidden
from dice.kernels.builder.toolchain import Toolchain
from dice.kernels.records.extension import ExtensionRequest

_INCLUDE = re.compile(r"(?:#|%:|\?\?=)\s*(?:include|include_next|import|embed)\b[ \t]*(.*)$", re.MULTILINE)
_QUOTED = re.compile(r"[<\"]([^>\"\n]+)[>\"]")
_READS = re.compile(r"\.incbin|__has_embed")
_SYSTEM = ("/usr/include", "/usr/lib/gcc", "/usr/local/include", "/usr/local/cuda")


def check_includes(request: ExtensionRequest, toolchain: Toolchain) -> None:
    """Raise FlagForbidden when a source reads a file that is neither the toolchain's nor its own."""
    texts = [*request.cpp_sources, *request.cuda_sources, *(f.text for f in (*request.files, *request.headers))]
    for text in texts:
        joined = re.sub(r"\\[ \t]*\r?\n", "", text)
        if _READS.search(joined):
            raise FlagForbidden("a source that embeds a file is not allowed here")
        for match in _INCLUDE.finditer(joined):
            name = _QUOTED.match(match.group(1))
            if name is not None and not _allowed(name.group(1), toolchain):
                raise FlagForbidden(f"#include of {name.group(1)[:120]}: outside of the toolchain and the sources")
            if name is None and re.match(r"[A-Za-z_]", match.group(1)):
                raise FlagForbidden("an #include by a macro is not allowed here")
    for folder in request.extra_include_paths:
        if not _allowed(folder, toolchain):
            raise FlagForbidden(f"include folder '{folder[:120]}': outside of the toolchain and the sources")


def _allowed(name: str, toolchain: Toolchain) -> bool:
    if not os.path.isabs(name):
        return not os.path.normpath(name).startswith("..")
    roots = [*_SYSTEM, str(toolchain.torch_root.parent), *toolchain.include_flags[1::2]]
    path = os.path.realpath(name)
    return any(path == root or path.startswith(f"{os.path.realpath(root)}/") for root in roots)
