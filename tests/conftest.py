"""What all tests share: GPU tests are skipped where there is no GPU, the longest begins first, and one build cache."""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
from collections.abc import Generator
from pathlib import Path

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What collecting imports and makes stays until the end: the collector of garbage need not look at it, now or later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items):
    """Put tests marked `first` before the others; skip those marked `gpu` on a machine without an NVIDIA driver."""
    items.sort(key=lambda item: item.get_closest_marker("first") is None)
    if shutil.which("nvidia-smi") is not None:
        return
    skip = pytest.mark.skip(reason="needs an NVIDIA GPU")
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(skip)


@pytest.fixture(scope="session")
def build_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One build cache for all tests of a run, whichever process they are in. What compilers start from is the machine's:
    precompiled headers cost a minute, and are the same."""
    from dice.kernels.pool.workers import Machine, cache_folder

    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "builds"
    folder.mkdir(exist_ok=True)
    usual = cache_folder(Machine()) / "toolchains"
    usual.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        (folder / "toolchains").symlink_to(usual)
    return folder
