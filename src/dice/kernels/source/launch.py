"""Kernel launches `k<<<grid, block, shared, stream>>>(arguments)`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dice.kernels.source.lexer import (
    Lines,
    Refuted,
    SplitRefused,
    Token,
    at_commas,
    matching,
    read_tokens,
    source_of,
    words,
)

_KEYWORDS = words("return else do if while for switch case and or not")
_NESTING = 10
"""All launches together have at most so many times the tokens of the source: those in others' parts count again."""


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


def read_launches(text: str, tokens: Sequence[Token], lines: Lines) -> tuple[list[Launch], list[BrokenLaunch]]:
    """All launches in `text`, those in the bodies of `#define`s included, and what only looks like one; both in order."""
    launches: list[Launch] = []
    broken: list[BrokenLaunch] = []
    bodies = [
        read_tokens(token.text, directives=False, offset=token.start)
        for token in tokens
        if token.kind == "directive" and "<<<" in token.text
    ]
    for part in (*bodies, tokens):
        reader = _LaunchReader(text, part, lines)
        for i, token in enumerate(part):
            if token.text == "<<<":
                try:
                    launches.append(reader.read(i))
                except SplitRefused as error:
                    broken.append(BrokenLaunch(token.start, error))
    return sorted(launches, key=lambda it: it.start), sorted(broken, key=lambda it: it.start)


class _LaunchReader:
    """Takes launches among `tokens` apart."""

    def __init__(self, text: str, tokens: Sequence[Token], lines: Lines) -> None:
        self._text, self._tokens, self._lines = text, tokens, lines
        self._left = _NESTING * len(tokens)

    def read(self, i: int) -> Launch:
        """The launch whose `<<<` is tokens[i]. Raises SplitRefused, or Refuted where no macro could mend it."""
        text, tokens = self._text, self._tokens
        first = self._callee_start(i)
        last = self._configuration_end(i)
        closing = matching(tokens, last + 1)
        self._left -= closing - first
        if self._left < 0:
            raise SplitRefused("launches nested too deep")
        configuration = tokens[i + 1 : last - 2]
        parts = tuple(source_of(text, group) for group in at_commas(configuration))
        if not 1 <= len(parts) <= 4 or not all(parts):
            # A macro may stand for several values.
            sure = all(t.kind != "identifier" or not t.text.isupper() for t in configuration)
            message = f"a launch with {sum(map(bool, parts))} configuration values"
            raise Refuted(self._line(i), message) if sure else SplitRefused(message)
        return Launch(
            callee=text[tokens[first].start : tokens[i - 1].end],
            configuration=source_of(text, configuration),
            parts=parts,
            arguments=source_of(text, tokens[last + 2 : closing]),
            start=tokens[first].start,
            opening=tokens[i].start,
            closing=tokens[last].end,
            end=tokens[closing].end,
        )

    def _line(self, i: int) -> int:
        return self._lines.number(self._tokens[i].start)

    def _callee_start(self, launch: int) -> int:
        """Index of the first token of the expression before the `<<<` at `launch`."""
        tokens, i = self._tokens, launch - 1
        while i >= 0:
            token = tokens[i]
            if token.text in (")", "]"):
                i = _opening(tokens, i)
                if token.text == "]" or (i > 0 and _goes_on(tokens[i - 1])):
                    i -= 1  # x[..], f(..): the expression goes on to the left
                    continue
            elif token.text == ">":
                i = _opening(tokens, i) - 1
                continue
            elif token.kind != "identifier":
                break
            if i > 0 and tokens[i - 1].text in ("::", ".", "->", "##"):
                i -= 2
                if tokens[i + 1].text == "::" and not (i >= 0 and _goes_on(tokens[i])):
                    return i + 1  # a leading ::
                continue
            return i
        raise SplitRefused(f"a launch without a kernel name at line {self._line(launch)}")

    def _configuration_end(self, launch: int) -> int:
        """Index of the last `>` of the `>>>` that ends the configuration; a `(` follows it."""
        tokens, i = self._tokens, launch + 1
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
        raise Refuted(self._line(launch), "expected a >>>")


def _goes_on(token: Token) -> bool:
    """Whether a `(` or `::` behind the token goes on with an expression or a name: `f(x)`, `a[i](x)`, `A<T>::k`."""
    return token.text in (">", "]") or (token.kind == "identifier" and token.text not in _KEYWORDS)


def _opening(tokens: Sequence[Token], closing: int) -> int:
    """Index of the `(`, `[` or `<` that tokens[closing] closes."""
    if tokens[closing].reach >= 0:
        raise SplitRefused("brackets do not match before a launch")
    return closing + tokens[closing].reach
