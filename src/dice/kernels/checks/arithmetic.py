"""Whether any kernel computes more than a copy, and whether any kernel reads its input."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dice.kernels.checks.cuda_kernels import kernel_macros, pointers_of
from dice.kernels.source.cuda_source import CudaSource
from dice.kernels.source.lexer import Token, partner, words

_ASSIGNMENTS = words("= += -= *= /= %= ++ --")
_TEXTURE_READ = re.compile(r"tex(1D|2D|3D|Cubemap)(fetch|gather|Lod|Grad|Layered)*$|surf(1D|2D|3D)(Layered)?read$")
_LONG = 1000
"""Tokens of a statement: a longer one counts as computing."""
_NEUTRAL = {("*", "1"), ("+", "0"), ("-", "0"), ("/", "1")}
_WHOLE = words(
    "bool char short int long signed unsigned size_t ssize_t ptrdiff_t uchar ushort uint ulong "
    "int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t"
)
"""Types to which a cast of a float computes: it cuts the fraction off."""


@dataclass(frozen=True)
class _Kernel:
    name: str
    pointers: frozenset[str]
    body: Sequence[Token]


def all_kernels_copy(sources: Sequence[CudaSource]) -> str | None:
    """Name of a kernel when every kernel only copies element to element or fills with a constant; None otherwise.

    A copy writes `out[e] = in[e]` with the same index text on both sides; `* 1`, `+ 0` and casts are ignored, those to
    whole numbers not. A statement that is not understood counts as computing.
    """
    kernels = _kernels(sources)
    return kernels[0].name if kernels and all(_copies(kernel) for kernel in kernels) else None


def no_kernel_reads(sources: Sequence[CudaSource]) -> str | None:
    """Name of a kernel when none of the kernels reads through any of its pointers; None otherwise."""
    kernels = _kernels(sources)
    return kernels[0].name if kernels and not any(_reads(kernel) for kernel in kernels) else None


def _kernels(sources: Sequence[CudaSource]) -> list[_Kernel]:
    """All kernels; none where a macro may define more."""
    if any(kernel_macros(source) for source in sources):
        return []
    return [
        _Kernel(kernel.name, pointers_of(kernel, body), body)
        for source in sources
        for kernel in source.kernels
        for body in [source.body(kernel)[1:-1]]
    ]


def _stores(body: Sequence[Token]) -> Iterator[tuple[int, int, int]]:
    """Plain assignments `name[...] = ...;`: index of the name, of `=`, and of the `;`."""
    ends = _statement_ends(body)
    for index, token in enumerate(body[:-1]):
        if token.kind == "identifier" and body[index + 1].text == "[":
            closing = partner(body, index + 1)
            if closing is not None and closing + 1 < len(body) and body[closing + 1].text == "=":
                yield index, closing + 1, ends[closing + 1]


def _statement_ends(body: Sequence[Token]) -> list[int]:
    """For each token the index of the next `;`, or the number of tokens."""
    ends = [len(body)] * len(body)
    for index in range(len(body) - 2, -1, -1):
        ends[index] = index + 1 if body[index + 1].text == ";" else ends[index + 1]
    return ends


def _copies(kernel: _Kernel) -> bool:
    body = kernel.body
    if not kernel.pointers or any(token.kind == "directive" for token in body):
        return False
    loaded: dict[str, str] = {}
    assigned = Counter(_assigned(body))
    ends = _statement_ends(body)
    for index, token in enumerate(body):
        if token.text == "=" and index and assigned[body[index - 1].text] == 1:
            source = _plain_load(body[index + 1 : min(ends[index], index + _LONG)])
            if source is not None:
                loaded[body[index - 1].text] = source
    copies = constants = 0
    for name, equals, end in _stores(body):
        if end - name > _LONG:
            return False
        place = " ".join(token.text for token in body[name + 2 : equals - 1])
        value = list(body[equals + 1 : end])
        origin = _plain_load(value)
        if len(value) == 1 and value[0].kind == "number":
            constants += 1
            continue
        if origin is None and len(value) == 1:
            origin = loaded.get(value[0].text)
        if origin != place:
            return False
        copies += 1
    calls_out = any(token.text in ("atomicAdd", "atomicMax", "atomicMin", "atomicExch", "asm") for token in body)
    compound = any(token.text in ("+=", "-=", "*=", "/=") and body[i - 1].text == "]" for i, token in enumerate(body))
    stored_elsewhere = any(
        token.text == "=" and index and body[index - 1].text == ")" for index, token in enumerate(body)
    )
    # To copy some elements and set others is a selection (relu, a mask), which is work; to set some by what is read, too.
    selects = constants > 0 and (copies > 0 or _reads(kernel))
    return copies + constants > 0 and not selects and not calls_out and not compound and not stored_elsewhere


def _assigned(body: Sequence[Token]) -> list[str]:
    """Names on the left of every assignment; for a member, its owner as well."""
    found: list[str] = []
    for index, token in enumerate(body):
        if index and token.text in _ASSIGNMENTS and body[index - 1].kind == "identifier":
            found.append(body[index - 1].text)
            if index > 2 and body[index - 2].text in (".", "->"):
                found += [body[index - 3].text] * 2
        elif index and token.text == "&" and body[index - 1].text in ("(", ",") and index + 1 < len(body):
            found += [body[index + 1].text] * 2  # its address is passed on
    return found


def _plain_load(value: Sequence[Token]) -> str | None:
    """Index text of `in[e]`, casts and neutral arithmetic removed; None when the value is anything else."""
    tokens = list(value)
    changed = True
    while changed and tokens:
        changed = False
        if len(tokens) > 2 and tokens[-1].kind == "number" and (tokens[-2].text, _number(tokens[-1])) in _NEUTRAL:
            tokens, changed = tokens[:-2], True
        elif (
            len(tokens) > 2
            and tokens[0].kind == "number"
            and (tokens[1].text, _number(tokens[0])) in {("*", "1"), ("+", "0")}
        ):
            tokens, changed = tokens[2:], True
        elif len(tokens) > 3 and _is_cast(tokens):
            tokens, changed = tokens[3:], True
        elif (
            tokens[0].text in ("__ldg", "float", "double")
            and len(tokens) > 3
            and tokens[1].text == "("
            and tokens[-1].text == ")"
        ):
            inner = tokens[2:-1]
            tokens, changed = (inner[1:] if inner and inner[0].text == "&" else inner), True
    if len(tokens) < 4 or tokens[0].kind != "identifier" or tokens[1].text != "[":
        return None
    closing = partner(tokens, 1)
    return " ".join(token.text for token in tokens[2:closing]) if closing == len(tokens) - 1 else None


def _is_cast(tokens: Sequence[Token]) -> bool:
    """Whether at least three tokens begin with `(type)`, a type of one word that is none of whole numbers."""
    opening, name, closing = tokens[:3]
    return (opening.text, closing.text) == ("(", ")") and name.kind == "identifier" and name.text not in _WHOLE


def _number(token: Token) -> str:
    try:
        value = float(token.text.rstrip("fFlLuU"))
    except ValueError:
        return ""
    return str(int(value)) if value.is_integer() else ""  # neither infinity nor NaN is


def _reads(kernel: _Kernel) -> bool:
    """Whether a pointer parameter is used other than as the target of a plain store, or a texture is read."""
    if not kernel.pointers or any(token.kind == "directive" for token in kernel.body):
        return True
    targets = {name for name, _, _ in _stores(kernel.body)}
    return any(
        token.kind == "identifier"
        and (token.text in kernel.pointers or _TEXTURE_READ.match(token.text))
        and index not in targets
        for index, token in enumerate(kernel.body)
    )
