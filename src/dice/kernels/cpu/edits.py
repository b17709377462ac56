"""Replacements in a text, collected first and made at once."""

from __future__ import annotations

from dataclasses import dataclass, field

from dice.kernels.source.lexer import SplitRefused


@dataclass
class Edits:
    """Replacements in a text, applied at once. Insertions at one place keep the order in which they were made."""

    text: str
    items: list[tuple[int, int, int, str]] = field(default_factory=list)

    def replace(self, start: int, end: int, by: str) -> None:
        self.items.append((start, end, len(self.items), by))

    def insert(self, at: int, text: str) -> None:
        self.replace(at, at, text)

    def apply(self) -> str:
        pieces, position = [], 0
        for start, end, _, by in sorted(self.items):
            if start < position:
                raise SplitRefused("overlapping edits")
            pieces += [self.text[position:start], by]
            position = end
        return "".join([*pieces, self.text[position:]])
