"""What a CUDA source consists of: items at namespace scope, in order, and what they mention (reader.py makes them)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from dice.kernels.source.declaration import Function
from dice.kernels.source.lexer import Token, words_of

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

    @property
    def qualified_name(self) -> str:
        """Name with its namespaces, as other scopes would write it."""
        return "::".join([*(part for part in self.namespaces if part), self.name])

    @cached_property
    def identifiers(self) -> frozenset[str]:
        """All identifiers in the text."""
        return frozenset(words_of(self.tokens))
