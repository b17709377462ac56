"""The error for sources that the CPU back end does not support."""

from __future__ import annotations


class UnsupportedOnCpu(Exception):
    """The source uses a feature that the CPU back end does not support; `what` names it."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what
