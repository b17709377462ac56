"""The middle of a model's response: the rule that cuts what it wrote to what belongs between prefix and suffix."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass

from dice.data.pair import parse_python
from dice.data.source_string import InfillingRefused, puts_text_together, unbound_source_names, undefined_names

_HOLE = "__dice_hole__"
_STRING_START = re.compile(r"(?<![^\r\n])[ \t]*(?:\w+[ \t]*=[ \t]*)?([rRfFuU]{0,2}[\"'])")
_MAX_PARTS = 100  # tokens of an expression at its outermost level


@dataclass(frozen=True)
class ExtractedMiddle:
    """The middle that a response holds, and what of the response was cut off around it."""

    middle: str
    before: str
    after: str


def extract_middle(prefix: str, suffix: str, response: str) -> ExtractedMiddle:
    """Cut a model's response to the middle that belongs between `prefix` and `suffix`.

    The rule: the middle is the first complete assignment of a string to the variable that the scaffold leaves
    unassigned (or, when the hole is inside a call, the first complete string expression). Everything around it
    (a `<think>` section, prose, code fences, imports, a repeated prefix or suffix, further statements) is cut off and
    returned beside it.
    A string is a literal, an f-string or concatenation of literals and names, or a string method or
    `textwrap.dedent` applied to them; any other call is refused, so that the middle computes nothing.

    Raises InfillingRefused: hidden_variable, no_middle (no such assignment or expression), unfinished (it has no
    end), not_a_string.
    """
    variable = hole_variable(prefix, suffix)
    answer = len(response) - len(response.rpartition("</think>")[2])  # what a draft in the reasoning says is no answer
    if "<think>" in response[answer:]:
        raise InfillingRefused("no_middle", "the reasoning section never ends, so there is no answer")
    starts = _assignment_starts(response, variable, answer) if variable else _expression_starts(response, answer)
    refusal = InfillingRefused(
        "no_middle", f"the response does not assign to '{variable}'" if variable else "no string"
    )
    for start in starts:
        ends = _statement_ends(response, start) if variable else _expression_ends(response, start)
        value: ast.expr | None = None
        end = start
        for end in ends:
            value = _value_of(response[start:end], assignment=variable is not None)
            if value is not None:
                break
        if value is None:
            refusal = InfillingRefused("unfinished", "the string has no end or is not valid Python")
        elif is_string_expression(value) and _has_text(value):
            return ExtractedMiddle(response[start:end], response[:start], response[end:])
        else:
            refusal = InfillingRefused("not_a_string", "what is assigned is computed, not a string that is written")
    raise refusal


def hole_variable(prefix: str, suffix: str) -> str | None:
    """What the middle must assign to; None when the hole is an expression inside a call.

    Raises InfillingRefused (hidden_variable) when the scaffold does not show it.
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
    match node:
        case ast.Constant():
            return isinstance(node.value, str | bytes | int | float)
        case ast.Name():
            return True
        case ast.Attribute():  # `textwrap.dedent`, `self.block`
            return is_string_expression(node.value)
        case ast.Subscript():
            return is_string_expression(node.value) and is_string_expression(node.slice)
    parts = (child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr | ast.keyword))
    return puts_text_together(node) and all(
        is_string_expression(part.value if isinstance(part, ast.keyword) else part) for part in parts
    )


def _has_text(node: ast.expr) -> bool:
    """Some text is written here rather than taken from elsewhere."""
    return any(isinstance(part, ast.Constant) and isinstance(part.value, str) and part.value for part in ast.walk(node))


def _is_hole(node: ast.AST) -> bool:
    """The hole stands as a statement of its own, where the middle is an assignment."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Name) and node.value.id == _HOLE


def _assignment_starts(text: str, variable: str, begin: int) -> Iterator[int]:
    pattern = rf"(?<![^\r\n])[ \t]*({re.escape(variable)}[ \t]*(?::[^=\r\n]*)?=(?!=))"
    return (match.start(1) for match in re.compile(pattern).finditer(text, begin))


def _expression_starts(text: str, begin: int) -> Iterator[int]:
    if text[begin:].strip():
        yield len(text) - len(text[begin:].lstrip())
    for match in _STRING_START.finditer(text, begin):
        yield match.start(1)


def _tokens(text: str) -> Iterator[tokenize.TokenInfo]:
    """Tokens until the text ends or stops being Python."""
    lines = io.StringIO(re.sub(r"\r(?!\n)", "\n", text) + "\n", newline="")  # the tokenizer knows no lone \r
    try:
        yield from tokenize.generate_tokens(lines.readline)
    except (tokenize.TokenError, SyntaxError):
        return


def _offsets(text: str) -> list[int]:
    return [0, *(match.end() for match in re.finditer(r"\r\n|\r|\n", text))]


def _statement_ends(text: str, start: int) -> Iterator[int]:
    """The end of the first logical line at `start`, without its comment; nothing when it does not end."""
    lines = _offsets(text[start:])
    end, depth = start, 0
    for token in _tokens(text[start:]):
        if token.type == tokenize.NEWLINE or (token.string == ";" and depth == 0):
            yield end
            return
        if token.type == tokenize.ERRORTOKEN:
            return
        if token.type == tokenize.OP:
            depth += (token.string in "([{") - (token.string in ")]}")
        if token.type not in (tokenize.COMMENT, tokenize.NL):
            end = start + lines[token.end[0] - 1] + token.end[1]


def _expression_ends(text: str, start: int) -> Iterator[int]:
    """Ends of the expression at `start`, longest first; it may go over lines, as it stands inside a call."""
    body = "(" + text[start:]
    lines = _offsets(body)
    ends: list[int] = []
    depth, operand = 0, 0
    for token in _tokens(body):
        if token.type in (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE):
            continue
        if token.type == tokenize.OP:
            depth += (token.string in "([{") - (token.string in ")]}")
        if depth == 0 or (depth == 1 and token.string == ",") or token.type == tokenize.ERRORTOKEN:
            break
        if operand and token.type in (tokenize.NAME, tokenize.NUMBER):
            break  # prose: two words in a row are no expression
        operand = token.type in (tokenize.NAME, tokenize.NUMBER, tokenize.STRING)
        if depth == 1 and len(ends) < _MAX_PARTS:
            ends.append(start - 1 + lines[token.end[0] - 1] + token.end[1])
    return (end for end in reversed(ends) if end > start)


def _value_of(text: str, *, assignment: bool) -> ast.expr | None:
    """The value of the one assignment (or the one expression) in `text`; None when it is something else."""
    try:
        body = parse_python(text if assignment else f"({text}\n)").body
    except SyntaxError:
        return None
    if len(body) != 1:
        return None
    statement = body[0]
    if assignment:
        return statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
    return statement.value if isinstance(statement, ast.Expr) else None
