"""Compiler messages of g++ and nvcc, read into places and texts."""

from __future__ import annotations

import re
from dataclasses import dataclass

_QUOTED = re.compile(r"[‘'\"`]([^’'\"`]+)[’'\"`]")
_GCC = re.compile(r"^([^\s:][^:\n]*):(\d+)(?::(\d+))?: (fatal error|error|warning): (.*)$", re.MULTILINE)
_EDG = re.compile(r"^([^\s(][^(\n]*)\((\d+)\): (catastrophic error|error|warning)(?: #[\w-]+)?: (.*)$", re.MULTILINE)
_EDG_WHOLE = re.compile(r"^(?:catastrophic )?error(?: #[\w-]+)?: (.*)$", re.MULTILINE)
_PTXAS = re.compile(
    r"^ptxas(?: [^:\n]*)?\s*:? *(?:fatal|error)\s*: (.*)$|^ptxas .*?; (?:error|fatal)\s*: (.*)$", re.MULTILINE
)


@dataclass(frozen=True)
class Diagnostic:
    """One error or warning. `file` and `line` as the compiler says; file is "" when it names none."""

    tool: str
    file: str
    line: int
    error: bool
    text: str

    @property
    def names(self) -> list[str]:
        """Everything in quotes."""
        return _QUOTED.findall(self.text)


def read_gcc(output: str) -> list[Diagnostic]:
    """Diagnostics of g++, in order."""
    return [
        Diagnostic("g++", m.group(1), int(m.group(2)), "error" in m.group(4), m.group(5)) for m in _GCC.finditer(output)
    ]


def read_nvcc(output: str) -> list[Diagnostic]:
    """Diagnostics of nvcc's front end and of ptxas, in order (those of ptxas have no place)."""
    found = [
        (m.start(), Diagnostic("nvcc", m.group(1), int(m.group(2)), "error" in m.group(3), m.group(4)))
        for m in _EDG.finditer(output)
    ]
    found += [(m.start(), Diagnostic("nvcc", "", 0, True, m.group(1))) for m in _EDG_WHOLE.finditer(output)]
    found += [(m.start(), Diagnostic("ptxas", "", 0, True, m.group(1) or m.group(2))) for m in _PTXAS.finditer(output)]
    return [diagnostic for _, diagnostic in sorted(found, key=lambda pair: pair[0])]


def errors(diagnostics: list[Diagnostic]) -> list[Diagnostic]:
    """Those that are errors."""
    return [d for d in diagnostics if d.error]
