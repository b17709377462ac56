"""The macros of a CUDA source, where they decide what its text means."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence

from dice.kernels.source.lexer import CONDITIONAL, WORD, SplitRefused, Token

DEFINE = re.compile(r"#\s*(?:define|undef)\s+([A-Za-z_]\w*)(\()?")
Preprocess = Callable[[str], str]
"""Expands a text's macros as C++ does, and reads no header. Raises SplitRefused."""
_KEPT = re.compile(r"#\s*(include|pragma)\b")
_SHAPING = re.compile(
    r"__global__|__device__|__host__|__constant__|__shared__|\btemplate\b|\bnamespace\b|\bstruct\b|[{};]|\bextern\b"
)


def expand_macros(text: str, tokens: Sequence[Token], preprocess: Preprocess | None) -> str:
    """`text` with its own macros expanded by the C++ preprocessor; includes and pragmas stay, `#define`s vanish.

    Raises SplitRefused when a condition depends on anything but the source's own macros, since headers are not read, and
    where there is no preprocessor.
    """
    own = {match.group(1) for match in DEFINE.finditer(text)}
    for token in tokens:
        match = CONDITIONAL.match(token.text) if token.kind == "directive" else None
        if match and match.group(1) not in ("else", "endif"):
            unknown = set(WORD.findall(token.text, match.end())) - own - {"defined"}
            if unknown:
                raise SplitRefused(f"macros must be expanded, but a condition depends on {sorted(unknown)[0]}")
    if preprocess is None:
        raise SplitRefused("macros must be expanded")
    mark = f"__dice_{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}_"  # no text can hold its own
    kept = [t for t in tokens if t.kind == "directive" and _KEPT.match(t.text)]
    marked, position = [], 0
    for i, token in enumerate(kept):
        marked += [text[position : token.start], f"{mark}{i}__"]
        position = token.end
    done = preprocess("".join([*marked, text[position:]]))
    return re.sub(rf"{mark}(\d+)__", lambda match: f"\n{kept[int(match.group(1))].text}\n", done)


def macros_change_the_split(tokens: Sequence[Token]) -> bool:
    """Whether a macro of the source is used at namespace scope and its body declares something.

    Launches need no expansion: they are rewritten inside the macro's body.
    """
    shaping = set()
    for token in tokens:
        match = DEFINE.match(token.text) if token.kind == "directive" else None
        if match and _SHAPING.search(token.text[match.end() :]):
            shaping.add(match.group(1))
    if not shaping:
        return False
    depth = 0
    for token in tokens:
        if token.kind == "punctuator":
            depth += {"{": 1, "}": -1}.get(token.text, 0)
        elif token.kind == "identifier" and token.text in shaping and depth == 0:
            return True
    return False
