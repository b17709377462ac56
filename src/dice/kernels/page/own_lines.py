"""A line of a C++ or CUDA source as a line of the Python file that holds the source in a string.

Compilers and checks count the lines of `cuda.cu` or `main.cpp`, which PyTorch makes of the author's strings. A line is
found again by its text, which compilers print with a message; of several equal lines the one nearest by number counts.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from dice.kernels.source.diagnostics import errors, read_gcc, read_nvcc
from dice.python_text import parse_python

_CUDA, _MAIN = "cuda.cu", "main.cpp"
_ECHO = re.compile(r"^\s*(?:\d+ \| ?)?(.*)$")
_KERNEL = "__global__"
_MOST_ERRORS = 10


@dataclass(frozen=True)
class OwnError:
    """An error of a compiler. `line`: of the author's file; None where it is not known."""

    line: int | None
    text: str
    source: str
    """The line's text, or ""."""


@dataclass(frozen=True)
class _String:
    """A string of several lines. `line`: of the file, where its first line stands."""

    line: int
    lines: tuple[str, ...]


def strings_of(code: str) -> list[_String]:
    """The strings of a file whose lines are lines of the file, in order."""
    try:
        tree = parse_python(code)
    except SyntaxError:
        return []
    rows, found = code.split("\n"), []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" in node.value:
            lines = tuple(node.value.split("\n"))
            there = rows[node.lineno - 1 : node.lineno - 1 + len(lines)]
            # An escape or a continued line would shift what follows.
            if len(there) == len(lines) and all(mine in row for mine, row in zip(lines, there, strict=True)):
                found.append(_String(node.lineno, lines))
    return sorted(found, key=lambda string: string.line)


def own_line(code: str, file: str, line: int, echo: str = "") -> int | None:
    """The line of `code` for line `line` of `file`, whose text is `echo`, or None when it is not known."""
    strings = strings_of(code)
    wanted = echo.strip()
    if wanted:
        equal = [
            (abs(index + 1 - line), string.line + index)
            for string in strings
            for index, text in enumerate(string.lines)
            if text.strip() == wanted
        ]
        return min(equal)[1] if equal else None
    mine = [string for string in strings if any(_KERNEL in text for text in string.lines)]
    if file != _CUDA or len(mine) != 1 or not 0 < line <= len(mine[0].lines):
        return None
    return mine[0].line + line - 1


def own_errors(code: str, message: str, first_line: int) -> list[OwnError]:
    """Errors in a compiler's output, with the author's own line numbers; none where the output names no place.

    `first_line`: what the compiler calls the first line of the author's source in `cuda.cu`.
    """
    rows = message.split("\n")
    found: dict[tuple[int | None, str], OwnError] = {}
    for error in errors(read_gcc(message)) or errors(read_nvcc(message)):
        file = error.file.rpartition("/")[2]  # stock names the folder of its build
        if file not in (_CUDA, _MAIN):
            continue
        # Two errors may have one text.
        spelt = (f"{error.file}:{error.line}:", f"{error.file}({error.line})")
        place = next(i for i, row in enumerate(rows) if row.startswith(spelt) and error.text in row)
        after = _ECHO.match(rows[place + 1]) if place + 1 < len(rows) else None
        echo = after.group(1).strip() if after else ""
        number = error.line - first_line + 1 if file == _CUDA else error.line
        line = own_line(code, file, number, echo) or own_line(code, file, number)
        source = code.split("\n")[line - 1].strip() if line else echo
        found.setdefault((line, error.text), OwnError(line, error.text, source))
    return list(found.values())[:_MOST_ERRORS]


_PLACE = re.compile(r"^(C\+\+ )?line (\d+): (.*)$", re.DOTALL)


def line_of_evidence(code: str, evidence: str) -> int | None:
    """The author's line in a finding's evidence, which names one of the file or one of a source in it."""
    match = _PLACE.match(evidence)
    if match is None or not int(match.group(2)):
        return None
    number = int(match.group(2))
    return own_line(code, _CUDA, number, match.group(3)) if match.group(1) else number
