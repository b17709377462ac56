"""What a verdict is worth to a trainer that asks for one number."""

from __future__ import annotations

from collections.abc import Sequence

from dice.kernels.api import Verdict


def reward(verdicts: Sequence[Verdict]) -> float:
    """1 for a correct kernel, 0 for any other, by the first protocol. Never called with a host error: that is no reward."""
    return float(verdicts[0].status == "correct")
