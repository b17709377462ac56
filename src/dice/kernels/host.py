"""The machine, as verdicts name it."""

from __future__ import annotations

from dice.kernels.verdict import Host
from dice.manifest import cpu_model, torch_versions


def this_host() -> Host:
    """The machine without its GPU."""
    torch, cuda = torch_versions()
    return Host(gpu=None, driver=None, cuda=cuda, torch=torch or "none", cpu=cpu_model(), isolation=[])
