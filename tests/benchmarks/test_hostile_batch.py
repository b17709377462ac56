"""A batch of hostile and honest candidates through the command: `benchmarks/hostile.py` has nothing to complain of."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "hostile.py"


@pytest.mark.parametrize(
    "backend", [pytest.param("cpu", marks=pytest.mark.slow), pytest.param("cuda", marks=pytest.mark.gpu)]
)
def test_neighbours_notice_nothing_and_nothing_is_left(backend: str, tmp_path: Path) -> None:
    command = [sys.executable, str(SCRIPT), "--backend", backend, "--work", str(tmp_path / "work")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
