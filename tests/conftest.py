"""What all tests share: GPU tests are skipped where there is no GPU."""

import shutil

import pytest


def pytest_collection_modifyitems(items):
    """Skip tests marked `gpu` on a machine without an NVIDIA driver."""
    if shutil.which("nvidia-smi") is not None:
        return
    skip = pytest.mark.skip(reason="needs an NVIDIA GPU")
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(skip)
