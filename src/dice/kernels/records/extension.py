"""A candidate's request to `torch.utils.cpp_extension`, and the builder's answer.

A request is plain data: the untrusted candidate sends it to the builder as JSON, and the builder validates it. Its hash
and the toolchain's fingerprint are the key of the build cache.
"""

from __future__ import annotations

import hashlib
import json
from typing import Literal

from pydantic import BaseModel, ConfigDict

BuildStatus = Literal[
    "built", "compile_error", "import_error", "timeout", "out_of_memory", "unsupported_on_cpu", "host_error"
]

LaunchCount = Literal["counted", "none", "unknown"]
"""`counted`: the object exports `dice_launch_table`. `none`: it has no kernels and imports no function that launches one.
`unknown`: it may launch kernels that nobody counts."""


class SourceFile(BaseModel):
    """One file given to `load`, or a header beside it: name relative to the scratch folder, and text."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str
    text: str


class ExtensionRequest(BaseModel):
    """Arguments of `load_inline` or `load`, normalised (single strings become one-element tuples).

    `functions`: (name, docstring) pairs, or None when the argument was not given.
    `files`/`headers`: for `load`, the sources in order, and other files of the scratch folder that they may include.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    kind: Literal["load_inline", "load"]
    name: str
    cpp_sources: tuple[str, ...] = ()
    cuda_sources: tuple[str, ...] = ()
    functions: tuple[tuple[str, str], ...] | None = None
    files: tuple[SourceFile, ...] = ()
    headers: tuple[SourceFile, ...] = ()
    extra_cflags: tuple[str, ...] = ()
    extra_cuda_cflags: tuple[str, ...] = ()
    extra_ldflags: tuple[str, ...] = ()
    extra_include_paths: tuple[str, ...] = ()
    with_cuda: bool | None = None
    with_pytorch_error_handling: bool = True
    is_python_module: bool = True
    is_standalone: bool = False
    no_implicit_headers: bool = False

    def digest(self) -> str:
        """sha256 of the request's canonical JSON, hex. Without `name`: two names for one source are one build."""
        data = self.model_dump(mode="json", exclude={"name"})
        return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


class BuildResult(BaseModel):
    """The builder's answer.

    route: `split` (slim headers, own binding table), `split_pybind`, `split_full_headers`, `stock`, `cpu`.
    fallbacks: for each cheaper route that was declined, "route: reason", in order.
    path: the shared object, in the cache; None unless built.
    launches: what is known of its kernel launches, `LaunchCount`.
    message: the compiler's own diagnostics, trimmed to 8,000 characters; for unsupported_on_cpu, what is missing.
    cached: it was in the cache, from another run or from this run's build workers.
    seconds: wall time of this call.
    cpu_seconds: user + system time of all compiler processes of the build, also when `cached`.
    """

    model_config = ConfigDict(extra="forbid")
    status: BuildStatus
    key: str
    route: str
    path: str | None = None
    fallbacks: list[str] = []
    cached: bool = False
    launches: LaunchCount = "unknown"
    message: str = ""
    seconds: float = 0.0
    cpu_seconds: float = 0.0
