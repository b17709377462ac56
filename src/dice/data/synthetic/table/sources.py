"""Inputs that suit operators, and sizes that they share."""

from __future__ import annotations

import math

from dice.data.synthetic.builder import Source
from dice.data.synthetic.graph import OTHER_NORMAL

INF, NAN = math.inf, math.nan
_SHARE = (0.06, 0.19, 0.31, 0.44, 0.56, 0.69, 0.81, 0.94)
"""Quantiles that stand for a uniform variable between 0 and 1."""


def uniform(low: float, high: float) -> Source:
    """Numbers spread evenly between two bounds."""
    text = "torch.rand({s})" if high - low == 1 else f"{high - low:g} * torch.rand({{s}})"
    shift = "" if low == 0 else f" + {low:g}" if low > 0 else f" - {-low:g}"
    return Source(text + shift, tuple(round(low + (high - low) * share, 4) for share in _SHARE), low, high)


OTHER_SOURCE = Source("torch.randn({s})", OTHER_NORMAL)
"""A second standard normal variable."""
AWAY_FROM_ZERO = Source("0.5 + torch.rand({s})", (0.6, 0.75, 0.9, 1.0, 1.1, 1.2, 1.35, 1.5), 0.5, 1.5)
POSITIVE = Source("torch.rand({s}) + 0.1", tuple(0.1 + share for share in _SHARE), 0.1, 1.1)
STEEP = Source("torch.rand({s}) * 4 + 0.05", tuple(0.05 + 4 * share for share in _SHARE), 0.05, 4.05)
UNIT = uniform(-0.95, 0.95)
DEGREES = Source("torch.randn({s}) * 60", (-108, -66, -36, -12, 15, 42, 72, 114))
COUNTS = Source("torch.randint(0, 4, {t}).float()", (0, 1, 2, 3, 3, 2, 1, 0), 0, 3)
OTHER_COUNTS = Source("torch.randint(0, 4, {t}).float()", (0, 2, 2, 1, 3, 0, 1, 3), 0, 3)
INTEGERS = Source("torch.randint(0, 100, {t})", (3, 17, 29, 44, 58, 71, 86, 97), dtype="int64")
OTHER_INTEGERS = Source("torch.randint(0, 100, {t})", (90, 12, 33, 5, 64, 71, 8, 40), dtype="int64")
INFINITE = Source("1.0 / torch.randint(-2, 3, {t}).float()", (-0.5, -1, INF, 1, 0.5, INF, -1, 0.5))
BELOW = Source("torch.log(torch.randint(0, 4, {t}).float())", (-INF, 0, 0.69, 1.1, 1.1, -INF, 0, 0.69))
MISSING = Source("torch.sqrt(torch.randn({s}))", (NAN, NAN, 0.3, NAN, 0.5, 0.8, 1.1, 1.4))
TRUTHS = Source("torch.rand({s}) > 0.5", (1, 0, 0, 1, 0, 1, 0, 0), dtype="bool")
