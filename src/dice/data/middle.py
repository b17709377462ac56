"""The middle of a model's response: the rule that cuts the response to the part between prefix and suffix."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from dice.data.source_string import InfillingRefused, puts_text_together, unbound_source_names
from dice.python_scope import undefined_names
from dice.python_text import NEWLINE, parse_python, span_of

_HOLE = "__dice_hole__"
_STRING_START = re.compile(r"(?<![^\r\n])[ \t]*(?:\w+[ \t]*=[ \t]*)?([rRfFuU]{0,2}[\"'])")
_MAX_STARTS = 20  # a response that repeats itself must not cost seconds


@dataclass(frozen=True)
class ExtractedMiddle:
    """The middle in a response, and the text before and after it that was cut off."""

    middle: str
    before: str
    after: str


def extract_middle(prefix: str, suffix: str, response: str) -> ExtractedMiddle:
    """Cut a model's response to the middle that belongs between `prefix` and `suffix`.

    The rule: the middle is the first complete assignment of a string to the variable that the scaffold leaves
    unassigned (or, when the hole is inside a call, the first complete string expression). Everything around it
    (a `<think>` section, prose, code fences, imports, a repeated prefix or suffix, further statements) is cut off and
    returned beside it. At most 20 starts of an assignment are tried.
    A string is a literal, an f-string or concatenation of literals and names, or a string method or
    `textwrap.dedent` applied to them; any other call is refused, so that the middle computes nothing.

    Raises InfillingRefused: hidden_variable, no_middle (no such assignment or expression), unfinished (it has no
    end), not_a_string.
    """
    answer = len(response) - len(response.rpartition("</think>")[2])  # a draft in the reasoning is no answer
    if response[answer:].lstrip().startswith("<think>"):
        raise InfillingRefused("no_middle", "the reasoning section never ends, so there is no answer")
    return cut_middle(prefix, suffix, response, answer)


def cut_middle(prefix: str, suffix: str, response: str, answer: int = 0) -> ExtractedMiddle:
    """`extract_middle` for a response whose answer begins at offset `answer`."""
    variable = hole_variable(prefix, suffix)
    starts = _assignment_starts(response, variable, answer) if variable else _expression_starts(response, answer)
    refusal = InfillingRefused("no_middle", f"no assignment to '{variable}'" if variable else "no string")
    for start in islice(starts, _MAX_STARTS):
        value, end = _assignment_at(response, start) if variable else _expression_at(response, start)
        if value is None:
            refusal = InfillingRefused("unfinished", "the string has no end or is not valid Python")
        elif is_string_expression(value) and _has_text(value):
            return ExtractedMiddle(response[start:end], response[:start], response[end:])
        else:
            refusal = InfillingRefused("not_a_string", "what is assigned is computed, not a string that is written")
    raise refusal


@functools.lru_cache(maxsize=4096)  # programs of one style share their scaffold
def hole_variable(prefix: str, suffix: str) -> str | None:
    """The name that the middle must assign; None when the hole is an expression inside a call.

    Raises InfillingRefused (hidden_variable) when the scaffold does not show the name.
    """
    try:
        tree = parse_python(f"{prefix}{_HOLE}{suffix}")
    except SyntaxError as error:
        raise InfillingRefused("hidden_variable", f"prefix and suffix are no Python file ({error.msg})") from error
    owners = [node for node in ast.walk(tree) if any(map(_is_hole, ast.iter_child_nodes(node)))]
    if not owners:
        return None
    names = unbound_source_names(tree) or undefined_names(tree) - {_HOLE}
    if isinstance(owners[0], ast.ClassDef):  # read as self.source, assigned as source
        names = {name.rpartition(".")[2] for name in names}
    if len(names) != 1:
        shown = ", ".join(sorted(names)) or "none"
        raise InfillingRefused("hidden_variable", f"names that the scaffold leaves unassigned: {shown}; expected one")
    return names.pop()


def is_string_expression(node: ast.expr) -> bool:
    """Whether evaluating `node` only puts text together (see `extract_middle`)."""
    waiting: list[ast.expr] = [node]
    while waiting:  # no recursion: a concatenation of many strings is a deep tree
        match one := waiting.pop():
            case ast.Constant():
                if not isinstance(one.value, str | bytes | int | float):
                    return False
            case ast.Name():
                pass
            case ast.Attribute():  # `textwrap.dedent`, `self.block`
                waiting.append(one.value)
            case ast.Subscript():
                waiting += [one.value, one.slice]
            case _ if puts_text_together(one):
                parts = (part for part in ast.iter_child_nodes(one) if isinstance(part, ast.expr | ast.keyword))
                waiting += [part.value if isinstance(part, ast.keyword) else part for part in parts]
            case _:
                return False
    return True


def _has_text(node: ast.expr) -> bool:
    """Whether `node` writes some text itself, rather than taking all of it from names."""
    return any(isinstance(part, ast.Constant) and isinstance(part.value, str) and part.value for part in ast.walk(node))


def _is_hole(node: ast.AST) -> bool:
    """Whether `node` is the hole as a statement, where the middle is an assignment."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Name) and node.value.id == _HOLE


def _assignment_starts(text: str, variable: str, begin: int) -> Iterator[int]:
    pattern = rf"(?<![^\r\n])[ \t]*({re.escape(variable)}[ \t]*(?::[^=\r\n]*)?=(?!=))"
    return (match.start(1) for match in re.compile(pattern).finditer(text, begin))


def _expression_starts(text: str, begin: int) -> Iterator[int]:
    if text[begin:].strip():
        yield len(text) - len(text[begin:].lstrip())
    for match in _STRING_START.finditer(text, begin):
        yield match.start(1)


def _assignment_at(text: str, start: int) -> tuple[ast.expr | None, int]:
    """Value and end of the assignment at `start`, which takes the fewest lines that are valid Python.

    (None, start) where the assignment has no end.
    """
    for end in _line_ends(text, start):
        if body := _parsed(text[start:end]):
            value = body[0].value if isinstance(body[0], ast.Assign | ast.AnnAssign) else None
            return value, start + span_of(body[0], text[start:end])[1]
    return None, start


def _expression_at(text: str, start: int) -> tuple[ast.expr | None, int]:
    """The same for an expression inside a call: it may span lines, and the rest of the call may follow it."""
    found: tuple[ast.expr | None, int] = None, start
    for end in _line_ends(text, start):
        for closing in ("\n)", ""):  # without: the response closes the call itself
            call = "f(" + text[start:end]
            body = _parsed(call + closing)
            if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Call) and body[0].value.args:
                value = body[0].value.args[0]
                found = max(found, (value, start + span_of(value, call)[1] - len("f(")), key=lambda pair: pair[1])
    return found


def _line_ends(text: str, start: int) -> Iterator[int]:
    for match in NEWLINE.finditer(text, start):
        yield match.start()
    yield len(text)


def _parsed(text: str) -> list[ast.stmt]:
    try:
        return parse_python(text).body
    except SyntaxError:
        return []
