"""The machine as verdicts name it, found without PyTorch's import."""

from __future__ import annotations

import subprocess
import sys

import torch

from dice.kernels.host import this_host
from dice.manifest import torch_versions


def test_the_versions_are_those_that_torch_states_itself() -> None:
    assert torch_versions() == (torch.__version__, torch.version.cuda)
    host = this_host()
    assert (host.torch, host.cuda) == (torch.__version__, torch.version.cuda)


def test_the_command_spends_no_time_on_importing_torch() -> None:
    code = (
        "import sys; import dice.kernels.verify; from dice.kernels.host import this_host; this_host(); "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
