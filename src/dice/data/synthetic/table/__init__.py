"""PyTorch's operators by table: an entry names an operator's spellings, the shapes and inputs that suit it, and its kernel.

One module for each kind of operator; `known` gives the entries that programs are drawn from.
"""

from __future__ import annotations

from functools import cache

from dice.data.synthetic.table import (
    activations,
    architecture,
    convolution,
    functions,
    gate,
    loss,
    moves,
    norm,
    pairs,
    pooling,
    product,
    reduction,
    resize,
    selection,
)
from dice.data.synthetic.table.entry import HELD_OUT, TINY, Entry

_MODULES = (
    activations, functions, pairs, reduction, norm, product, convolution, pooling, moves, resize, selection, gate, loss,
    architecture,
)  # fmt: skip


@cache
def known() -> dict[str, Entry]:
    """Name to entry, in a fixed order."""
    found = [entry for module in _MODULES for entry in module.entries()]
    table = {entry.name: entry for entry in found}
    if len(table) != len(found):
        raise ValueError("two entries share a name")
    return table


__all__ = ["HELD_OUT", "TINY", "Entry", "known"]
