"""Fixtures of the verifier's execution tests."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cpu_fixtures import Load, loaded
from execution import NoBuilder
from waiting import PATIENCE_S

from dice.kernels.builder.builder import Builder
from dice.kernels.builder.compiler import Meter, ToolJail, ToolLimits, Workbench
from dice.kernels.builder.headers import CSRC
from dice.kernels.builder.preprocessor import expanded
from dice.kernels.builder.toolchain import Toolchain
from dice.kernels.builder.toolchain_probe import find_cuda_home
from dice.kernels.candidate.process import candidate_server
from dice.kernels.grader.executor import Executor
from dice.kernels.records.job import Judging
from dice.kernels.sandbox.fork_server import ForkServer
from dice.kernels.source.macros import Preprocess


@pytest.fixture(scope="session")
def fork_server() -> Iterator[ForkServer]:
    """One fork_server for all tests of a session: starting it costs an import of torch."""
    with candidate_server() as handle:
        yield handle


@pytest.fixture(scope="session")
def plain_executor(fork_server: ForkServer) -> Iterator[Executor]:
    """Judges candidates that build nothing, on the CPU, under both protocols."""
    both = Judging(protocols=("paper", "strict"), correctness_trials=2)
    with Executor(fork_server, NoBuilder(), "cpu", judging=both) as value:
        yield value


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


@pytest.fixture(scope="session")
def cpu_builder(build_folder: Path) -> Builder:
    """Builds for the CPU, with the cache of all tests."""
    return Builder(build_folder, "cpu")


@pytest.fixture(scope="session")
def load(cpu_builder: Builder) -> Load:
    """Builds and loads a source of tests/kernels/cpu/fixtures by its name."""
    return lambda name: loaded(cpu_builder, name)


@pytest.fixture(scope="session")
def jail(cpu_toolchain: Toolchain) -> Iterator[ToolJail]:
    """Where compilers run, with all that this machine has of them."""
    with contextlib.closing(ToolJail()) as made:
        made.show([*cpu_toolchain.folders(), CSRC, *([home] if (home := find_cuda_home()) else [])])
        yield made


@pytest.fixture
def bench(jail: ToolJail, tmp_path: Path) -> Workbench:
    """Compilers and binutils in the folder of the test."""
    return workbench(jail, tmp_path)


@pytest.fixture(scope="session")
def preprocess(cpu_toolchain: Toolchain, jail: ToolJail, tmp_path_factory: pytest.TempPathFactory) -> Preprocess:
    """The preprocessor of builds."""
    work = tmp_path_factory.mktemp("preprocess")
    return lambda text: expanded(cpu_toolchain.cxx, workbench(jail, work), text)


def workbench(jail: ToolJail, folder: Path) -> Workbench:
    return Workbench(folder, Meter(jail), ToolLimits(), time.monotonic() + PATIENCE_S)
