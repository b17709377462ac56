"""Python that somebody else wrote, parsed and never executed."""

from __future__ import annotations

import ast
import warnings

from dice.jsonl import RowError


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
