"""Shared by the builder's tests: requests as a candidate's call would make them."""

from __future__ import annotations

from typing import Any

from dice.kernels.candidate.extension_call import load_inline
from dice.kernels.records.extension import ExtensionRequest, SourceFile


def inline(cpp: str = "", cuda: str | None = "", **arguments: Any) -> ExtensionRequest:
    """`load_inline(name="e", ...)`; `cuda=None` for an extension of C++ alone."""
    cuda_sources = None if cuda is None else [cuda]
    return load_inline(**{"name": "e", "cpp_sources": cpp, "cuda_sources": cuda_sources} | arguments)


def files(sources: dict[str, str], headers: dict[str, str] | None = None, **arguments: Any) -> ExtensionRequest:
    """`load(name="e", sources=[...])` with these files, and headers beside them in the scratch folder."""
    return ExtensionRequest(
        kind="load",
        name="e",
        files=tuple(SourceFile(name=name, text=text) for name, text in sources.items()),
        headers=tuple(SourceFile(name=name, text=text) for name, text in (headers or {}).items()),
        **arguments,
    )
