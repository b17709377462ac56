"""Whether a file spells the name of whatever it reads and stores, so that who mentions a name are all who know of it."""

from __future__ import annotations

from dice.kernels.checks.python_source import PythonSource
from dice.kernels.source.lexer import words

_BY_NAME = words("__dict__ __setattr__ __getattribute__ delattr attrgetter getmembers methodcaller")
"""What reads or stores anything by its name."""


def says_all_names(source: PythonSource) -> bool:
    """Whether no name is made at run time, nor handed to what reads or stores by it."""
    return not source.computes_names and not any(map(source.mentions, _BY_NAME))
