"""What the units of the fast routes lack: global names and macros that stock's nvcc knows and they do not."""

from __future__ import annotations

import re
from dataclasses import dataclass

_TOKEN = re.compile(
    r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|(?<!::)\b[A-Za-z_]\w*|[{}();=]|^#[^\n]*',
    re.MULTILINE,
)
_KEYWORDS = """
alignas alignof asm auto bool char class concept const consteval constexpr constinit decltype delete double enum explicit
export extern false final float friend inline int long mutable namespace noexcept operator override private protected
public register requires short signed sizeof static static_assert static_cast struct template this thread_local true
typedef typename union unsigned using virtual void volatile
"""
_DEFINED = re.compile(r"#define (\w+)")
_FILE = re.compile(r'^# \d+ "[^"\n]*/include/([^"\n]+)"', re.MULTILINE)
_STANDARD = re.compile(r"^c\+\+/[\d.]+/")
_STANDARD_FILE = re.compile(r'^# \d+ "[^"\n]*/include/c\+\+/[\d.]+/([^"/\n]+)"', re.MULTILINE)
_NUMBER_HEADERS = frozenset({"cuda_fp16.h", "cuda_bf16.h", "cuda_fp8.h", "cuda_fp6.h", "cuda_fp4.h", "cuComplex.h"})


@dataclass(frozen=True)
class Vocabulary:
    """What stock's nvcc knows and a unit of ours does not, and which headers say so.

    bare_lacks: what nvcc knows behind PyTorch's headers, and not without any header.
    device_lacks: the same for the device unit behind `device_headers`.
    host_lacks: what g++ does not know behind the untouched headers.
    headers: the files that were read, as an #include would name them.
    device_headers: those among them that have nothing of PyTorch: the standard library's and CUDA's number types.
    """

    bare_lacks: frozenset[str]
    device_lacks: frozenset[str]
    host_lacks: frozenset[str]
    headers: frozenset[str]
    device_headers: frozenset[str]


def headers_read(text: str) -> frozenset[str]:
    """The files that a preprocessed text came from, as an #include would name them."""
    return frozenset(_STANDARD.sub("", path.split("/include/")[-1]) for path in _FILE.findall(text))


def device_headers(text: str) -> frozenset[str]:
    """The standard library's headers among those, and CUDA's with number types."""
    standard = {path.group(1) for path in _STANDARD_FILE.finditer(text)}
    return frozenset(standard | (headers_read(text) & _NUMBER_HEADERS))


def read_vocabulary(stock: str, bare: str, device: str, host: str) -> Vocabulary:
    """From texts after preprocessing, `#define` lines kept (`-E -dD`).

    stock: all headers, as nvcc reads them. bare: what nvcc reads by itself. device: `device_headers(stock)`, as nvcc
    reads them. host: all headers, as g++ reads them.
    """
    names = global_names(stock)
    return Vocabulary(
        names - global_names(bare) | {"std"},  # some of it is there without a header
        names - global_names(device),
        names - global_names(host),
        headers_read(stock),
        device_headers(stock),
    )


def global_names(text: str) -> frozenset[str]:
    """Words that stand outside of namespaces, classes, bodies and parentheses, enumerators, and macros."""
    names: set[str] = set()
    statement: list[str] = []  # its words so far
    depth = 0  # brackets that hide names
    for token in _TOKEN.findall(text):
        if token[0] == "#":
            names.update(_DEFINED.findall(token))
        elif depth or token == "(":
            depth += (token in "({") - (token in ")}")
            if not depth and token == "}":
                statement = []
        elif token == "{":
            linkage = statement[:1] == ["extern"] and len(statement) == 2
            unscoped = "enum" in statement and not {"class", "struct"} & set(statement)
            depth = 0 if linkage or unscoped else 1
            statement = []
        elif token in ";}":
            statement = []
        else:
            statement.append(token)
            if token.isidentifier() and "=" not in statement:
                names.add(token)
    return frozenset(names.difference(_KEYWORDS.split()))
