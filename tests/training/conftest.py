"""A start model; tiny models run on one thread."""

import os
from pathlib import Path

import pytest
from filelock import FileLock
from rl_start import make_start
from tiny_models import one_thread as one_thread


@pytest.fixture(scope="session")
def start(tmp_path_factory: pytest.TempPathFactory, one_thread) -> Path:
    """A model that is right half of the time (rl_start). Tests only read it: all processes of a run share one."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "rl-start"
    whole = folder / "whole"
    with FileLock(f"{folder}.lock"):
        if not whole.exists():
            make_start(folder, steps=500)
            whole.touch()
    return folder
