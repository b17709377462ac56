"""The machine, as verdicts name it."""

from __future__ import annotations

import re
from pathlib import Path

from dice.kernels.records.verdict import Host
from dice.manifest import cpu_model, torch_versions, visible_gpus

DRIVER_FILE = Path("/proc/driver/nvidia/version")
_VERSION = re.compile(r"\b\d{3,}\.\d+(?:\.\d+)?\b")


def this_host() -> Host:
    """The machine without its GPU."""
    torch, cuda = torch_versions()
    return Host(gpu=None, driver=None, cuda=cuda, torch=torch or "none", cpu=cpu_model(), isolation=[])


def gpu_driver(file: Path = DRIVER_FILE) -> str | None:
    """Version of the NVIDIA driver: from the kernel where it says, else from nvidia-smi, which takes much longer."""
    found = _VERSION.search(file.read_text()) if file.exists() else None
    return found.group() if found else next((entry.driver for entry in visible_gpus()), None)
