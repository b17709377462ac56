"""PyTorch's operators by table: an entry names an operator's spellings, the shapes and inputs that suit it, and its kernel.

One module for each kind of operator; `known` gives the entries that programs are drawn from.
"""

from __future__ import annotations

from collections.abc import Mapping
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
from dice.data.synthetic.table.entry import HELD_OUT, TINY, Entry, named

_TABLES: tuple[Mapping[str, Entry], ...] = (
    activations.ACTIVATIONS, activations.PRELU, functions.COMMON, functions.FURTHER, pairs.PAIRS,
    reduction.REDUCTIONS, reduction.WHOLE, reduction.PLACES, reduction.SCANS,
    norm.SOFTMAX, norm.WEIGHTED, norm.SCALED, norm.LAYERS, product.PRODUCTS, product.FURTHER,
    convolution.CONVOLUTIONS, pooling.POOLING, moves.MOVES, resize.RESIZE,
    selection.SELECTION, selection.ORDERS, selection.EMBEDDING, gate.GATES,
    loss.LOSSES, loss.ROW_LOSSES, loss.CROSS_ENTROPY, architecture.ARCHITECTURES,
)  # fmt: skip


@cache
def known() -> dict[str, Entry]:
    """Name to entry, in a fixed order."""
    found = [named(name, entry) for table in _TABLES for name, entry in table.items()]
    table = {entry.name: entry for entry in found}
    if len(table) != len(found):
        raise ValueError("two entries share a name")
    return table


__all__ = ["HELD_OUT", "TINY", "Entry", "known"]
