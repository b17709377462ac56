"""All operator families by name."""

from __future__ import annotations

from functools import cache

from dice.data.synthetic.families import (
    architecture,
    binary,
    contraction,
    gate,
    loss,
    movement,
    norm,
    pointwise,
    reduction,
    window,
)
from dice.data.synthetic.families.registry import HELDOUT, Family

_MODULES = (pointwise, binary, reduction, norm, contraction, window, movement, gate, loss, architecture)


@cache
def families() -> dict[str, Family]:
    """Name to family, in a fixed order."""
    found = [family for module in _MODULES for family in module.families()]
    table = {family.name: family for family in found}
    if len(table) != len(found):
        raise ValueError("two families share a name")
    return table


__all__ = ["HELDOUT", "Family", "families"]
