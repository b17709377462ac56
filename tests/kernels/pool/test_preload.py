"""What the fork server imports leaves CUDA to the workers."""

import os
import subprocess
import sys

# A PyTorch built for CUDA asks for GPUs when a toolkit is installed: through the runtime, unless it is told to ask NVML.
IMPORT = """
{first}
import importlib
import torch
import torch.utils.cpp_extension

def asked():
    raise SystemExit("CUDA's runtime was asked")

torch.version.cuda, torch.cuda._is_compiled = "13.0", lambda: True
torch.cuda._device_count_nvml, torch._C._cuda_getDeviceCount = lambda: 1, asked
importlib.reload(torch.utils.cpp_extension)
"""


def imports(first: str, toolkit: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTORCH_NVML_BASED_CUDA_CHECK"}
    return subprocess.run(
        [sys.executable, "-c", IMPORT.format(first=first)],
        env=environment | {"CUDA_HOME": toolkit},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_no_import_of_the_fork_server_asks_the_runtime(tmp_path):
    assert "CUDA's runtime was asked" in imports("", str(tmp_path)).stderr
    done = imports("import dice.kernels.pool.preload", str(tmp_path))
    assert done.returncode == 0, done.stderr
