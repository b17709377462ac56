"""Narrowing in braces (`int n{wide};`): what nvcc makes of it, told from what g++ says.

Stock's host code passes nvcc's front end first and g++ then. g++ refuses constants that do not fit and warns of all
else. The front end (seen with nvcc 13) warns as well where braces initialise what they name (`int n{x}`, `dim3 g{x, 1}`,
`float4 v = {...}`), and refuses where they are a list of elements (`std::vector<int>{x}`, an `IntArrayRef`). For
returned, assigned and other values it depends on types that the text does not show.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from dice.kernels.source.lexer import CLOSERS, OPENERS, Token, tokenize

FLAGS = ("-Wnarrowing", "-Wno-error=narrowing", "-fdiagnostics-column-unit=byte")
"""For g++: warn, at places that can be found again."""
Judgement = Literal["allowed", "refused", "unsure"]

_WARNING = re.compile(r"^([^\s:][^:\n]*):(\d+):(\d+): warning: (narrowing conversion .*?)(?: \[-Wnarrowing\])?$", re.M)
_NUMBERS = frozenset(
    {"bool", "char", "short", "int", "long", "unsigned", "signed", "float", "double", "size_t", "ssize_t", "uint"}
    | {f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)}
)
_STRUCTS = frozenset({"dim3"}) | {
    f"{base}{n}"
    for base in ("char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "float", "double")
    for n in (1, 2, 3, 4)
}
_QUALIFIERS = frozenset({"const", "constexpr", "static", "volatile", "std", "at", "torch", "c10"})
_LISTS = frozenset({"vector", "initializer_list", "ArrayRef", "IntArrayRef"})
_METHODS = frozenset(
    {"view", "reshape", "expand", "permute", "repeat", "sum", "mean", "new_zeros", "new_empty", "resize_"}
)


def judge(text: str, source: str, output: str) -> tuple[Judgement, str]:
    """The worst of all narrowings that g++ warned of, with its message (`file(line): ...`; empty when allowed).

    text: the unit, with `#line`s that name `source`. output: what g++ said, with `FLAGS`.
    """
    found: tuple[Judgement, str] = ("allowed", "")
    places = {(int(m.group(2)), int(m.group(3))): m.group(4) for m in _WARNING.finditer(output) if m.group(1) == source}
    if not places:
        return found
    tokens, lines = tokenize(text), _line_starts(text, source)
    for (line, column), words in sorted(places.items()):
        starts = lines.get(line, [])
        judged = {_at(tokens, start + column - 1) for start in starts} or {"unsure"}
        message = f"{source}({line}): error: {words}"
        if judged == {"refused"}:
            return "refused", message
        if judged != {"allowed"}:
            found = "unsure", message
    return found


def _line_starts(text: str, source: str) -> dict[int, list[int]]:
    """Line of `source` -> the places in `text` where it begins (several after macros of ours or repeated items)."""
    starts: dict[int, list[int]] = {}
    number, inside, position = 0, False, 0
    for line in text.split("\n"):
        if match := re.match(r'#line (\d+)(?: "([^"]*)")?', line):
            number, inside = int(match.group(1)), match.group(2) in (None, source)
        else:
            if inside:
                starts.setdefault(number, []).append(position)
            number += 1
        position += len(line) + 1
    return starts


def _at(tokens: Sequence[Token], place: int) -> Judgement:
    index = next((i for i, token in enumerate(tokens) if token.start <= place < token.end), None)
    brace = _opener(tokens, index) if index is not None else None
    # A parenthesis that only groups stands between the value and its braces.
    while brace is not None and tokens[brace].text == "(" and not _is_call(tokens, brace):
        brace = _opener(tokens, brace)
    return "unsure" if brace is None or tokens[brace].text != "{" else _braces(tokens, brace)


def _opener(tokens: Sequence[Token], index: int) -> int | None:
    """Index of the bracket around tokens[index]; None when there is none in its statement."""
    depth = 0
    for i in range(index - 1, -1, -1):
        token = tokens[i]
        if token.kind == "directive" or (token.text == ";" and not depth):
            return None
        if token.text in CLOSERS and token.kind == "punctuator":
            depth += 1
        elif token.text in OPENERS and token.kind == "punctuator":
            if not depth:
                return i
            depth -= 1
    return None


def _is_call(tokens: Sequence[Token], paren: int) -> bool:
    before = tokens[paren - 1] if paren else None
    return before is not None and (before.kind == "identifier" or before.text in (")", "]", ">", "}"))


def _braces(tokens: Sequence[Token], brace: int) -> Judgement:
    """What the braces at tokens[brace] initialise, by what stands before them."""
    before = tokens[brace - 1] if brace else None
    if before is None:
        return "unsure"
    if before.text in ("(", ",", "{"):
        outer = brace - 1 if before.text in ("(", "{") else _opener(tokens, brace)
        if outer is None:
            return "unsure"
        if tokens[outer].text == "{":
            # Elements of an array are initialised one by one; those of a list are arguments.
            return _braces(tokens, outer)
        return "refused" if tokens[outer].text == "(" and _takes_lists(tokens, outer) else "unsure"
    end = brace - 1 if before.text == "=" else brace
    while end and tokens[end - 1].text == "]":
        opening = _opener(tokens, end - 1)
        if opening is None:
            return "unsure"
        end = opening
    words = _declaration(tokens, end)
    if before.text == "=" or (len(words) > 1 and words[-1] not in (*_NUMBERS, *_STRUCTS, ">")):
        words = words[:-1]  # the name that is declared
    types = {word for word in words if word not in (*_QUALIFIERS, "::", "<", ">")}
    if types & _LISTS:
        return "refused" if types <= _LISTS | _NUMBERS else "unsure"
    return "allowed" if types and types <= _NUMBERS | _STRUCTS else "unsure"


def _declaration(tokens: Sequence[Token], end: int) -> list[str]:
    """The words of a declaration, or of a type, that end before tokens[end]."""
    words: list[str] = []
    for token in reversed(tokens[:end]):
        if (token.kind != "identifier" and token.text not in ("::", "<", ">")) or token.text in ("return", "else"):
            break
        words.append(token.text)
    return words[::-1]


def _takes_lists(tokens: Sequence[Token], paren: int) -> bool:
    """Whether the call at tokens[paren] is one of PyTorch's, whose braces are sizes: torch::zeros({n}), x.view({n})."""
    before = [token.text for token in tokens[max(0, paren - 3) : paren]]
    if len(before) < 3:
        return False
    return (before[0] in ("torch", "at") and before[1] == "::") or (before[1] == "." and before[2] in _METHODS)
