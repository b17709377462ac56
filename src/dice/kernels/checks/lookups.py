"""Questions whether a table has something already: `t = table.get(key)`, then `if t is None`, where it is made and kept.

What is kept may be chosen by a clock, as the fastest of several ways is. As long as it is never None, the answer only tells
whether the key was asked for before.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dice.kernels.checks.local_values import local_values
from dice.kernels.checks.messages import has_special_methods
from dice.kernels.checks.named import is_pythons, says_all_names
from dice.kernels.checks.once import once
from dice.kernels.checks.python_names import identifier_of
from dice.kernels.checks.python_source import PythonSource

_FAR = 3
_NUMBERS = ("int", "float", "str", "len", "round", "tuple", "list", "dict", "set")
_PICKED = ("min", "max")
_READ = ("get", "items", "keys", "values")
"""Methods that leave a table as it is."""
_SOMETHING = (
    ast.BinOp | ast.JoinedStr | ast.Tuple | ast.List | ast.Dict | ast.Set | ast.Compare | ast.ListComp | ast.DictComp
)


def lookups(source: PythonSource) -> Iterator[tuple[ast.Name, ast.expr]]:
    """Variables that are asked whether they are None, each with the lookup that it has its value from."""
    if has_special_methods(source) or not says_all_names(source):
        return
    for node in source.in_forward:
        missed = _missed(source, node)
        if missed is not None and _holds_something(source, missed.table):
            yield missed.name, missed.value


def makes_room(source: PythonSource, call: ast.Call) -> bool:
    """Whether it clears a table that has become large, where something is missed in it and stored at once: a call that finds
    its key changes nothing."""
    statement = source.parent(call)
    size = source.parent(statement) if statement is not None else None
    branch = source.parent(size) if size is not None else None
    missed = _missed(source, branch) if branch is not None else None
    if not isinstance(size, ast.If) or missed is None or size.orelse or size.body != [statement]:
        return False
    begun = source.values(identifier_of(missed.table) or "")
    bare = all(isinstance(value, ast.Dict) and not value.keys and value not in source.in_forward for value in begun)
    table = call.func.value if isinstance(call.func, ast.Attribute) else call
    return bare and bool(begun) and size in missed.before and ast.unparse(table) == ast.unparse(missed.table)


class _Missed(NamedTuple):
    """A branch where a table has nothing under a key, and gets something."""

    name: ast.Name
    value: ast.expr
    """The lookup."""
    table: ast.expr
    before: Sequence[ast.stmt]
    """Statements before it is stored."""


def _missed(source: PythonSource, node: ast.AST) -> _Missed | None:
    match node:
        case ast.If(test=ast.Compare(left=ast.Name() as name, ops=[ast.Is()], comparators=[ast.Constant(value=None)])):
            value = local_values(source).at(name)
        case _:
            return None
    match value:
        case ast.Call(func=ast.Attribute(value=table, attr="get"), args=[key], keywords=[]):
            for place, each in enumerate(node.body):
                targets = each.targets if isinstance(each, ast.Assign) else []
                if any(_is_element(source, target, table, key) for target in targets):
                    return _Missed(name, value, table, node.body[:place])
    return None


def _is_element(source: PythonSource, target: ast.expr, table: ast.expr, key: ast.expr) -> bool:
    match key, target:
        case ast.Name(), ast.Subscript(value=owner, slice=ast.Name() as index):
            made = local_values(source).at(key)
            same = made is not None and local_values(source).at(index) is made
        case ast.Constant(value=constant), ast.Subscript(value=owner, slice=ast.Constant(value=index)):
            same = constant == index
        case _:
            return False
    return same and ast.unparse(owner) == ast.unparse(table)


def _holds_something(source: PythonSource, table: ast.expr) -> bool:
    """Whether a table begins empty, is read and stored to by its own name alone, and never gets None."""
    name = identifier_of(table) or ""
    begun = source.values(name)
    return (
        bool(begun)
        and all(isinstance(value, ast.Dict) and not value.keys for value in begun)
        and name not in source.parameters | source.aliases.keys()
        and not source.definitions(name)
        and all(_is_usual(source, mention) for mention in source.mentions(name))
    )


def _is_usual(source: PythonSource, mention: ast.AST) -> bool:
    """Whether a mention of a table makes it, looks something up, or stores what is not None."""
    above = source.parent(mention)
    match mention:
        case ast.Name(ctx=ast.Store()) | ast.Attribute(ctx=ast.Store()):
            return isinstance(above, ast.Assign | ast.AnnAssign) and mention not in source.in_forward
        case ast.Name(ctx=ast.Load()) | ast.Attribute(ctx=ast.Load()):
            pass
        case _:
            return False
    match above:
        case ast.Attribute(attr="get"):
            return source.is_called(above)
        case ast.Subscript(ctx=ast.Load()) | ast.Compare() | ast.Call(func=ast.Name(id="len")):
            return True
        case ast.Subscript(ctx=ast.Store()):
            statement = source.parent(above)
            return isinstance(statement, ast.Assign) and _is_something(source, statement.value)
    return False


def _is_something(source: PythonSource, value: ast.expr | None, far: int = _FAR) -> bool:
    """Whether a value cannot be None."""
    match value:
        case ast.Constant(value=constant):
            return constant is not None
        case ast.Name() if far:
            return _is_something(source, local_values(source).at(value), far - 1)
        case ast.Call(func=ast.Name(id=name), args=[_, *_]) if is_pythons(source, name):
            return name in _NUMBERS or (name in _PICKED and not any(_has_none(source, each) for each in value.args))
    return isinstance(value, _SOMETHING)


@once
def _name_has_none(source: PythonSource, name: str, far: int) -> bool:
    made = source.values(name)
    left = all(_leaves(source, mention) for mention in source.mentions(name))
    return not (made and left) or any(_has_none(source, each, far - 1) for each in made)


def _has_none(source: PythonSource, value: ast.expr | None, far: int = _FAR) -> bool:
    """Whether None may be among the elements of a container, or the keys of a table."""
    match value:
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Dict(keys=parts):
            return not all(_is_something(source, part, 0) for part in parts)
        case ast.DictComp(key=ast.Name(id=name), generators=[ast.comprehension(target=ast.Name(id=each), iter=parts)]):
            return name != each or _has_none(source, parts, far - 1)
        case ast.Name(id=name) if far and name not in source.parameters:
            return _name_has_none(source, name, far)
    return True


def _leaves(source: PythonSource, mention: ast.AST) -> bool:
    """Whether a mention of a container leaves it as it is, but for where it is made."""
    if not isinstance(mention, ast.Name):
        return False
    above = source.parent(mention)
    if isinstance(mention.ctx, ast.Store):
        return isinstance(above, ast.Assign | ast.AnnAssign)
    match above:
        case ast.Attribute(attr=name):
            return name in _READ
        case ast.Call(func=function):
            return not source.definitions(identifier_of(function) or "")
    return isinstance(above, ast.comprehension | ast.For)
