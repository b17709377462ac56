"""The fork server of compilers: a small process that forks them into their jail."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from dice.kernels.sandbox.fork_process import serve_forks
from dice.kernels.sandbox.fork_server import ForkServer
from dice.kernels.sandbox.tool_supervisor import ToolService

_ENTRY = "dice.kernels.builder.process"


def compiler_server(visible: Iterable[str | Path] = ()) -> ForkServer:
    """`visible`: the toolchain's folders, and those of the build cache that compilers read."""
    return ForkServer(_ENTRY, visible)


if __name__ == "__main__":
    serve_forks(ToolService)
