"""Branches that only report: they write messages, and note numbers for the next one. No output depends on them.

What such a branch notes is a number that it alone reads, whoever else counts it up, so that nothing can follow it.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Sequence, Set

from dice.kernels.checks.messages import CLOCKS, asks_plainly, has_special_methods, is_a_line, is_listened_to
from dice.kernels.checks.once import once
from dice.kernels.checks.python_names import identifier_of
from dice.kernels.checks.python_source import PythonSource
from dice.kernels.checks.told import is_called_by_others
from dice.kernels.source.lexer import words
from dice.python_scope import bindings_of, functions_in

_SIZES = words("size dim numel")
_STORED = ast.Assign | ast.AnnAssign | ast.AugAssign


def only_reports(source: PythonSource, branch: ast.AST) -> bool:
    """Whether a branch writes messages, notes what it alone reads, and does no more, whatever numbers are compared before."""
    if not isinstance(branch, ast.If) or branch.orelse or not _is_quiet(source):
        return False
    notes = [statement for statement in branch.body if not is_a_line(source, statement)]
    inside = set(ast.walk(branch))
    return (
        len(notes) < len(branch.body)
        and asks_plainly(source, branch.test)
        and all(_is_noted(source, statement, inside) for statement in notes)
    )


@functools.lru_cache(maxsize=8)
def _is_quiet(source: PythonSource) -> bool:
    """Whether neither a message nor a name that is stored runs code of the candidate's, and nobody gets the whole model."""
    return is_called_by_others(source) and not has_special_methods(source) and not is_listened_to(source)


def _is_noted(source: PythonSource, statement: ast.stmt, inside: Set[ast.AST]) -> bool:
    """Whether a statement gives numbers to names that nobody else reads."""
    if not isinstance(statement, _STORED):
        return False
    targets = [target for target in ast.walk(statement) if isinstance(getattr(target, "ctx", None), ast.Store)]
    stored = [target for target in targets if not isinstance(target, ast.Tuple)]
    return all(_is_a_variable(target) and _is_private(source, target, inside) for target in stored)


def _is_private(source: PythonSource, target: ast.AST, inside: Set[ast.AST]) -> bool:
    """Whether a name stands for numbers alone, and is read inside only."""
    name = identifier_of(target) or ""
    given = source.aliases.keys() | source.parameters if isinstance(target, ast.Name) else frozenset[str]()
    if source.definitions(name) or name in given or not _begins(source, target):
        return False
    if name in source.written:  # register_buffer("rows", ...)
        return False
    return all(each in inside and _is_a_variable(each) for each in _read(source, name))


@once
def _read(source: PythonSource, name: str) -> list[ast.AST]:
    """Mentions of a name that do more than give it a number."""
    return [each for each in source.mentions(name) if not _is_stored(source, each)]


def _begins(source: PythonSource, target: ast.AST) -> bool:
    """Whether a name has a value of the file's own: of an attribute, in the constructor of its class."""
    if isinstance(target, ast.Name):
        return (target.id, False) in _begun(source, None)
    owner = next((above for above in source.ancestors(target) if isinstance(above, ast.ClassDef)), None)
    return owner is not None and (identifier_of(target), True) in _begun(source, owner)


@once
def _begun(source: PythonSource, owner: ast.ClassDef | None) -> set[tuple[str, bool]]:
    """What the constructor of a class, or the file, gives values to: names, and whether they are attributes."""
    body: Sequence[ast.AST] = source.nodes
    if owner is not None:
        maker = functions_in(owner.body).get("__init__")
        body = maker.body if maker is not None else []
    given = (found for node in body if isinstance(node, ast.Assign | ast.AnnAssign) for found in bindings_of(node))
    return {(found.name, found.attribute) for found in given}


def _is_a_variable(node: ast.AST) -> bool:
    match node:
        case ast.Name() | ast.Attribute(value=ast.Name(id="self")):
            return True
    return False


def _is_stored(source: PythonSource, mention: ast.AST) -> bool:
    """Whether a mention of a name only gives it a number."""
    if not isinstance(getattr(mention, "ctx", None), ast.Store) or not _is_a_variable(mention):
        return False
    statement = source.statement_around(mention)
    if not isinstance(statement, _STORED):
        return False
    given = [found for found in bindings_of(statement) if found.name == identifier_of(mention)]
    return all(found.whole and found.value is not None and _is_a_number(source, found.value) for found in given)


def _is_a_number(source: PythonSource, value: ast.expr, seen: set[str] | None = None) -> bool:
    """Whether a value is a number, or made of numbers, whatever it is: no object that anybody else could have. seen: names
    that were asked about, which are not asked again."""
    seen = set() if seen is None else seen
    match value:
        case ast.Constant():
            return True
        case ast.UnaryOp(operand=operand):
            return _is_a_number(source, operand, seen)
        case ast.BinOp(left=left, right=right):
            return _is_a_number(source, left, seen) and _is_a_number(source, right, seen)
        case ast.Call(func=ast.Attribute(attr=name), args=parts, keywords=[]) if name in _SIZES:
            return not source.definitions(name) and all(isinstance(part, ast.Constant) for part in parts)
        case ast.Call(func=function, args=[], keywords=[]):
            return source.dotted(function) in CLOCKS
        case ast.Subscript(value=ast.Attribute(attr="shape"), slice=ast.Constant() | ast.UnaryOp()):
            return not source.values("shape") and not source.definitions("shape")
        case ast.Name() | ast.Attribute(value=ast.Name(id="self")):
            name = identifier_of(value) or ""
            if name in seen:
                return True
            seen.add(name)
            made = source.values(name)
            return bool(made) and all(_is_a_number(source, each, seen) for each in made)
    return False
