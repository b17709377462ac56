"""Programs as highlighted HTML: Python, and the CUDA in its strings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import CudaLexer, PythonLexer
from pygments.token import String

_TRIPLE = re.compile(r"""(\w*(?:\"\"\"|'''))(.*?)(\"\"\"|'''|\Z)""", re.DOTALL)
_CUDA = re.compile(r"__global__|#include|torch::|at::")
_FORMAT = HtmlFormatter(nowrap=True)
STYLE = HtmlFormatter(style="friendly").get_style_defs(".code")
"""The CSS of its classes, below the class `code`."""


class PythonWithCuda(PythonLexer):
    """Python whose long strings may be CUDA."""

    def get_tokens_unprocessed(self, text: str, stack: Any = ("root",)) -> Iterator[tuple[int, Any, str]]:
        """(place, kind, piece) of each token."""
        held: list[tuple[int, Any, str]] = []
        for place, kind, piece in super().get_tokens_unprocessed(text, stack):
            if kind in String:
                held.append((place, kind, piece))
                continue
            yield from _string(held)
            held = []
            yield place, kind, piece
        yield from _string(held)


def _string(pieces: list[tuple[int, Any, str]]) -> Iterator[tuple[int, Any, str]]:
    """The tokens of one string; those of CUDA where it holds some."""
    text = "".join(piece for _, _, piece in pieces)
    found = _TRIPLE.fullmatch(text)
    if found is None or not _CUDA.search(found[2]):
        yield from pieces
        return
    start = pieces[0][0]
    yield start, String.Double, found[1]
    for place, kind, piece in CudaLexer(stripnl=False, ensurenl=False).get_tokens_unprocessed(found[2]):
        yield start + found.start(2) + place, kind, piece
    if found[3]:
        yield start + found.start(3), String.Double, found[3]


def highlighted(code: str) -> Markup:
    """A program as HTML, everything in it escaped."""
    return Markup(highlight(code, PythonWithCuda(stripnl=False), _FORMAT))
