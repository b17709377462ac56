"""What all tests share: GPU tests are skipped where there is no GPU, and the longest begins first."""

import shutil

import pytest


def pytest_collection_modifyitems(items):
    """Put tests marked `first` before the others; skip those marked `gpu` on a machine without an NVIDIA driver."""
    items.sort(key=lambda item: item.get_closest_marker("first") is None)
    if shutil.which("nvidia-smi") is not None:
        return
    skip = pytest.mark.skip(reason="needs an NVIDIA GPU")
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(skip)
