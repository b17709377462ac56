"""How often C++ loops run, where it is a constant: few rounds over host memory prepare a launch, many do its work."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from dice.kernels.source.cuda_source import CudaSource
from dice.kernels.source.lexer import Token, partner, read_tokens, words
from dice.kernels.source.macros import DEFINE

_CONSTANT = re.compile(
    r"\b(?:constexpr|const)\s+(?:static\s+)?(?:unsigned\s+)?(?:int|long|auto|size_t|std\s*::\s*size_t|u?int\d+_t)\s+(\w+)\s*=\s*([^;{}]{1,80});"
)
_SUM = re.compile(r"[\w\s+*/()-]+")
_LONG = 80
"""Characters of a constant expression."""
_LOOPS = words("for while do")
_LARGEST = 1 << 64
"""No type of C++ holds more; products of products would grow without bounds."""


def constants(source: CudaSource) -> dict[str, int]:
    """Whole numbers that the source gives a name, by macro or as constants."""
    text = " ".join(token.text for token in source.tokens if token.kind != "directive")
    macros = ((name, _definition(line)) for name, line in source.macros.items())
    written = [*((name, value) for name, value in macros if value is not None), *_CONSTANT.findall(text)]
    found: dict[str, int] = {}
    ambiguous: set[str] = set()
    for _ in range(3):  # constants that are made of others rarely need more than two steps
        for name, value in written:
            number = evaluated(value, found)
            if number is not None and found.setdefault(name, number) != number:
                ambiguous.add(name)
    return {name: number for name, number in found.items() if name not in ambiguous}


def _definition(line: str) -> str | None:
    """What `#define NAME ...` stands for, without comments; None for a macro with arguments."""
    match = DEFINE.match(line)
    if match is None or match.group(2) is not None:
        return None
    return " ".join(token.text for token in read_tokens(line[match.end() :], directives=False))


def evaluated(text: str, known: Mapping[str, int]) -> int | None:
    """The value of a sum or product of whole numbers and known constants; None where it is anything else."""
    if len(text) > _LONG or not _SUM.fullmatch(text) or "**" in text.replace(" ", ""):
        return None
    terms = [term.split("*") for term in text.replace("(", " ").replace(")", " ").split("+")]
    if "(" in text and len(terms) > 1:
        return None
    total = 0
    for factors in terms:
        product = 1
        for factor in factors:
            word = factor.strip()
            number = int(word) if word.isdecimal() else known.get(word)
            if number is None:
                return None
            product *= number
        total += product
    return total if total < _LARGEST else None


def rounds(loop: Sequence[Token], known: Mapping[str, int]) -> int | None:
    """How often the innermost statement of `loop` runs at most: the product of all `for (i = a; i < b; ++i)` in it; None
    where one of its loops does not say."""
    if any(token.text in ("while", "do", "goto") for token in loop):
        return None
    product, moved = 1, _moved(loop)
    for index, token in enumerate(loop):
        if token.text == "for":
            count = _count(loop, index, known, moved)
            if count is None:
                return None
            product *= count
    return product


def _moved(loop: Sequence[Token]) -> dict[str, int]:
    """Where each name is written to last, or has its address taken."""
    texts = [token.text for token in loop]
    return {
        text: place
        for place, text in enumerate(texts)
        if (place and texts[place - 1] in ("++", "--", "&")) or (place + 1 < len(texts) and texts[place + 1] in _WRITES)
    }


def _count(loop: Sequence[Token], index: int, known: Mapping[str, int], moved: Mapping[str, int]) -> int | None:
    closing = partner(loop, index + 1) if index + 1 < len(loop) else None
    if closing is None:
        return None
    parts: list[list[str]] = [[]]
    for token in loop[index + 2 : closing]:
        if token.text == ";":
            parts.append([])
        else:
            parts[-1].append(token.text)
    if len(parts) != 3 or len(parts[0]) < 3 or parts[0][-2] != "=" or len(parts[1]) < 3:
        return None
    variable = parts[0][-3]
    begin, end = evaluated(parts[0][-1], known), evaluated(" ".join(parts[1][2:]), known)
    steps = sorted(parts[2]) == sorted(["++", variable]) or (
        len(parts[2]) == 3 and parts[2][:2] == [variable, "+="] and parts[2][2].isdecimal()
    )
    if begin is None or end is None or not steps or parts[1][0] != variable or parts[1][1] not in ("<", "<=", "!="):
        return None
    return None if moved.get(variable, -1) > closing else max(0, end - begin + (parts[1][1] == "<="))


_WRITES = {"=", "+=", "-=", "*=", "++", "--", "/="}


def loop_spans(body: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Outermost loops, from their keyword to the end of what they repeat."""
    done = 0
    for index in range(len(body) - 1):
        end = loop_end(body, index) if index >= done else None
        if end is not None:
            done = end
            yield index, done


def loop_end(body: Sequence[Token], index: int) -> int | None:
    """Where the loop ends whose keyword is body[index]; None where none is."""
    if index + 1 >= len(body) or body[index].kind != "identifier" or body[index].text not in _LOOPS:
        return None
    closing = partner(body, index + 1) if body[index + 1].text == "(" else index
    return None if closing is None else _statement_end(body, closing + 1)


def _statement_end(body: Sequence[Token], start: int) -> int:
    """Index of the `}` or `;` that ends the statement at `start`; blocks that belong to it are passed over."""
    if start < len(body) and body[start].text == "{":
        return partner(body, start) or len(body)
    index = start
    while index < len(body) and body[index].text not in (";", "}"):
        if body[index].text in ("(", "{", "["):
            index = partner(body, index) or index
            if body[index].text == "}":
                break
        index += 1
    return index
