"""Infilling: a CUDA program as prefix, middle and suffix (paper section 4.2 and Figure 4).

The middle is the one piece of Python that writes the CUDA source: in the authors' files always
`source = \"\"\"...\"\"\"`, in general the assignment, or the expression inside the call, that `find_source` finds.
The prefix is everything before it (imports, constants, comments), the suffix everything after it (C++ declarations,
`load_inline`, `ModelNew`). Cuts are made at byte offsets of the parsed file, so the three always join to it exactly.

In training the model is given prefix and suffix; what it answers is cut to a middle by `extract_middle` and the file
is assembled, so that nothing outside the middle is the model's.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass

from dice.data.pair import parse_python
from dice.data.source_string import FoundBy, InfillingRefused, find_source, unbound_source_names, undefined_names

_HOLE = "__dice_hole__"
_NEWLINE = re.compile(rb"\r\n|\r|\n")  # what Python's parser counts as the end of a line
_MAX_PARTS = 100  # tokens of an expression at its outermost level
_STRING_METHODS = ("format", "replace", "strip", "lstrip", "rstrip", "join", "dedent", "cleandoc", "substitute")
_STRING_FUNCTIONS = ("dedent", "cleandoc", "str", "Template")


@dataclass(frozen=True)
class InfillingSplit:
    """`prefix + middle + suffix` is the candidate, byte for byte."""

    prefix: str
    middle: str
    suffix: str
    variable: str | None
    """What the middle assigns to; None when the middle is an expression inside a call."""
    found_by: FoundBy


@dataclass(frozen=True)
class ExtractedMiddle:
    """The middle that a response holds, and what of the response was cut off around it."""

    middle: str
    before: str
    after: str


def split_candidate(cuda_code: str) -> InfillingSplit:
    """Split a candidate at its CUDA source string.

    Raises InfillingRefused with one of the reasons syntax, no_extension, no_kernel_source, several_sources, appended,
    not_a_string (the source is computed, not written), hidden_variable (the scaffold does not show what the middle
    must assign to, because the name is bound in it as well).
    """
    try:
        tree = parse_python(cuda_code)
    except SyntaxError as error:
        raise InfillingRefused("syntax", f"line {error.lineno or '?'}: {error.msg}") from error
    place = find_source(tree)
    data = cuda_code.encode()
    start, end = _byte_span(place.node, data)
    prefix, middle, suffix = (part.decode() for part in (data[:start], data[start:end], data[end:]))
    found = extract_middle(prefix, suffix, middle)  # the model's view: what it must write can be told from the scaffold
    if found.middle != middle:
        raise InfillingRefused("not_a_string", "the source is not one plain string expression")
    return InfillingSplit(prefix, middle, suffix, place.variable, place.found_by)


def assemble(prefix: str, middle: str, suffix: str) -> str:
    """The whole candidate."""
    return prefix + middle + suffix


def extract_middle(prefix: str, suffix: str, response: str) -> ExtractedMiddle:
    """Cut a model's response to the middle that belongs between `prefix` and `suffix`.

    The rule: the middle is the first complete assignment of a string to the variable that the scaffold leaves
    unassigned (or, when the hole is inside a call, the first complete string expression). Everything around it
    - prose, code fences, imports, a repeated prefix or suffix, further statements - is cut off and returned beside it.
    A string is a literal, an f-string or concatenation of literals and names, or a string method or
    `textwrap.dedent` applied to them; any other call is refused, so that the middle computes nothing.

    Raises InfillingRefused: hidden_variable, no_middle (no such assignment or expression), unfinished (it has no
    end), not_a_string.
    """
    variable = hole_variable(prefix, suffix)
    starts = _assignment_starts(response, variable) if variable else _expression_starts(response)
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
        case ast.Attribute():
            return isinstance(node.value, ast.Name)
        case ast.JoinedStr():
            return all(is_string_expression(value) for value in node.values)
        case ast.FormattedValue():
            return is_string_expression(node.value) and (
                node.format_spec is None or is_string_expression(node.format_spec)
            )
        case ast.BinOp():
            return is_string_expression(node.left) and is_string_expression(node.right)
        case ast.List() | ast.Tuple():
            return all(is_string_expression(element) for element in node.elts)
        case ast.Call():
            return _is_string_function(node.func) and all(
                is_string_expression(part) for part in (*node.args, *(keyword.value for keyword in node.keywords))
            )
        case _:
            return False


def _is_string_function(function: ast.expr) -> bool:
    if isinstance(function, ast.Attribute):
        return function.attr in _STRING_METHODS and is_string_expression(function.value)
    return isinstance(function, ast.Name) and function.id in _STRING_FUNCTIONS


def _has_text(node: ast.expr) -> bool:
    """Some text is written here rather than taken from elsewhere."""
    return any(isinstance(part, ast.Constant) and isinstance(part.value, str) and part.value for part in ast.walk(node))


def _byte_span(node: ast.stmt | ast.expr, data: bytes) -> tuple[int, int]:
    """Offsets of a node in the UTF-8 bytes that it was parsed from; ast columns are UTF-8 bytes already."""
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    starts = [0, *(match.end() for match in _NEWLINE.finditer(data))]
    return starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset


def _is_hole(node: ast.AST) -> bool:
    """The hole stands as a statement of its own, where the middle is an assignment."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Name) and node.value.id == _HOLE


def _assignment_starts(text: str, variable: str) -> Iterator[int]:
    pattern = rf"^[ \t]*({re.escape(variable)}\s*(?::[^=\n]*)?=(?!=))"
    return (match.start(1) for match in re.finditer(pattern, text, re.MULTILINE))


def _expression_starts(text: str) -> Iterator[int]:
    if text.strip():
        yield len(text) - len(text.lstrip())
    for match in re.finditer(r"^[ \t]*(?:\w+[ \t]*=[ \t]*)?([rRfFuU]{0,2}[\"'])", text, re.MULTILINE):
        yield match.start(1)


def _tokens(text: str) -> Iterator[tokenize.TokenInfo]:
    """Tokens until the text ends or stops being Python."""
    try:
        yield from tokenize.generate_tokens(io.StringIO(text, newline="").readline)
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
