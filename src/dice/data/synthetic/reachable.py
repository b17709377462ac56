"""How many distinct pairs can be drawn: a lower bound that counts only what is sure to differ in the texts.

Counted are programs of one or two element-wise operators of one matrix: which operators, in which PyTorch forms, with
which hyper-parameters (the first operator's), on which shape, and, at nano scale, written in which style with which
block size. Everything else (other families, ranks, names, host code) comes on top and is not counted.
"""

from __future__ import annotations

from dataclasses import dataclass

from dice.data.synthetic.builder import effective
from dice.data.synthetic.config import SyntheticConfig
from dice.data.synthetic.cuda.element import MAP_STYLES
from dice.data.synthetic.draw import BATCHES, BLOCKS, ELEMENTS, FEATURES, nearest
from dice.data.synthetic.families.pointwise import TABLE, Unary
from dice.data.synthetic.families.registry import HELDOUT
from dice.data.synthetic.graph import NORMAL


@dataclass(frozen=True, slots=True)
class Reachable:
    """The factors of the bound and their product."""

    singles: int
    """One operator: form and hyper-parameters."""
    chains: int
    """Two operators, the second without hyper-parameters: forms and hyper-parameters."""
    shapes: int
    writings: int
    """Style and block size of the kernel."""

    @property
    def pairs(self) -> int:
        """The bound."""
        return (self.singles + self.chains) * self.shapes * self.writings


def _settings(spec: Unary) -> list[tuple[float, ...]]:
    """All values of the hyper-parameters."""
    settings: list[tuple[float, ...]] = [()]
    for _, low, high, step in spec.scalars.values():
        values = [round(low + step * k, 4) or float(high) for k in range(int((high - low) / step + 1.5))]
        settings = [(*before, value) for before in settings for value in dict.fromkeys(values)]
    return settings


def _push(spec: Unary, probes: tuple[float, ...], numbers: tuple[float, ...]) -> tuple[float, ...] | None:
    """The probes behind the operator; None where it would be refused."""
    try:
        after = tuple(spec.reference(value, *numbers) for value in probes)
    except (ValueError, OverflowError, ZeroDivisionError):
        return None
    return after if effective(probes, after) else None


def matrix_shapes(small: bool) -> int:
    """Distinct shapes of two dimensions."""
    low, high = ELEMENTS[small]
    count = 0
    for features in FEATURES[small]:
        first, last = (nearest(BATCHES[small], bound / features) for bound in (low, high))
        count += sum(first <= batch <= last for batch in BATCHES[small])
    return count


def count_reachable(config: SyntheticConfig) -> Reachable:
    """The bound for a configuration that is not restricted to some families."""
    names = [name for name in TABLE if name not in HELDOUT]
    forms = {name: len(TABLE[name].forms) for name in names}
    singles = chains = 0
    for name in names:
        for numbers in _settings(TABLE[name]):
            after = _push(TABLE[name], NORMAL, numbers)
            if after is None:
                continue
            singles += forms[name]
            for other in names:
                spec = TABLE[other]
                if other != name and not spec.scalars and not spec.jumps and _push(spec, after, ()) is not None:
                    chains += forms[name] * forms[other]
    writings = 1 if config.scale == "tiny" else len(MAP_STYLES) * len(set(BLOCKS))
    return Reachable(singles, chains, matrix_shapes(config.small), writings)
