"""Python that somebody else wrote, parsed and never executed."""

from __future__ import annotations

import ast
import re
import warnings

from dice.jsonl import RowError

NEWLINE = re.compile(r"\r\n|\r|\n")
"""Line ends of Python's parser."""


def parse_python(code: str) -> ast.Module:
    """The syntax tree of `code`, without executing it. Raises SyntaxError for anything that is not Python.

    A byte order mark is passed over, as in a file, so columns of the first line do not count it.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "\d" in a C++ string is the candidate's business
        try:
            return ast.parse(code.removeprefix("\ufeff"))
        except (ValueError, RecursionError, MemoryError, OverflowError) as error:
            raise SyntaxError(f"{type(error).__name__}: {error}") from error


def check_python(code: str, field: str) -> ast.Module:
    """The syntax tree of a row's code. Raises RowError naming the field and the line inside the code."""
    try:
        return parse_python(code)
    except SyntaxError as error:
        where = f" at its line {error.lineno}" if error.lineno else ""
        raise RowError(f"field '{field}' does not parse as Python{where} ({error.msg})") from error


def span_of(node: ast.stmt | ast.expr, text: str) -> tuple[int, int]:
    """Where a node begins and ends in the text that it was parsed from, in characters."""
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    starts = [0, *(match.end() for match in NEWLINE.finditer(text))]

    def offset(line: int, column: int) -> int:
        begin = starts[line - 1]
        return begin + len(text[begin:].encode()[:column].decode())  # columns of `ast` are bytes of UTF-8

    return offset(node.lineno, node.col_offset), offset(node.end_lineno, node.end_col_offset)
