"""A bracket that nothing closes: the one error of syntax that needs no compiler.

Every C++ program has its ( [ and { in pairs, one inside the other, whatever its names mean. g++ is a poor judge of this:
where a bracket is open it reads on to the end of the unit, and then takes seconds for the templates of PyTorch's headers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dice.kernels.source.lexer import CLOSERS, CONDITIONAL, OPENERS, Lines, Token, read_tokens

_OTHER_SPELLING = re.compile(r"<%|%>|:>|<:(?!:)|%:|\?\?")
"""Digraphs and trigraphs: brackets that the tokens do not show."""
_OWN_HEADER = re.compile(r"#\s*(include\s*\"|include_next|embed|pragma\s+push_macro)")
_IN_PAIRS = re.compile(r"BEGIN|END|OPEN|CLOSE|PUSH|POP|ENTER|LEAVE|START|STOP|pthread_cleanup_")
"""Names of macros that may stand for one bracket of a pair (`__BEGIN_DECLS`)."""


def line_of_unpaired(text: str) -> int | None:
    """Line, from 1, of the first bracket without a partner; None where all have one, or where that is not certain:
    conditionals, macros that may hold single brackets, literals without an end."""
    tokens = read_tokens(text)
    found = _unpaired(tokens)
    if found is None or _OTHER_SPELLING.search(text):
        return None
    for token in tokens:
        if token.kind == "unknown" or (token.kind == "identifier" and _IN_PAIRS.search(token.text)):
            return None
        if token.kind == "directive":
            if CONDITIONAL.match(token.text) or _OWN_HEADER.match(token.text):
                return None
            if _unpaired(read_tokens(token.text, directives=False)) is not None:  # a macro's body
                return None
    return Lines(text).number(found.start)


def _unpaired(tokens: Sequence[Token]) -> Token | None:
    return next((token for token in tokens if token.text in (OPENERS | CLOSERS) and not token.reach), None)
