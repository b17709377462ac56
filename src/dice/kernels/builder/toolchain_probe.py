"""Asks the installed PyTorch how it would build an extension. A separate process, since it imports torch.

`python -m dice.kernels.builder.toolchain_probe cuda|cpu` prints one JSON object: the variables of the ninja files that
`torch.utils.cpp_extension.load_inline` writes, with the extension named `DICE_EXTENSION_NAME`. Nothing is compiled.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

EXTENSION_NAME = "DICE_EXTENSION_NAME"
_VARIABLE = re.compile(r"^(cxx|nvcc|cflags|cuda_cflags|ldflags) = (.*)$", re.MULTILINE)


def find_cuda_home() -> str | None:
    """The CUDA toolkit: CUDA_HOME or CUDA_PATH, else where the nvcc on the PATH says that it lives."""
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            return os.environ[variable]
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        return "/usr/local/cuda" if Path("/usr/local/cuda/bin/nvcc").exists() else None
    # A wrapper script on the PATH says nothing by its own place; nvcc itself prints the root it uses.
    dry = subprocess.run([nvcc, "--dryrun", "-c", "x.cu"], capture_output=True, text=True, check=False).stderr
    match = re.search(r"^#\$ TOP=(.*)$", dry, re.MULTILINE)
    return os.path.realpath(match.group(1)) if match else str(Path(nvcc).resolve().parent.parent)


def without_building(instead: Callable[..., None] = lambda *_args, **_kwargs: None) -> Any:
    """`torch.utils.cpp_extension`, which from now on writes ninja files and builds nothing. It calls `instead` where it would
    import what it has built, with name and folder."""
    import torch.utils.cpp_extension as extension

    patched: Any = extension
    patched._run_ninja_build = lambda *_args, **_kwargs: None
    patched._import_module_from_library = instead
    patched.remove_extension_h_precompiler_headers = lambda: None
    return patched


def _ninja_variables(cuda: bool) -> dict[str, str]:
    with tempfile.TemporaryDirectory() as folder:
        without_building().load_inline(
            name=EXTENSION_NAME + ("_CUDA" if cuda else "_CPP"),  # torch numbers a name that is used twice
            cpp_sources="",
            cuda_sources="// no code\n" if cuda else None,
            functions=[],
            build_directory=folder,
        )
        text = (Path(folder) / "build.ninja").read_text()
    return {name: re.sub(f"{EXTENSION_NAME}\\w*", EXTENSION_NAME, value) for name, value in _VARIABLE.findall(text)}


def visible_capabilities() -> list[str]:
    """Compute capabilities of the visible GPUs, sorted and unique, e.g. ["9.0"]. Makes no CUDA context."""
    import ctypes

    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return []
    count = ctypes.c_int()
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return []
    found = set()
    for index in range(count.value):
        major, minor, device = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        driver.cuDeviceGet(ctypes.byref(device), index)
        driver.cuDeviceGetAttribute(ctypes.byref(major), 75, device)
        driver.cuDeviceGetAttribute(ctypes.byref(minor), 76, device)
        found.add((major.value, minor.value))
    return [f"{major}.{minor}" for major, minor in sorted(found)]


def probe(cuda: bool) -> dict[str, Any]:
    """What the builder needs to know of PyTorch: its versions, its folder, its compilers' flags with and without CUDA."""
    cuda_home = find_cuda_home() if cuda else None
    if cuda_home is not None:
        os.environ["CUDA_HOME"] = cuda_home
        os.environ["TORCH_CUDA_ARCH_LIST"] = "9.0+PTX"  # the builder puts the real one in its place
    import torch

    if cuda_home is not None and torch.version.cuda is None:
        import torch.utils.cpp_extension as extension

        extension.CUDA_HOME = cuda_home  # a CPU build of PyTorch does not look for it
    return {
        "torch_version": torch.__version__,
        "torch_git": torch.version.git_version,
        "torch_cuda": torch.version.cuda,
        "torch_root": str(Path(torch.__file__).parent),
        "python": sys.version,
        "cuda_home": cuda_home,
        "cpp": _ninja_variables(cuda=False),
        "cuda": _ninja_variables(cuda=True) if cuda_home is not None else None,
    }


if __name__ == "__main__":
    if sys.argv[1:] == ["capabilities"]:
        print(json.dumps(visible_capabilities()))
    else:
        print(json.dumps(probe(sys.argv[1] == "cuda")))
