"""Waiting in tests: until something happens, however long the machine takes. Nothing else in the tests sleeps."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

PATIENCE_S = 300.0
"""After this a test fails instead of waiting for ever. No verdict of a test depends on it."""


def wait_for(condition: Callable[[], object], what: str) -> None:
    """Return when `condition` holds; `what` says for a failure what did not happen."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"waited {PATIENCE_S:g} s, and not: {what}"
        time.sleep(0.01)


def is_gone(pid: int) -> bool:
    """Whether the process has ended: nothing of it is left, or a zombie that its parent has not asked for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
