"""All conditions, in the order in which they are tried."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from dice.errors import DiceError
from dice.kernels.conditions.condition import Condition
from dice.kernels.conditions.layouts import LAYOUTS
from dice.kernels.conditions.sizes import SHORTER, SIZES
from dice.kernels.conditions.values import DRAWN, VALUES
from dice.kernels.cpu.race import TURNS, Turn
from dice.kernels.cpu.runtime import Order

ORDERS = [
    Condition(f"order_{number}", f"threads in another order ({turn.order.name.lower()})", turn=turn)
    for number, turn in enumerate(TURNS, 1)
]
POISONED = Condition("poisoned_shared", "NaN in shared memory whenever a block begins", turn=Turn(Order.POISONED))
FENCED = Condition(
    "fenced_shared", "3.4e38 in shared memory whenever a block begins, and behind it", turn=Turn(Order.FENCED)
)
GUARDED = [
    Condition(
        "guarded_memory", "no memory around any tensor: a read or write outside of it ends the process", guarded=True
    ),
    # At round sizes no thread lies behind the end, and a wrong bound does no harm.
    *(
        dataclasses.replace(
            size, name=f"guarded_{size.name}", meaning=f"{size.meaning}, and no memory around any tensor", guarded=True
        )
        for size in SIZES
        if size.name in ("one_more", "one_less", "short")
    ),
]

FIRST = [DRAWN, SHORTER]
"""What all others build on: a kernel that is wrong as drawn is tried no further, and shorter inputs cost less."""
CONDITIONS = {
    condition.name: condition for condition in (*FIRST, *VALUES, *SIZES, *LAYOUTS, *ORDERS, POISONED, FENCED, *GUARDED)
}


def chosen(names: Sequence[str]) -> list[Condition]:
    """The named conditions in the table's order, behind `FIRST`; without names all of them. Raises DiceError."""
    unknown = [name for name in names if name not in CONDITIONS]
    if unknown:
        raise DiceError(f"condition '{unknown[0]}': there is none of this name; there are {', '.join(CONDITIONS)}.")
    return [one for name, one in CONDITIONS.items() if not names or name in names or one in FIRST]
