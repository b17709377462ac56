"""Tokens of CUDA C++ text, with their places.

Only what a splitter needs: comments and white space vanish, a preprocessor directive is one token, `<<<` is one
token, and every `>` stands alone (so `>>` closes two template lists, and `>>>` is three neighbours).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

TokenKind = Literal["identifier", "number", "string", "char", "punctuator", "directive"]

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


@dataclass(frozen=True, slots=True)
class Token:
    """`text` is source[start:end], verbatim."""

    kind: TokenKind
    text: str
    start: int
    end: int


_SPLICE = r"\\[ \t]*\r?\n"
_PATTERN = re.compile(
    rf"""
    (?P<space>(?:\s|{_SPLICE})+)
  | (?P<comment>//(?:{_SPLICE}|[^\n])*|/\*.*?\*/)
  | (?P<raw>(?:u8|[uUL])?R"(?P<fence>[^()\\\s]{{0,16}})\(.*?\)(?P=fence)")
  | (?P<string>(?:u8|[uUL])?"(?:{_SPLICE}|\\.|[^"\\\n])*")
  | (?P<char>(?:u8|[uUL])?'(?:\\.|[^'\\\n])+')
  | (?P<number>\.?[0-9](?:[eEpP][+-]|'[0-9A-Za-z]|[0-9A-Za-z_.])*)
  | (?P<identifier>[A-Za-z_$][A-Za-z0-9_$]*)
  | (?P<punctuator><<<(?!<)|<=>|<<=|->\*|\.\.\.|::|->|\+\+|--|<<|<=|==|!=|&&|\|\||[-+*/%^&|]=|\#\#|[^\s])
    """,
    re.VERBOSE | re.DOTALL,
)
_DIRECTIVE = re.compile(rf"\#(?:{_SPLICE}|/\*.*?\*/|//(?:{_SPLICE}|[^\n])*|[^\n])*", re.DOTALL)


def tokenize(text: str, *, directives: bool = True) -> list[Token]:
    """Tokens of `text`. With `directives=False` a `#` is an ordinary punctuator (for the body of a macro).

    Raises SplitRefused for an unterminated string or comment, and for a stray backslash.
    """
    tokens: list[Token] = []
    position, line_start = 0, True
    while position < len(text):
        if directives and line_start and text[position] == "#":
            match = _DIRECTIVE.match(text, position)
            assert match is not None
            tokens.append(Token("directive", match.group(), position, match.end()))
            position = match.end()
            continue
        match = _PATTERN.match(text, position)
        if match is None:
            raise SplitRefused(f"cannot be tokenised at line {line_number(text, position)}")
        kind = match.lastgroup
        if kind == "fence":
            kind = "raw"
        token_text = match.group()
        if kind == "space":
            line_start = line_start or "\n" in token_text.replace("\\\n", "").replace("\\\r\n", "")
        elif kind == "comment":
            pass
        else:
            line_start = False
            if kind == "punctuator" and (token_text in ('"', "'", "\\") or text.startswith("/*", position)):
                raise SplitRefused(f"unterminated literal or comment at line {line_number(text, position)}")
            if kind == "raw":
                kind = "string"
            tokens.append(Token(kind, token_text, position, match.end()))  # type: ignore[arg-type]
        position = match.end()
    return tokens


def line_number(text: str, offset: int) -> int:
    """Line of `offset`, counted from 1."""
    return text.count("\n", 0, offset) + 1


def matching(tokens: Sequence[Token], index: int) -> int:
    """Index of the bracket that closes tokens[index], one of ( [ {. Raises SplitRefused if it never closes."""
    stack: list[str] = []
    for i in range(index, len(tokens)):
        token = tokens[i]
        if token.kind != "punctuator":
            continue
        if token.text in OPENERS:
            stack.append(token.text)
        elif token.text in CLOSERS:
            if stack.pop() != CLOSERS[token.text]:
                raise SplitRefused("brackets do not match")
            if not stack:
                return i
    raise SplitRefused("a bracket is never closed")


def matching_angle(tokens: Sequence[Token], index: int) -> int:
    """Index of the `>` that closes the template list opened by the `<` at tokens[index]."""
    depth, i = 0, index
    while i < len(tokens):
        token = tokens[i]
        if token.kind == "punctuator":
            if token.text == "<":
                depth += 1
            elif token.text == ">":
                depth -= 1
                if depth == 0:
                    return i
            elif token.text in OPENERS:
                i = matching(tokens, i)
            elif token.text in (";", "}", ")", "]"):
                break
        i += 1
    raise SplitRefused("a template list is never closed")


def split_commas(tokens: Sequence[Token]) -> list[list[Token]]:
    """Groups between the commas that lie outside every bracket and template list. No tokens: no groups.

    A `<` opens a template list when it follows an identifier and closes before the end of the list.
    """
    groups: list[list[Token]] = [[]]
    i = 0
    while i < len(tokens):
        token = tokens[i]
        end = i
        if token.kind == "punctuator" and token.text in OPENERS:
            end = matching(tokens, i)
        elif token.text == "<" and i > 0 and tokens[i - 1].kind == "identifier":
            try:
                end = matching_angle(tokens, i)
            except SplitRefused:
                end = i
        if token.text == "," and token.kind == "punctuator":
            groups.append([])
        else:
            groups[-1].extend(tokens[i : end + 1])
        i = end + 1
    return [] if groups == [[]] else groups


def source_of(text: str, tokens: Sequence[Token]) -> str:
    """The verbatim text from the first to the last of `tokens`, comments between them included."""
    return text[tokens[0].start : tokens[-1].end] if tokens else ""


def identifiers(text: str) -> set[str]:
    """All identifiers of a text, those inside preprocessor directives included, those in strings not."""
    found: set[str] = set()
    for token in tokenize(text):
        if token.kind == "identifier":
            found.add(token.text)
        elif token.kind == "directive":
            found.update(_WORD.findall(token.text))
    return found


_WORD = re.compile(r"[A-Za-z_]\w*")
