"""What the CPU back end does not have."""

from __future__ import annotations


class UnsupportedOnCpu(Exception):
    """The source uses what the CPU back end does not have; `what` names it."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what
