"""NVIDIA's compiler, for tests that ask it; they need no GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from dice.kernels.builder.toolchain_probe import find_cuda_home

NVCC = Path(find_cuda_home() or "", "bin", "nvcc")
needs_nvcc = pytest.mark.skipif(not NVCC.exists(), reason="needs nvcc")
