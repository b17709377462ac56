"""Fixtures of the verifier's execution tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dice.kernels.builder.toolchain import Toolchain
from dice.kernels.builder.toolchain_probe import find_cuda_home
from dice.kernels.candidate.process import candidate_server
from dice.kernels.sandbox.fork_server import ForkServer


@pytest.fixture(scope="session")
def fork_server() -> Iterator[ForkServer]:
    """One fork_server for all tests of a session: starting it costs an import of torch."""
    with candidate_server() as handle:
        yield handle


@pytest.fixture(scope="session")
def build_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One build cache for all tests of a run, whichever process they are in: precompiled headers cost a minute."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "builds"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def cpu_toolchain(build_folder: Path) -> Toolchain:
    """This machine's g++ with PyTorch's flags."""
    return Toolchain.find("cpu", None, build_folder)


@pytest.fixture(scope="session")
def cuda_toolchain(build_folder: Path) -> Toolchain:
    """The same with nvcc, for a GPU that need not be there."""
    if find_cuda_home() is None:
        pytest.skip("needs nvcc")
    return Toolchain.find("cuda", "9.0", build_folder)
