"""How new an exam problem is to a model: its traced operators against those of the training data."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, get_args

from dice.data.leakage.report import Applied

Stratum = Literal["same operator seen", "composition unseen", "operator never trained", "not traced"]
STRATA: tuple[Stratum, ...] = get_args(Stratum)
"""In this order: one operator, which training programs apply to other values; several such operators, together in no
training program; at least one operator that no training program applies; a problem whose operators are not known."""


@dataclass(frozen=True)
class Placed:
    """One exam problem."""

    stratum: Stratum
    operators: tuple[str, ...] = ()
    """PyTorch's operators in it, by name."""
    untrained: tuple[str, ...] = ()
    """Those that no training program applies, and the held-out ones (`heldout.yaml`)."""


def place(applied: Applied | None, trained: Collection[str]) -> Placed:
    """The stratum of a problem for models whose training programs apply the operators `trained`."""
    if applied is None:
        return Placed("not traced")
    missing = sorted(applied.operators.keys() - set(trained))
    untrained = tuple(dict.fromkeys([*applied.heldout, *missing]))
    single = sum(applied.operators.values()) == 1
    stratum: Stratum = (
        "operator never trained" if untrained else "same operator seen" if single else "composition unseen"
    )
    return Placed(stratum, tuple(sorted(applied.operators)), untrained)


def traced_anew(code: str) -> Applied | None:
    """What a problem applies of which no report says it: another exam, or a report of an earlier version."""
    # they import torch, which problems that the reports know do not need
    from dice.data.leakage.heldout import all_applied
    from dice.data.leakage.program import Failed
    from dice.data.leakage.trace import trace

    try:
        return all_applied(trace(code))
    except Failed:
        return None
