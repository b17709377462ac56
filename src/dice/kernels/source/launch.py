"""Kernel launches `k<<<grid, block, shared, stream>>>(arguments)`: found in text, and rewritten by a callback."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dice.kernels.source.lexer import (
    CLOSERS,
    Refuted,
    SplitRefused,
    Token,
    line_number,
    matching,
    source_of,
    split_commas,
    tokenize,
)

_KEYWORDS = frozenset({"return", "else", "do", "if", "while", "for", "switch", "case", "and", "or", "not"})


@dataclass(frozen=True)
class Launch:
    """One launch. Every part is verbatim source text; `start` and `end` are offsets into the text it was found in.

    callee: `k`, `ns::k<float, 4>`, `(flag ? a : b)`, `table[i]`, ...
    configuration: what stands between `<<<` and `>>>`; `parts` the same at its commas: grid[, block[, shared[, stream]]]
        (CUDA 13's headers take 1 for a block that is left out; earlier ones refuse it when the host unit is compiled).
    arguments: what stands between the parentheses, "" without arguments.
    """

    callee: str
    configuration: str
    parts: tuple[str, ...]
    arguments: str
    start: int
    end: int


def find_launches(text: str) -> list[Launch]:
    """All launches in `text`, in order, those in the bodies of `#define`s included.

    Raises SplitRefused when a `<<<` is not part of a launch that can be taken apart.
    """
    launches: list[Launch] = []
    tokens = tokenize(text)
    for token in tokens:
        if token.kind == "directive" and "<<<" in token.text:
            body = [
                Token(t.kind, t.text, t.start + token.start, t.end + token.start)
                for t in tokenize(token.text, directives=False)
            ]
            launches.extend(_find(text, body))
    launches.extend(_find(text, tokens))
    return sorted(launches, key=lambda launch: launch.start)


def rewrite_launches(text: str, render: Callable[[Launch], str]) -> str:
    """`text` with every launch replaced by `render(launch)`. Everything else stays verbatim.

    Inside a `#define` the rendered text must stay on one line (line splices in the launch's own parts are kept).
    """
    pieces: list[str] = []
    position = 0
    for launch in find_launches(text):
        if launch.start < position:
            raise SplitRefused("a launch inside another launch")
        pieces += [text[position : launch.start], render(launch)]
        position = launch.end
    return "".join([*pieces, text[position:]])


def _find(text: str, tokens: Sequence[Token]) -> list[Launch]:
    launches = []
    for i, token in enumerate(tokens):
        if token.text != "<<<":
            continue
        first = _callee_start(text, tokens, i)
        last = _configuration_end(text, tokens, i)
        closing = matching(tokens, last + 1)
        configuration = tokens[i + 1 : last - 2]
        parts = tuple(source_of(text, group) for group in split_commas(configuration))
        if not 1 <= len(parts) <= 4 or not all(parts):
            # A macro may stand for several values.
            sure = all(t.kind != "identifier" or not t.text.isupper() for t in configuration)
            message = f"a launch with {sum(map(bool, parts))} configuration values"
            raise Refuted(line_number(text, token.start), message) if sure else SplitRefused(message)
        launches.append(
            Launch(
                callee=text[tokens[first].start : tokens[i - 1].end],
                configuration=source_of(text, configuration),
                parts=parts,
                arguments=source_of(text, tokens[last + 2 : closing]),
                start=tokens[first].start,
                end=tokens[closing].end,
            )
        )
    return launches


def _callee_start(text: str, tokens: Sequence[Token], launch: int) -> int:
    """Index of the first token of the expression before the `<<<` at `launch`."""
    i = launch - 1
    while i >= 0:
        token = tokens[i]
        if token.text in (")", "]"):
            i = _opening(tokens, i)
            called = i > 0 and tokens[i - 1].text not in _KEYWORDS
            if token.text == "]" or (called and (tokens[i - 1].kind == "identifier" or tokens[i - 1].text == ">")):
                i -= 1  # x[..], f(..): the expression goes on to the left
                continue
        elif token.text == ">":
            i = _angle_opening(tokens, i) - 1
            continue
        elif token.kind != "identifier":
            break
        if i > 0 and tokens[i - 1].text in ("::", ".", "->", "##"):
            i -= 2
            named = (
                i >= 0 and tokens[i].text not in _KEYWORDS and (tokens[i].kind == "identifier" or tokens[i].text == ">")
            )
            if tokens[i + 1].text == "::" and not named:
                return i + 1  # a leading ::
            continue
        return i
    raise SplitRefused(f"a launch without a kernel name at line {line_number(text, tokens[launch].start)}")


def _opening(tokens: Sequence[Token], closing: int) -> int:
    depth = 0
    for i in range(closing, -1, -1):
        if tokens[i].kind == "punctuator":
            if tokens[i].text in CLOSERS:
                depth += 1
            elif tokens[i].text in CLOSERS.values():
                depth -= 1
                if depth == 0:
                    return i
    raise SplitRefused("brackets do not match before a launch")


def _angle_opening(tokens: Sequence[Token], closing: int) -> int:
    depth, i = 0, closing
    while i >= 0:
        token = tokens[i]
        if token.kind == "punctuator":
            if token.text in (")", "]", "}"):
                i = _opening(tokens, i)
            elif token.text == ">":
                depth += 1
            elif token.text == "<":
                depth -= 1
                if depth == 0:
                    return i
            elif token.text in (";", "{", "("):
                break
        i -= 1
    raise SplitRefused("template arguments before a launch are never opened")


def _configuration_end(text: str, tokens: Sequence[Token], launch: int) -> int:
    """Index of the last `>` of the `>>>` that ends the configuration; a `(` follows it."""
    i = launch + 1
    while i + 1 < len(tokens):
        token = tokens[i]
        if token.kind == "punctuator" and token.text in "([{":
            i = matching(tokens, i)
        elif token.kind == "punctuator" and token.text in (")", "]", "}", ";"):
            break
        elif (
            [t.text for t in tokens[i : i + 3]] == [">", ">", ">"]
            and tokens[i].end == tokens[i + 1].start
            and tokens[i + 1].end == tokens[i + 2].start
            and i + 3 < len(tokens)
            and tokens[i + 3].text == "("
        ):
            return i + 2
        i += 1
    raise Refuted(line_number(text, tokens[launch].start), "expected a >>>")
