"""Tokens of CUDA C++ text, with their places and their brackets' partners.

Comments and white space vanish, a preprocessor directive is one token, `<<<` is one token, and every `>` stands alone
(so `>>` closes two template lists, and `>>>` is three neighbours). Any text can be read, in time proportional to its
length: what cannot be part of a program (a literal without its end, a stray backslash) is a token of kind `unknown`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

TokenKind = Literal["identifier", "number", "string", "char", "punctuator", "directive", "unknown"]

OPENERS = {"(": ")", "[": "]", "{": "}"}
CLOSERS = {closer: opener for opener, closer in OPENERS.items()}


class SplitRefused(Exception):
    """This source is not split: `reason` says why, in one short phrase. It says nothing about whether it compiles."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Refuted(SplitRefused):
    """The source breaks a rule of CUDA that no header can change: it does not compile. `line` counts from 1."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line


@dataclass(slots=True, eq=False)
class Token:
    """`text` is source[start:end], verbatim; an identifier that goes on behind a line splice has it taken out.

    reach: of a bracket, how many tokens further its partner stands (negative from a closing one); 0 without a partner.
    `<` and `>` have partners where they enclose a list without `;` or a bracket that they cut in two.
    """

    kind: TokenKind
    text: str
    start: int
    end: int
    reach: int = 0


class Lines:
    """The lines of a text, counted from 1."""

    def __init__(self, text: str) -> None:
        self.starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def number(self, offset: int) -> int:
        """The line of an offset."""
        return bisect_right(self.starts, offset)


_SPLICE = r"\\[ \t]*\r?\n"
_SPLICES = re.compile(_SPLICE)
_PATTERN = re.compile(
    rf"""
    (?P<space>(?:\s|{_SPLICE})+)
  | (?P<comment>//(?:{_SPLICE}|[^\n])*)
  | (?P<block>/\*)
  | (?P<raw>(?:u8|[uUL])?R"(?P<fence>[^()\\\s]{{0,16}})\()
  | (?P<string>(?:u8|[uUL])?"(?:{_SPLICE}|\\.|[^"\\\n])*+")
  | (?P<char>(?:u8|[uUL])?'(?:\\.|[^'\\\n])+')
  | (?P<number>\.?[0-9](?:[eEpP][+-]|'[0-9A-Za-z]|[0-9A-Za-z_.])*)
  | (?P<identifier>[A-Za-z_$][A-Za-z0-9_$]*(?:(?:{_SPLICE})+[A-Za-z0-9_$]+)*)
  | (?P<unknown>["'](?:\\.|[^\\\n])*|\\)
  | (?P<punctuator><<<(?!<)|<=>|<<=|->\*|\.\.\.|::|->|\+\+|--|<<|<=|==|!=|&&|\|\||[-+*/%^&|]=|\#\#|[^\s])
    """,
    re.VERBOSE | re.DOTALL,
)
_DIRECTIVE_PART = re.compile(
    rf"""{_SPLICE}|//(?:{_SPLICE}|[^\n])*|(?P<block>/\*)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])'|[^\n/\\"']+|[^\n]""",
    re.DOTALL,
)
WORD = re.compile(r"[A-Za-z_]\w*")
"""An identifier, in a text that is not read as tokens."""
CONDITIONAL = re.compile(r"#\s*(if|ifdef|ifndef|elif|elifdef|elifndef|else|endif)\b")


def read_tokens(text: str, *, directives: bool = True, offset: int = 0) -> list[Token]:
    """Tokens of any `text`; never raises. With `directives=False` a `#` is an ordinary punctuator (for a macro's body).

    offset: added to all places, for a text that is part of another.
    """
    tokens: list[Token] = []
    position, line_start = 0, True
    last_comment = text.rfind("*/")
    while position < len(text):
        if directives and line_start and text[position] == "#":
            kind, end = "directive", _directive_end(text, position, last_comment)
        else:
            match = _PATTERN.match(text, position)
            assert match is not None  # `space` and `punctuator` take every character
            kind, end = match.lastgroup, match.end()
            if kind in ("space", "comment"):
                if kind == "space":
                    line_start = line_start or "\n" in _SPLICES.sub("", match.group())
                position = end
                continue
            if kind in ("block", "raw"):
                closing = "*/" if kind == "block" else f'){match.group("fence")}"'
                found = text.find(closing, end)
                end = len(text) if found < 0 else found + len(closing)
                if kind == "block" and found >= 0:
                    position = end
                    continue
                kind = "unknown" if found < 0 else "string"
            line_start = False
        spelt = text[position:end]
        if kind == "identifier" and "\\" in spelt:
            spelt = _SPLICES.sub("", spelt)
        tokens.append(Token(kind, spelt, position + offset, end + offset))  # pyright: ignore[reportArgumentType]
        position = end
    _pair(tokens)
    return tokens


def tokenize(text: str, *, directives: bool = True) -> list[Token]:
    """As `read_tokens`; raises SplitRefused for an unterminated string or comment, and for a stray backslash."""
    tokens = read_tokens(text, directives=directives)
    check_tokens(text, tokens)
    return tokens


def check_tokens(text: str, tokens: Sequence[Token]) -> None:
    """Raise SplitRefused for the first token of kind `unknown`."""
    unknown = next((token for token in tokens if token.kind == "unknown"), None)
    if unknown is not None:
        raise SplitRefused(f"unterminated literal or comment at line {Lines(text).number(unknown.start)}")


def _directive_end(text: str, position: int, last_comment: int) -> int:
    """Where the directive at `position` ends: at the end of its line, splices and comments over several lines passed.

    last_comment: where the text's last `*/` stands, so that no directive looks for one through the rest of the text in vain.
    """
    while match := _DIRECTIVE_PART.match(text, position):
        position = match.end()
        if match.lastgroup == "block" and position <= last_comment:
            position = text.find("*/", position) + 2
    return position


@dataclass(slots=True, eq=False)
class _Open:
    """A bracket that is open: `brace` is the innermost `{` at or around it, `angles` are the `<` directly inside."""

    index: int
    text: str
    outer: _Open | None
    brace: _Open | None = None
    angles: list[int] = field(default_factory=list)


def _pair(tokens: Sequence[Token]) -> None:
    """Set `reach`. A `}` closes the innermost `{`, whatever else is open in it; other brackets close their like.

    Branches of a conditional begin with the same brackets open; after `#endif` those of the first branch are, or, with
    no `#else`, those from before.
    """
    outside = _Open(-1, "", None)
    top = outside
    conditionals: list[tuple[_Open, _Open | None, bool]] = []  # open before, after the first branch; is there an #else
    for index, token in enumerate(tokens):
        text = token.text
        if token.kind == "directive":
            match = CONDITIONAL.match(text)
            word = match.group(1) if match else ""
            if word.startswith("if"):
                conditionals.append((top, None, False))
            elif word and conditionals:
                before, first, complete = conditionals.pop()
                first = first or top
                if word == "endif":
                    top = first if complete else before
                else:
                    conditionals.append((before, first, word == "else"))
                    top = before
        elif token.kind != "punctuator":
            continue
        elif text in OPENERS:
            top = _Open(index, text, top, top.brace)
            if text == "{":
                top.brace = top
        elif text in CLOSERS:
            opener = top.brace if text == "}" else top
            if opener is not None and opener.text == CLOSERS[text]:
                _join(tokens, opener.index, index)
                assert opener.outer is not None
                top = opener.outer
        elif text == "<":
            top.angles.append(index)
        elif text == ">" and top.angles:
            _join(tokens, top.angles.pop(), index)
        elif text == ";":
            top.angles.clear()


def _join(tokens: Sequence[Token], first: int, last: int) -> None:
    tokens[first].reach, tokens[last].reach = last - first, first - last


def words(text: str) -> frozenset[str]:
    """The words of a text, for tables of names."""
    return frozenset(text.split())


def partner(tokens: Sequence[Token], index: int) -> int | None:
    """Index of what closes the ( [ { or < at tokens[index]; None when none of `tokens` does."""
    found = index + tokens[index].reach
    return found if index < found < len(tokens) else None


def matching(tokens: Sequence[Token], index: int) -> int:
    """As `partner`; raises SplitRefused in the place of None."""
    found = partner(tokens, index)
    if found is None:
        raise SplitRefused(f"a {'template list' if tokens[index].text == '<' else 'bracket'} is never closed")
    return found


def shallow(tokens: Sequence[Token], start: int = 0, end: int | None = None) -> Iterator[int]:
    """Indices from `start` to before `end` of the tokens outside brackets and template lists, whose opening one counts.

    A `<` opens a template list when it follows an identifier and closes before the end of `tokens`.
    """
    i, end = start, len(tokens) if end is None else end
    while i < end:
        yield i
        opens = tokens[i].text in OPENERS or (tokens[i].text == "<" and i > 0 and tokens[i - 1].kind == "identifier")
        i = ((partner(tokens, i) or i) if opens else i) + 1


def at_commas(tokens: Sequence[Token]) -> list[Sequence[Token]]:
    """Groups between the commas that lie outside every bracket and template list. No tokens: no groups."""
    places = [-1, *(i for i in shallow(tokens) if tokens[i].text == ","), len(tokens)]
    return [tokens[i + 1 : j] for i, j in pairwise(places)] if tokens else []


def source_of(text: str, tokens: Sequence[Token]) -> str:
    """The verbatim text from the first to the last of `tokens`, comments between them included."""
    return text[tokens[0].start : tokens[-1].end] if tokens else ""


def words_of(tokens: Sequence[Token]) -> set[str]:
    """All identifiers among the tokens, those inside preprocessor directives included, those in strings not."""
    found: set[str] = set()
    for token in tokens:
        if token.kind == "identifier":
            found.add(token.text)
        elif token.kind == "directive":
            found.update(WORD.findall(token.text))
    return found


def identifiers(text: str) -> set[str]:
    """`words_of` a text. Raises SplitRefused."""
    return words_of(tokenize(text))
