"""Variables that keep their value from one call of a function to the next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dice.kernels.source.declaration import Function
from dice.kernels.source.items import Item, declared_names
from dice.kernels.source.lexer import Token, shallow, words

_UNCHANGING = words("constexpr __constant__ __shared__ using typedef namespace operator")
_LASTING = words("static thread_local")


@dataclass(frozen=True)
class Variable:
    """`name`, which stands at the offset `start` where it is declared."""

    name: str
    start: int


def lasting_variables(tokens: Sequence[Token], items: Sequence[Item], functions: Sequence[Function]) -> list[Variable]:
    """Variables at namespace scope, and `static` and `thread_local` ones of functions and classes, that may change.

    tokens, items: of the whole source; functions: its outermost definitions, those of members included.
    """
    return list(dict.fromkeys(_variables(tokens, items, functions)))


def _variables(tokens: Sequence[Token], items: Sequence[Item], functions: Sequence[Function]) -> Iterator[Variable]:
    for item in items:
        if item.kind in ("host_variable", "device_variable"):
            yield from _declared(item.tokens, may_be_function=False)
        elif item.kind == "type":
            yield from _static(item.tokens, may_be_function=True)
    for function in functions:
        yield from _static(tokens[function.brace : function.last + 1], may_be_function=False)


def _static(tokens: Sequence[Token], *, may_be_function: bool) -> Iterator[Variable]:
    i = 0
    while i < len(tokens):
        if tokens[i].text in _LASTING:
            end = next((j for j in shallow(tokens, i) if tokens[j].text in (";", "}")), len(tokens))
            first = i - 1 if i and tokens[i - 1].text == "const" else i
            yield from _declared(tokens[first:end], may_be_function=may_be_function)
            i = end
        i += 1


def _declared(tokens: Sequence[Token], *, may_be_function: bool) -> Iterator[Variable]:
    """What a declaration declares, if that can change. may_be_function: if it has a parenthesis, it is one."""
    texts = [tokens[i].text for i in shallow(tokens)]
    declared = texts[: texts.index("=")] if "=" in texts else texts
    constant = "const" in declared and "*" not in declared
    if not constant and not _UNCHANGING & set(texts) and not (may_be_function and "(" in declared):
        yield from (Variable(token.text, token.start) for token in declared_names(tokens))
