"""A candidate's request to `torch.utils.cpp_extension`, and the builder's answer.

A request is plain data: the untrusted candidate sends it to the builder as JSON, and the builder validates it. Its hash
and the toolchain's fingerprint are the key of the build cache.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

BuildStatus = Literal[
    "built",
    "compile_error",
    "refused_flag",
    "timeout",
    "out_of_memory",
    "unsupported_on_cpu",
]

LaunchCount = Literal["counted", "none", "unknown"]
"""`counted`: its launches are marked in the grader's ledger. `none`: it has no kernels and imports no function that launches
one. `unknown`: it may launch kernels that nobody counts."""
SOURCE_CHARACTERS = 16 << 20
"""Of all sources of one extension together."""


def _no_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("holds a NUL character, which no argument or path can")
    return text


def _file_name(name: str) -> str:
    parts = _no_nul(name).split("/")
    if posixpath.normpath(name) != name or parts[0] in ("", ".", "..") or len(parts) > 32:
        raise ValueError("is not a plain path below the scratch folder")
    if any(len(part.encode()) > 200 for part in parts):
        raise ValueError("has a part of more than 200 bytes")
    return name


Source = Annotated[str, Field(max_length=SOURCE_CHARACTERS)]
Sources = Annotated[tuple[Source, ...], Field(max_length=500)]
Word = Annotated[str, Field(max_length=4096), AfterValidator(_no_nul)]
Words = Annotated[tuple[Word, ...], Field(max_length=256)]


class SourceFile(BaseModel):
    """One file given to `load`, or a header beside it: name relative to the scratch folder, and text."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: Annotated[str, Field(max_length=2048), AfterValidator(_file_name)]
    text: Source


Files = Annotated[tuple[SourceFile, ...], Field(max_length=600)]


class ExtensionRequest(BaseModel):
    """Arguments of `load_inline` or `load`, normalised (single strings become one-element tuples).

    Bounded so that no request asks more of a file system or a command line than they can do, whoever sends it; texts are
    UTF-8 without lone surrogates where they came over the channel.

    `functions`: (name, docstring) pairs, or None when the argument was not given.
    `files`/`headers`: for `load`, the sources in order, and other files of the scratch folder that they may include.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    kind: Literal["load_inline", "load"]
    name: Annotated[str, Field(max_length=200), AfterValidator(_no_nul)]
    cpp_sources: Sources = ()
    cuda_sources: Sources = ()
    functions: Annotated[tuple[tuple[Source, Source], ...], Field(max_length=10_000)] | None = None
    files: Files = ()
    headers: Files = ()
    extra_cflags: Words = ()
    extra_cuda_cflags: Words = ()
    extra_ldflags: Words = ()
    extra_include_paths: Words = ()
    with_cuda: bool | None = None
    with_pytorch_error_handling: bool = True
    is_python_module: bool = True
    is_standalone: bool = False
    counts_steps: bool = False
    """Whether the object counts the steps of its code (CPU back end). The grader says so, whatever was requested."""
    no_implicit_headers: bool = False

    @model_validator(mode="after")
    def _fits_a_folder(self) -> ExtensionRequest:
        """No more text than a build can take, and no file in the place of another one or of its folder."""
        files = (*self.files, *self.headers)
        pairs = (text for pair in self.functions or () for text in pair)
        texts = (*self.cpp_sources, *self.cuda_sources, *(file.text for file in files), *pairs)
        if sum(map(len, texts)) > SOURCE_CHARACTERS:
            raise ValueError(f"has sources of more than {SOURCE_CHARACTERS >> 20} Mi characters")
        names = [file.name for file in files]
        if len(set(names)) < len(names) or set(names) & set(_folders(names)):
            raise ValueError("has two files of one name, or a file in the place of a folder")
        return self

    @property
    def texts(self) -> list[str]:
        """All its sources and headers."""
        return [*self.cuda_sources, *self.cpp_sources, *(file.text for file in (*self.files, *self.headers))]

    def digest(self) -> str:
        """sha256 of the request's canonical JSON, hex. Without `name`: two names for one source are one build."""
        data = self.model_dump(mode="json", exclude={"name"})
        return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def _folders(names: Iterable[str]) -> Iterable[str]:
    """All folders that files of these names lie in."""
    for name in names:
        while name := posixpath.dirname(name):
            yield name


class BuildResult(BaseModel):
    """The builder's answer.

    route: `split` (slim headers, own binding table), `split_pybind`, `split_full_headers`, `stock`, `cpu`; of a failure, the
    one on which it failed, or `refused` where no compiler was asked.
    fallbacks: for each cheaper route that was declined, "route: reason", in order.
    path: the shared object, in the cache; None unless built.
    object_sha256: of that object, hex, when it was made.
    launches: what is known of its kernel launches, `LaunchCount`.
    message: the compiler's own diagnostics, trimmed to 8,000 characters; for unsupported_on_cpu, what is missing.
    cached: it was in the cache, from another run or from this run's build workers.
    seconds: wall time of this call.
    cpu_seconds: user + system time of all compiler processes of the build, also when `cached`.
    isolation, missing: layers that confined the compilers when they ran, and those that the machine refused.
    """

    model_config = ConfigDict(extra="forbid")
    status: BuildStatus
    key: str
    route: str
    path: str | None = None
    object_sha256: str | None = None
    fallbacks: list[str] = []
    cached: bool = False
    launches: LaunchCount = "unknown"
    message: str = ""
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    isolation: list[str] = []
    missing: list[str] = []
