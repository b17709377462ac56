"""What a CUDA source consists of: items at namespace scope, in order, and what they mention (reader.py makes them)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise, takewhile
from typing import Literal

from dice.kernels.source.declaration import EXECUTION_SPACES, MEMORY_SPACES, SPECIFIERS_WITH_ARGUMENTS, Function
from dice.kernels.source.lexer import Token, at_commas, partner, shallow, words, words_of

CLASS_KEYS = words("struct class union enum")

ItemKind = Literal[
    "include",  # name: the file, without its quotes or angle brackets
    "macro",  # #define or #undef; name: the macro
    "directive",  # any other preprocessor line (#if, #pragma, ...)
    "scope_open",  # `namespace a {`, `extern "C" {`; name: the namespace, "" when anonymous or a linkage block
    "scope_close",  # the `}` of a scope
    "kernel",  # __global__ definition
    "kernel_declaration",  # __global__ prototype
    "device_function",  # __device__ only, definition or declaration
    "host_device_function",  # both execution spaces, or constexpr without any
    "host_function",  # definition
    "host_declaration",  # prototype
    "device_variable",  # __constant__, __device__, __managed__ or __shared__ at namespace scope
    "constant",  # const or constexpr variable, initialised
    "host_variable",  # any other variable
    "type",  # struct, class, union, enum, typedef, `using X = ...`, concept
    "using",  # using-directives and -declarations, namespace aliases, static_assert
    "instantiation",  # explicit instantiation `template ... k<float>(...);`
    "macro_call",  # `NAME(...)` with or without a block or semicolon, such as PYBIND11_MODULE(...) {...}
    "unreadable",  # not a declaration, or one without an end
]


@dataclass(frozen=True)
class Item:
    """One thing at namespace scope. `text` is source[start:end], verbatim; `tokens` are its tokens.

    namespaces: names of the enclosing namespaces, outermost first ("" for an anonymous one).
    function: taken apart, for functions and kernels.
    line: of `start`, from 1.
    """

    kind: ItemKind
    name: str
    text: str
    start: int
    end: int
    line: int
    namespaces: tuple[str, ...] = ()
    function: Function | None = None
    tokens: Sequence[Token] = field(default=(), repr=False)

    @cached_property
    def identifiers(self) -> frozenset[str]:
        """All identifiers in the text."""
        return frozenset(words_of(self.tokens))

    @cached_property
    def declared(self) -> frozenset[str]:
        """`name`, and what else a typedef declares: `typedef struct A { } B, *C;`."""
        return frozenset((self.name, *typedef_names(self.tokens)))


def function_kind(function: Function) -> ItemKind:
    spaces = set(function.specifiers) & EXECUTION_SPACES
    if "__global__" in spaces:
        return "kernel" if function.is_defined else "kernel_declaration"
    if spaces == {"__device__"}:
        return "device_function"
    if "__device__" in spaces or (function.is_defined and "constexpr" in function.specifiers and not spaces):
        return "host_device_function"
    if not function.return_type and not spaces and "::" not in function.declarator:
        return "macro_call"
    return "host_function" if function.is_defined else "host_declaration"


def variable_kind(tokens: Sequence[Token]) -> ItemKind:
    texts = [t.text for t in tokens]
    declared = texts[: texts.index("=")] if "=" in texts else texts
    if MEMORY_SPACES & set(declared):
        return "device_variable"
    return "constant" if {"const", "constexpr"} & set(declared) and "*" not in declared else "host_variable"


def _behind_templates(tokens: Sequence[Token]) -> Sequence[Token]:
    """The tokens behind all `template <...>` at their beginning."""
    i = 0
    while i + 1 < len(tokens) and tokens[i].text == "template" and tokens[i + 1].reach > 0:
        i += 2 + tokens[i + 1].reach
    return tokens[i:]


def is_alias(tokens: Sequence[Token]) -> bool:
    """`template <..> using X = ..`, `template <..> concept ..`, and forward declarations of classes."""
    rest = _behind_templates(tokens)
    if not rest or rest[0].text not in CLASS_KEYS:
        return bool(rest) and rest[0].text in ("using", "concept")
    named = (rest[i] for i in shallow(rest, 1) if rest[i].text not in ("class", "struct", "<"))
    head = list(takewhile(lambda token: token.text not in (":", ";"), named))
    two_names = any(a.kind == b.kind == "identifier" for a, b in pairwise(head))  # a class and its variable
    return bool(head) and head[-1].kind == "identifier" and not two_names and not {"*", "&"} & {t.text for t in head}


def type_name(tokens: Sequence[Token]) -> str:
    if names := typedef_names(tokens):
        return names[0]
    rest = _behind_templates(tokens)
    key = next((i for i, token in enumerate(rest) if token.text in CLASS_KEYS | {"using", "concept"}), len(rest))
    named = next((t for t in _without_attributes(rest[key + 1 :]) if t.text not in ("class", "struct")), None)
    return named.text if named is not None and named.kind == "identifier" else ""


def typedef_names(tokens: Sequence[Token]) -> list[str]:
    """What a typedef declares, in order, the name of its class last; nothing where there is no typedef."""
    if not tokens or tokens[0].text != "typedef":
        return []
    brace = next((i for i in shallow(tokens) if tokens[i].text == "{"), 0)
    names = [token.text for token in declared_names(tokens[brace + max(tokens[brace].reach, 0) + 1 :])]
    if len(tokens) > 1 and tokens[1].text in CLASS_KEYS:
        names += [tag] if (tag := type_name(tokens[1:])) else []
    return names


def _without_attributes(tokens: Sequence[Token]) -> Iterator[Token]:
    """Tokens but for `alignas(...)` and the like, and for the keys of a class, up to an `=`."""
    i = 0
    while i < len(tokens) and tokens[i].text != "=":
        if tokens[i].text in ("__align__", "alignas", "__attribute__"):
            i += tokens[i + 1].reach + 1 if i + 1 < len(tokens) and tokens[i + 1].text == "(" else 0
        else:
            yield tokens[i]
        i += 1


def is_variable(tokens: Sequence[Token]) -> bool:
    return bool({t.text for t in tokens} & MEMORY_SPACES) and "(" not in {t.text for t in _without_attributes(tokens)}


def declared_names(tokens: Sequence[Token]) -> list[Token]:
    """The names that a declaration of variables declares, in order."""
    names: list[Token] = []
    for part in at_commas(tokens):
        name = None
        for i in shallow(part):
            text = part[i].text
            if text == "(" and i > 0 and part[i - 1].text in (*SPECIFIERS_WITH_ARGUMENTS, "decltype"):
                continue
            if text == "(" and i + 1 < len(part) and part[i + 1].text in ("*", "&", "&&"):  # float (*f)(int)
                inside = part[i + 1 : partner(part, i)]
                name = next((t for t in inside if t.kind == "identifier" and t.text not in ("const", "volatile")), name)
            if text in ("=", "{", "[", "(", ";", ":"):
                break
            if part[i].kind == "identifier" and text not in SPECIFIERS_WITH_ARGUMENTS:
                name = part[i]
        names += [name] if name is not None else []
    return names
