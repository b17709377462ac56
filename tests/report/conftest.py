"""A scored folder."""

import pytest
from scored import scored_folder


@pytest.fixture
def place(tmp_path):
    return scored_folder(tmp_path)
