"""Kernel launches `k<<<grid, block, shared, stream>>>(arguments)`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dice.kernels.source.lexer import (
    Refuted,
    SplitRefused,
    Token,
    line_number,
    matching,
    read_tokens,
    source_of,
    split_at,
    words,
)

_KEYWORDS = words("return else do if while for switch case and or not")


@dataclass(frozen=True)
class Launch:
    """One launch. Every part is verbatim source text; the places are offsets into the source.

    callee: `k`, `ns::k<float, 4>`, `(flag ? a : b)`, `table[i]`, ...
    configuration: what stands between `<<<` and `>>>`; `parts` the same at its commas: grid[, block[, shared[, stream]]]
        (CUDA 13's headers take 1 for a block that is left out; earlier ones refuse it when the host unit is compiled).
    arguments: what stands between the parentheses, "" without arguments.
    start, opening, closing, end: where the callee begins, where `<<<` begins, where `>>>` ends, where all ends.
    """

    callee: str
    configuration: str
    parts: tuple[str, ...]
    arguments: str
    start: int
    opening: int
    closing: int
    end: int


@dataclass(frozen=True)
class BrokenLaunch:
    """A `<<<` at the offset `start` that is not part of a launch that can be taken apart, and why."""

    start: int
    error: SplitRefused


def read_launches(text: str, tokens: Sequence[Token]) -> tuple[list[Launch], list[BrokenLaunch]]:
    """All launches in `text`, those in the bodies of `#define`s included, and what only looks like one; both in order."""
    launches: list[Launch] = []
    broken: list[BrokenLaunch] = []
    bodies = [
        read_tokens(token.text, directives=False, offset=token.start)
        for token in tokens
        if token.kind == "directive" and "<<<" in token.text
    ]
    for part in (*bodies, tokens):
        for i, token in enumerate(part):
            if token.text == "<<<":
                try:
                    launches.append(_launch(text, part, i))
                except SplitRefused as error:
                    broken.append(BrokenLaunch(token.start, error))
    return sorted(launches, key=lambda it: it.start), sorted(broken, key=lambda it: it.start)


def _launch(text: str, tokens: Sequence[Token], i: int) -> Launch:
    """The launch whose `<<<` is tokens[i]. Raises SplitRefused, or Refuted where no macro could mend it."""
    token = tokens[i]
    first = _callee_start(text, tokens, i)
    last = _configuration_end(text, tokens, i)
    closing = matching(tokens, last + 1)
    configuration = tokens[i + 1 : last - 2]
    parts = tuple(source_of(text, group) for group in split_at(configuration, ","))
    if not 1 <= len(parts) <= 4 or not all(parts):
        # A macro may stand for several values.
        sure = all(t.kind != "identifier" or not t.text.isupper() for t in configuration)
        message = f"a launch with {sum(map(bool, parts))} configuration values"
        raise Refuted(line_number(text, token.start), message) if sure else SplitRefused(message)
    return Launch(
        callee=text[tokens[first].start : tokens[i - 1].end],
        configuration=source_of(text, configuration),
        parts=parts,
        arguments=source_of(text, tokens[last + 2 : closing]),
        start=tokens[first].start,
        opening=token.start,
        closing=tokens[last].end,
        end=tokens[closing].end,
    )


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
            i = _opening(tokens, i) - 1
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
    """Index of the `(`, `[` or `<` that tokens[closing] closes."""
    if tokens[closing].reach >= 0:
        raise SplitRefused("brackets do not match before a launch")
    return closing + tokens[closing].reach


def _configuration_end(text: str, tokens: Sequence[Token], launch: int) -> int:
    """Index of the last `>` of the `>>>` that ends the configuration; a `(` follows it."""
    i = launch + 1
    while i + 1 < len(tokens):
        token = tokens[i]
        if token.kind == "punctuator" and token.text in "([{":
            i = matching(tokens, i)
        elif token.kind == "punctuator" and token.text in (")", "]", "}", ";", "<<<"):
            break
        elif (
            [t.text for t in tokens[i : i + 4]] == [">", ">", ">", "("]
            and tokens[i].end == tokens[i + 1].start
            and tokens[i + 1].end == tokens[i + 2].start
        ):
            return i + 2
        i += 1
    raise Refuted(line_number(text, tokens[launch].start), "expected a >>>")
