"""What is asked of a file again and again, and found once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

from dice.kernels.checks.python_source import PythonSource

Asked = TypeVarTuple("Asked")
Given = TypeVar("Given")


def once(function: Callable[[PythonSource, *Asked], Given]) -> Callable[[PythonSource, *Asked], Given]:
    """The same function, which keeps what it gave for a source and what can be hashed, as long as the source is there."""

    @functools.wraps(function)
    def kept(source: PythonSource, *asked: *Asked) -> Given:
        known = source.known.setdefault(function, {})
        if asked not in known:
            known[asked] = function(source, *asked)
        return known[asked]

    return kept
