"""How far a declaration of CUDA C++ goes, at namespace scope or in a class."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from dice.kernels.source.declaration import SPECIFIERS_WITH_ARGUMENTS
from dice.kernels.source.items import CLASS_KEYS
from dice.kernels.source.lexer import CLOSERS, CONDITIONAL, OPENERS, Lines, Token, words

_WITH_ARGUMENTS = SPECIFIERS_WITH_ARGUMENTS | words("static_assert decltype asm __asm__ explicit requires")
_AFTER_PARAMETERS = words("const volatile noexcept override final throw requires try")


class Extent(NamedTuple):
    """Index of a declaration's last token, of the `{` of its body or members (None: it has none), and what it is.

    kind: `type` for a class or enum with members, `call` for a macro call without `;`.
    """

    last: int
    brace: int | None
    kind: Literal["function", "type", "call", "other", "unreadable"]


@dataclass
class _Seen:
    """What a declaration has had so far: parameters, an `=`, a class's key, the `:` behind parameters, its members."""

    parameters: bool = False
    assigned: bool = False
    class_key: bool = False
    initialisers: bool = False
    members: int | None = None
    previous: str = ""

    def take(self, token: Token) -> None:
        """A token other than those of template lists and blocks."""
        if token.text == "(" and self.previous not in _WITH_ARGUMENTS:
            self.parameters = True
        elif token.text == "=" and self.previous != "operator":
            self.assigned = True
        elif token.text in CLASS_KEYS:
            self.class_key = True
        elif token.text == ":" and self.parameters:
            self.initialisers = True

    def opens_list(self, before: Token) -> bool:
        """Whether a `<` opens a template list."""
        named = before.kind == "identifier" and self.previous != "operator"
        return self.previous == "template" or (named and not self.assigned)

    @property
    def begins_members(self) -> bool:
        """Whether a `{` begins the members of a class or enum."""
        return self.class_key and not self.assigned

    def begins_body(self, before: Token) -> bool:
        """Whether a `{` begins the body of a function, rather than a value: x = {1}, x{1}, Foo() : x{1}."""
        member = self.initialisers and (before.kind == "identifier" or self.previous == ">")
        return self.parameters and not self.assigned and not member


class Extents:
    """Finds the ends of declarations. `refusal`: the first thing that keeps them from being certain, or None."""

    def __init__(self, tokens: Sequence[Token], lines: Lines) -> None:
        self.refusal: str | None = None
        self._tokens, self._lines = tokens, lines
        self._unpaired = [
            i for i, token in enumerate(tokens) if not token.reach and (token.text in OPENERS or token.text in CLOSERS)
        ]
        self._conditionals = [
            i for i, token in enumerate(tokens) if token.kind == "directive" and CONDITIONAL.match(token.text)
        ]

    def line(self, token: Token) -> int:
        """The line of a token, counted from 1."""
        return self._lines.number(token.start)

    def refuse(self, reason: str) -> None:
        """Note what keeps the reading from being certain."""
        self.refusal = self.refusal or reason

    def is_paired(self, first: int, last: int) -> bool:
        """Whether each bracket among tokens[first : last + 1] has its partner."""
        place = bisect_left(self._unpaired, first)
        return place == len(self._unpaired) or self._unpaired[place] > last

    def read(self, first: int, end: int, *, in_class: bool = False) -> Extent:
        """How far the declaration at `first` goes, at most to before `end`."""
        tokens, seen, i = self._tokens, _Seen(), first
        while i < end:
            token = tokens[i]
            last = i + max(token.reach, 0) if token.text in OPENERS else i
            if token.kind == "directive":
                self.refuse(f"a preprocessor line inside a declaration at line {self.line(token)}")
                i += 1
                continue
            if token.text in OPENERS:
                if last == i:
                    self.refuse("a bracket is never closed")
                    return Extent(i, None, "unreadable")
                if not in_class:
                    self._check_conditionals(i, last)
            if token.text == ";":
                return Extent(i, seen.members, "other" if seen.members is None else "type")
            if token.text == "}":
                break
            if seen.members is None:
                if token.text == "{":
                    if i == first:
                        self.refuse(f"a block outside of any function at line {self.line(token)}")
                        return Extent(last, None, "unreadable")
                    if seen.begins_body(tokens[i - 1]):
                        return Extent(last, i, "function")
                    seen.members = i if seen.begins_members else None
                elif token.text == "<" and seen.opens_list(tokens[i - 1]):
                    if token.reach <= 0:
                        self.refuse("a template list is never closed")
                    last = i + max(token.reach, 0)
                elif token.text == "(" and self._is_bare_call(first, last, in_class):
                    return Extent(last, None, "call")
                else:
                    seen.take(token)
            seen.previous = tokens[last].text
            i = last + 1
        self.refuse(f"a declaration without an end at line {self.line(tokens[first])}")
        return Extent(max(first, min(i, end) - 1), seen.members, "unreadable")

    def _check_conditionals(self, first: int, last: int) -> None:
        """Refuse blocks whose brackets match only when both branches of an #if are taken together."""
        place = bisect_left(self._conditionals, first)
        if place == len(self._conditionals) or self._conditionals[place] > last:
            return
        depth = 0
        levels: list[int] = []
        for token in self._tokens[first : last + 1]:
            depth += (token.text in OPENERS) - (token.text in CLOSERS)
            if token.kind == "directive" and (match := CONDITIONAL.match(token.text)):
                if match.group(1).startswith("if"):
                    levels.append(depth)
                elif not levels or levels[-1] != depth:
                    self.refuse("brackets that depend on an #if")
                    return
                elif match.group(1) == "endif":
                    levels.pop()
        if levels:
            self.refuse("an #if that is not closed in its block")

    def _is_bare_call(self, first: int, closing: int, in_class: bool) -> bool:
        """NAME(...) followed by the start of another declaration: a macro call that needs no semicolon."""
        tokens = self._tokens
        if tokens[first].kind != "identifier" or tokens[first + 1].text != "(" or tokens[first].text in _WITH_ARGUMENTS:
            return False
        if closing + 1 >= len(tokens):
            return True
        following = tokens[closing + 1]
        if in_class and following.text in _AFTER_PARAMETERS:
            return False
        return following.kind in ("identifier", "directive")
