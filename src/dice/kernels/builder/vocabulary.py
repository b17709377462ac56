"""Which words occur in which headers: what decides whether a name could come from one of them."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass

_WORD = re.compile(r"[A-Za-z_]\w*")
_MACRO = re.compile(r"^#define (\w+)(?:\([^)]*\))?(.*)$", re.MULTILINE)
_CALLABLE = re.compile(r"\b([A-Za-z_]\w*)\s*\(")
_BUILTINS = frozenset({"threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize"})


@dataclass(frozen=True)
class Vocabulary:
    """Sets of identifiers.

    torch_words: in PyTorch's headers (with the CUDA ones that candidates include) after preprocessing, macros included.
    torch_macros: macros that only PyTorch's headers define. unbalanced_macros: those with unmatched brackets.
    device_words: in what nvcc puts before every source. nvcc_only: functions, macros and variables that nvcc declares
    there and g++ does not see. device_only: of these, functions that host code may not call.
    """

    torch_words: frozenset[str]
    torch_macros: frozenset[str]
    unbalanced_macros: frozenset[str]
    device_words: frozenset[str]
    nvcc_only: frozenset[str]
    device_only: frozenset[str]

    def to_json(self) -> dict[str, list[str]]:
        """Plain lists."""
        return {name: sorted(words) for name, words in asdict(self).items()}

    @classmethod
    def from_json(cls, data: dict[str, list[str]]) -> Vocabulary:
        """From `to_json`."""
        return cls(**{name: frozenset(words) for name, words in data.items()})


def read_vocabulary(torch_text: str, device_text: str, host_text: str) -> Vocabulary:
    """From preprocessor output with `#define` lines kept (`-E -dD`).

    torch_text: all headers, by g++. device_text: CUDA's headers as nvcc sees them. host_text: the same as g++ sees them.
    """
    torch_macros = dict(_MACRO.findall(torch_text))
    device_macros = {name for name, _ in _MACRO.findall(device_text)}
    torch_words = frozenset(_WORD.findall(torch_text))
    device_words = frozenset(_WORD.findall(device_text))
    return Vocabulary(
        torch_words=torch_words,
        torch_macros=frozenset(torch_macros) - device_macros,
        unbalanced_macros=frozenset(name for name, body in torch_macros.items() if _open(body)),
        device_words=device_words,
        nvcc_only=_declared(device_text) - _declared(host_text),
        device_only=_device_only(device_text) - _declared(host_text),
    )


def _declared(text: str) -> frozenset[str]:
    return (
        frozenset(_CALLABLE.findall(text))
        | {name for name, _ in _MACRO.findall(text)}
        | (_BUILTINS & frozenset(_WORD.findall(text)))
    )


def _open(body: str) -> bool:
    return any(body.count(a) != body.count(b) for a, b in ("()", "[]", "{}"))


_DEVICE, _HOST = (
    re.compile(r"__attribute__\(\((?:device|__device__)\)\)"),
    re.compile(r"__attribute__\(\((?:host|__host__)\)\)"),
)


def _device_only(text: str) -> frozenset[str]:
    """Functions of which every declaration says device, and none host."""
    device: set[str] = set()
    other: set[str] = set()
    for statement in re.split(r"[;{}]", re.sub(r"^#.*$", "", text, flags=re.MULTILINE)):
        head = _DEVICE.sub(" ", statement)
        on_host = _HOST.search(statement) is not None or head == statement
        match = _CALLABLE.search(re.sub(r"__attribute__\s*\(\(.*?\)\)", " ", _HOST.sub(" ", head)))
        if match:
            (other if on_host else device).add(match.group(1))
    return frozenset(device - other)
