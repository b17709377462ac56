"""A start model, and builds; tiny models run on one thread."""

import os
from pathlib import Path

import pytest
from rl_start import make_start
from tiny_models import one_thread as one_thread


@pytest.fixture(scope="session")
def start(tmp_path_factory, one_thread) -> Path:
    """A model that is right half of the time (rl_start)."""
    return make_start(tmp_path_factory.mktemp("start"), steps=500)


@pytest.fixture(scope="session")
def builds(tmp_path_factory) -> Path:
    """The build cache that the tests of the verifier fill."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "builds"
    folder.mkdir(exist_ok=True)
    return folder
