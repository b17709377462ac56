"""The error for sources that the CPU back end does not support."""

from __future__ import annotations

from dice.kernels.source.lexer import SplitRefused


class UnsupportedOnCpu(SplitRefused):
    """The source uses a feature that the CPU back end does not support; `reason` names it."""
