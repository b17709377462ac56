"""The candidate's process as the fork server starts it: what is imported before forks, and what each fork runs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from dice.kernels.sandbox.fork_server import ForkServer, serve_forks

if TYPE_CHECKING:
    from dice.kernels.sandbox.supervisor import Serve

_ENTRY = "dice.kernels.candidate.process"


def candidate_server(visible: Iterable[str | Path] = ()) -> ForkServer:
    """The fork server of candidates. `visible`: further folders that they may read."""
    return ForkServer(_ENTRY, visible)


def _load() -> Serve:
    from dice.kernels.candidate import runner  # imports torch

    runner.warm_up()
    return runner.serve


if __name__ == "__main__":
    serve_forks(_load)
