"""The fork server of compilers: a small process that forks them into their jail."""

from __future__ import annotations

from dice.kernels.sandbox.fork_process import serve_forks
from dice.kernels.sandbox.fork_server import ForkServer
from dice.kernels.sandbox.tool_supervisor import ToolService

_ENTRY = "dice.kernels.builder.process"


def compiler_server() -> ForkServer:
    """The fork server of compilers; `show` tells it the folders that they read."""
    return ForkServer(_ENTRY)


if __name__ == "__main__":
    serve_forks(ToolService)
