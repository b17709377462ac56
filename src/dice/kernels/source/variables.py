"""Variables that keep their value from one call of a function to the next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dice.kernels.source.declaration import Function
from dice.kernels.source.items import Item
from dice.kernels.source.lexer import Token, partner, words

_UNCHANGING = words("constexpr __constant__ __shared__ using typedef struct class union enum namespace operator")
_LASTING = words("static thread_local")


@dataclass(frozen=True)
class Variable:
    """`name`, which stands at the offset `start` where it is declared."""

    name: str
    start: int


def lasting_variables(
    tokens: Sequence[Token], items: Sequence[Item], functions: Sequence[Function]
) -> Iterator[Variable]:
    """Variables at namespace scope, and `static` and `thread_local` ones of functions and classes, that may change.

    tokens, items: of the whole source; functions: its outermost definitions.
    """
    for item in items:
        if item.kind in ("host_variable", "device_variable"):
            yield from _declared(item.tokens, 0, in_function=False)
        elif item.kind == "type":
            yield from _static(item.tokens, in_function=False)
    for function in functions:
        yield from _static(tokens[function.brace : function.last + 1], in_function=True)


def _static(tokens: Sequence[Token], *, in_function: bool) -> Iterator[Variable]:
    for i, token in enumerate(tokens):
        if token.text in _LASTING and token.kind == "identifier" and tokens[i - 1].text not in _LASTING:
            yield from _declared(tokens, i, in_function=in_function)


def _declared(tokens: Sequence[Token], i: int, *, in_function: bool) -> Iterator[Variable]:
    """What the declaration at tokens[i] declares, if that can change. A `(` makes a function of it outside of functions."""
    found: list[Token] = []
    name: Token | None = None
    pointer = constant = initialised = False
    while i < len(tokens) and tokens[i].text not in (";", "}"):
        token = tokens[i]
        if token.text in _UNCHANGING or (token.text == "(" and not initialised and not in_function):
            return
        if token.text in ("(", "{", "[", "=") and token.kind == "punctuator":
            initialised = True
            i = partner(tokens, i) or i
        elif token.text == "<" and not initialised:
            i = partner(tokens, i) or i
        elif token.text == "," and token.kind == "punctuator":
            found += [name] if name is not None else []
            name, initialised = None, False
        elif not initialised:
            name = token if token.kind == "identifier" else name
            constant = constant or token.text == "const"
            pointer = pointer or token.text == "*"
        i += 1
    if not constant or pointer:
        yield from (Variable(token.text, token.start) for token in [*found, *([name] if name else [])])
