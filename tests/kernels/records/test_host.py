"""The machine as verdicts name it, found without PyTorch's import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import torch

from dice.kernels.records.host import gpu_driver, this_host
from dice.manifest import torch_versions, visible_gpus


def test_the_versions_are_those_that_torch_states_itself() -> None:
    assert torch_versions() == (torch.__version__, torch.version.cuda)
    host = this_host()
    assert (host.torch, host.cuda) == (torch.__version__, torch.version.cuda)


def test_the_command_spends_no_time_on_importing_torch() -> None:
    code = (
        "import sys; import dice.kernels.verify; from dice.kernels.records.host import this_host; this_host(); "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_driver_is_read_from_the_kernel(tmp_path: Path) -> None:
    said = tmp_path / "version"
    said.write_text(
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (root@host)\n"
        "GCC version:  gcc version 13.3.0 (Ubuntu 13.3.0-6)\n"
    )
    assert gpu_driver(said) == "580.159.04"
    said.write_text("no version here\n")
    assert gpu_driver(said) == next((entry.driver for entry in visible_gpus()), None)
