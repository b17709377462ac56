"""Settings of `dice serve`."""

from __future__ import annotations

from pydantic import Field

from dice.config import stage_config
from dice.kernels.api import Backend, Judging, Limits, Machine


@stage_config
class ServeConfig:
    """One service: one process, one open pool of the verifier, one folder of jobs."""

    state: str
    """Folder of accepted jobs and their verdicts; one service at a time uses it."""
    host: str = "127.0.0.1"
    """Address to listen at; any but this machine's own (127.0.0.1, ::1, localhost) needs a token."""
    port: int = Field(default=8642, ge=0, le=65535)
    """Port to listen at; 0: any that is free."""
    problems: str | None = None
    """Problems that a candidate may name, as in `dice verify`."""
    client_problems: bool = False
    """Take other problems from clients, too. A problem's code runs outside the sandbox: whoever may send it can do what this
    service's user can."""
    backend: Backend = "cuda"
    """Where candidates run."""
    judging: Judging = Judging()
    """Protocols, trials, timing: the same for all jobs."""
    limits: Limits = Limits()
    """What a candidate may use."""
    machine: Machine = Machine()
    """Workers, GPUs and caches."""
    most_jobs: int = Field(default=8192, ge=1)
    """Most unfinished jobs of all clients; further ones are refused (429)."""
    client_jobs: int = Field(default=4096, ge=1)
    """Most unfinished jobs of one client; further ones are refused (429)."""
    request_mib: float = Field(default=64.0, gt=0)
    """Largest request."""
    retry_after_s: int = Field(default=5, ge=1)
    """Seconds after which a refused client should try again."""
    retries: int = Field(default=1, ge=0)
    """Times that a job runs again after a host error before the error is told."""
    keep_verdicts: int = Field(default=20_000, ge=1)
    """Finished jobs whose verdicts are kept, in memory and on disk; older ones are forgotten, and run again if asked."""
