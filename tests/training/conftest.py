"""A start model; tiny models run on one thread."""

from pathlib import Path

import pytest
from rl_start import make_start
from tiny_models import one_thread as one_thread


@pytest.fixture(scope="session")
def start(tmp_path_factory, one_thread) -> Path:
    """A model that is right half of the time (rl_start)."""
    return make_start(tmp_path_factory.mktemp("start"), steps=500)
