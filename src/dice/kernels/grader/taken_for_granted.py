"""Whether a candidate takes for granted what an input is in every draw: floating-point values that are the same everywhere,
or integers that count up.

A wrong output for values that the problem never draws proves little: zeros may stand for a mask that closes nothing, and
what counts up may always be sorted. So the input gets each kind of values that it may stand for
(`dice.kernels.candidate.domains`), where the reference takes them and its output changes. A candidate is blamed that is right
for none of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from dice.kernels.candidate.domains import kinds_of_values
from dice.kernels.candidate.other_values import Other
from dice.kernels.records.evidence import ExperimentOutcome
from dice.kernels.sandbox.session import CandidateRaised

_DRAWS = 6
"""Of each kind, at most: not every one changes the reference's output."""
_RIGHTS = 2
"""Draws of a kind that a candidate has to be right with: a row may be where it was by chance."""


def taken_for_granted(value: Any, called: Callable[[Other], ExperimentOutcome | None]) -> ExperimentOutcome | None:
    """`wrong` where a candidate is right for no kind of other values of an input, `right` where it is for one; None where
    none has a result. `called`: what comes of one change of the input; None where the reference does not take it, or it
    changes nothing."""
    kinds = kinds_of_values(value) if torch.is_tensor(value) else ()
    known = [outcome for outcome in (_outcome(called, kind) for kind in kinds) if outcome is not None]
    if not known:
        return None
    return "right" if "right" in known else "wrong"


def _outcome(called: Callable[[Other], ExperimentOutcome | None], kind: Other) -> ExperimentOutcome | None:
    """Of one kind of values. One that refuses them is right: it says what it does not take."""
    rights = 0
    try:
        for _ in range(_DRAWS):
            outcome = called(kind)
            if outcome in ("stale", "wrong"):
                return "wrong"
            rights += outcome is not None
            if rights == _RIGHTS:
                break
    except CandidateRaised:
        return "right"
    return "right" if rights else None
