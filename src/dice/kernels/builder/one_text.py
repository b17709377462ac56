"""PyTorch's headers as one text of long lines, which g++ precompiles into a header that is quick to load.

For a place in a text whose beginning, middle and end are not close together g++ keeps an entry in a table, and makes that
table anew for each unit: 1.9 million entries behind PyTorch, of the half second in which GCC 13 refuses a unit 0.3 (GCC 12:
0.03). In a line longer than 4,095 characters it knows no columns, and all of the line is one place.

    text = in_long_lines(preprocessed)                 # `g++ -E -dD`: all headers in one text, macros kept
    files = included_files(preprocessed, folders)      # what it holds: an #include of these has nothing to add
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

LINE_MARKER = re.compile(r'[ \t]*#[ \t]*\d+ "([^"]*)"')
"""Where in which file the next line of a preprocessed text stood."""
_STRING = re.compile(r"""\b(?:u8|[uUL])?R"(?P<fence>[^()\\\s]{0,16})\(|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])+'""")
_QUOTED = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)
_ONCE = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+once\b", re.MULTILINE)


def in_long_lines(text: str) -> str:
    """The preprocessed `text` with what stands between two directives on one line. Lines of files are forgotten."""
    out: list[str] = []
    ends = ""
    """How the raw string ends in which a line begins."""
    for line in text.split("\n"):
        directive = not ends and line.lstrip().startswith("#")
        if directive and not LINE_MARKER.match(line):
            out += ["\n" if out and not out[-1].endswith("\n") else "", f"{line}\n"]
        elif not directive and (ends or line.strip()):
            before, ends = ends, _open_raw_string(line, ends)
            out += ["\n" if before else "", line, "" if ends else " "]
    return "".join((*out, "\n"))


def _open_raw_string(line: str, ends: str) -> str:
    """How the raw string ends that is open behind a line, if one is. `ends`: the same before the line."""
    position = 0
    while 'R"' in line or ends:
        if ends:
            closed = line.find(ends, position)
            if closed < 0:
                return ends
            ends, position = "", closed + len(ends)
        string = _STRING.search(line, position)
        if string is None:
            break
        position = string.end()
        ends = "" if string["fence"] is None else f'){string["fence"]}"'
    return ""


def included_files(text: str, folders: Sequence[Path]) -> dict[str, Path]:
    """Headers of the preprocessed `text`, by each path from one of the folders, by which an #include may ask for them."""
    paths = dict.fromkeys(Path(name) for name in re.findall(rf"(?m)^{LINE_MARKER.pattern}", text))
    found: dict[str, Path] = {}
    for path in paths:
        for folder in folders:
            if path.is_relative_to(folder):
                found.setdefault(str(path.relative_to(folder)), path)
    return found


def says_once(text: str) -> bool:
    """Whether a header says `#pragma once`. One that does not may be meant to be read again, or has a guard of its own."""
    return _ONCE.search(text) is not None


def neighbours(path: Path) -> list[Path]:
    """The headers that one includes by their place beside it, where no other folder can stand before its own."""
    names = _QUOTED.findall(path.read_text(errors="replace"))
    beside = (Path(os.path.normpath(path.parent / name)) for name in names)
    return [other for other in beside if other.is_file()]
