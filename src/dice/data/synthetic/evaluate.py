"""CUDA expressions of element-wise operators, evaluated for single numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import cache
from statistics import NormalDist

_AS_IN_PYTHON = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "atan2",
    "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "lgamma", "fabs", "fmod", "copysign", "hypot",
)  # fmt: skip


def _signed(whole: Callable[[float], int]) -> Callable[[float], float]:
    """A function to whole numbers with the zeros of C: -0.3 is rounded to -0.0."""
    return lambda x: math.copysign(whole(x), x)


_FUNCTIONS: dict[str, Callable[..., float]] = {
    **{f"{name}f": getattr(math, name) for name in _AS_IN_PYTHON},
    **{name: getattr(math, name) for name in ("isnan", "isinf", "isfinite")},
    "fmaxf": max,
    "fminf": min,
    "powf": pow,
    "floorf": _signed(math.floor),
    "ceilf": _signed(math.ceil),
    "truncf": _signed(math.trunc),
    "rintf": _signed(round),
    "rsqrtf": lambda x: 1 / math.sqrt(x),
    "erfinvf": lambda x: NormalDist().inv_cdf((x + 1) / 2) * math.sqrt(0.5),
}


@cache
def function(expression: str, keys: tuple[str, ...]) -> Callable[..., float]:
    """The expression in {key} as a Python function of the keys, in this order.

    Raises, when it is called, ValueError, OverflowError or ZeroDivisionError where it is not defined.
    """
    text = re.sub(r"\{(\w+)\}", r"\1", expression).replace("(int)", "")
    text = re.sub(r"(\d\.\d+(?:e-?\d+)?)f", r"\1", text).replace("&&", " and ").replace("||", " or ")
    return eval(f"lambda {', '.join(keys)}: {_conditional(text)}", dict(_FUNCTIONS))  # a text of our own table


def _conditional(text: str) -> str:
    """`a ? b : c` as Python writes it, in brackets too."""
    made, depth, opened = "", 0, 0
    for at, letter in enumerate(text):
        if letter == "(":
            opened = at + 1 if depth == 0 else opened
            depth += 1
        elif letter == ")":
            depth -= 1
            made += f"({_conditional(text[opened:at])})" if depth == 0 else ""
        elif depth == 0:
            made += letter
    condition, _, rest = made.partition("?")
    chosen, _, other = rest.partition(":")
    return f"({chosen} if {condition} else {_conditional(other)})" if rest else made
