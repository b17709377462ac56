"""The candidate's process as the fork server starts it: what is imported before forks, and what each fork runs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from dice.kernels.sandbox.fork_process import serve_forks
from dice.kernels.sandbox.fork_server import ForkServer
from dice.kernels.sandbox.supervisor import CandidateService

_ENTRY = "dice.kernels.candidate.process"


def candidate_server(visible: Iterable[str | Path] = ()) -> ForkServer:
    """The fork server of candidates. `visible`: further folders that they may read."""
    return ForkServer(_ENTRY, visible)


def _load() -> CandidateService:
    from dice.kernels.candidate import runner  # imports torch

    runner.warm_up()
    return CandidateService(runner.serve)


if __name__ == "__main__":
    serve_forks(_load)
