"""What differs from process to process though nothing is asked: the hash of a word, the address of a new object, the order
in which a set has words or functions. It follows the seed of the hash and where memory happens to lie."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterable, Iterator, Sequence, Set

from dice.kernels.checks.choices import work_of
from dice.kernels.checks.once import once
from dice.kernels.checks.python_names import identifier_of, identifiers
from dice.kernels.checks.python_source import PythonSource
from dice.kernels.source.lexer import words
from dice.python_scope import own_nodes

_NUMBERS = words("hash id __hash__")
_TEXTS = words("repr str ascii format")
"""Functions that write an object's address, if it has no text of its own."""
_IN_ORDER = words("iter next list tuple enumerate zip map filter reversed str repr format")
_METHODS_IN_ORDER = words("pop join fromkeys extend format __iter__")
_WITHOUT_ORDER = words("sorted set frozenset len sum min max any all Counter")
_SETS = words("set frozenset")
_SETS_OF_SETS = words("union intersection difference symmetric_difference copy")
_FAR = 4
"""Names and operations by which a set is followed."""


def per_process(source: PythonSource) -> Set[ast.AST]:
    """Expressions whose value is another one in each process."""
    found = {node for node in source.nodes if _is_number(source, node)}
    sets = [node for node in source.nodes if _is_set(source, node)]
    return found | {use for use in _uses(source, sets) if _is_read_in_order(source, use)}


def _is_number(source: PythonSource, node: ast.AST) -> bool:
    """Whether it is a number or text of the process's own: `hash("word")`, `id(object())`, `max(words, key=hash)`."""
    if isinstance(node, ast.Call):
        name = identifier_of(node.func)
        own = name in _NUMBERS and (isinstance(node.func, ast.Name) or name == "__hash__")
        asked = [*node.args, *([node.func.value] if isinstance(node.func, ast.Attribute) else [])]
        if own:
            return not _names(asked) or _are_functions(source, asked) or _is_asked_of_functions(source, node)
        return isinstance(node.func, ast.Name) and name in _TEXTS and _is_new_object(asked)
    if not (isinstance(node, ast.Name) and node.id in _NUMBERS | _TEXTS):
        return False
    above = source.parent(node)
    above = source.parent(above) if isinstance(above, ast.keyword) else above
    if not isinstance(above, ast.Call) or above.func is node:
        return False
    return (node.id in _NUMBERS and not _names(above.args)) or _are_functions(source, above.args)


def _are_functions(source: PythonSource, asked: Sequence[ast.AST]) -> bool:
    """Whether any of it is a function that works, or holds one: where a function lies is the process's own."""
    references = [each for each in asked if not isinstance(each, ast.Call)]
    return any(work_of(source).of(references))


def _is_asked_of_functions(source: PythonSource, node: ast.Call) -> bool:
    """Whether it stands in the key by which functions are put in order: `max(ways, key=lambda way: id(way))`."""
    keys = (above for above in source.ancestors(node) if isinstance(above, ast.keyword) and above.arg == "key")
    ordered = next((source.parent(key) for key in keys), None)
    return isinstance(ordered, ast.Call) and _are_functions(source, ordered.args)


def _names(asked: Iterable[ast.AST]) -> set[str]:
    return identifiers(part for given in asked for part in ast.walk(given)) - _NUMBERS - {"object"}


def _is_new_object(asked: Iterable[ast.expr]) -> bool:
    return any(isinstance(one, ast.Call) and identifier_of(one.func) == "object" for one in asked)


def _is_set(source: PythonSource, node: ast.AST) -> bool:
    """Whether it makes a set in which words are, or functions that work."""
    match node:
        case ast.Set(elts=elements):
            held: list[ast.expr] = elements
        case ast.SetComp(elt=element, generators=generators):
            held = [element, *(each.iter for each in generators)]
        case ast.Call(func=ast.Name(id=name), args=arguments) if name in _SETS:
            held = arguments
        case _:
            return False
    named = [value for each in held if isinstance(each, ast.Name) for value in source.values(each.id)[:_FAR]]
    return any(_is_worded(source, each) for each in [*held, *named]) or any(work_of(source).of(held))


@once
def _is_worded(_: PythonSource, value: ast.AST) -> bool:
    return any(isinstance(part, ast.Constant) and isinstance(part.value, str | bytes) for part in ast.walk(value))


def _uses(source: PythonSource, sets: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Where sets are used: themselves, names that stand for them, and sets made from them."""
    seen = dict.fromkeys(sets)
    waiting = deque((made, 0) for made in seen)  # the near ones first
    named: set[str] = set()
    while waiting:
        use, far = waiting.popleft()
        yield use
        more: list[ast.AST] = []
        match above := source.parent(use):
            case (
                ast.Assign(targets=[ast.Name(id=name) | ast.Attribute(attr=name)])
                | ast.NamedExpr(target=ast.Name(id=name))
            ):
                mentions = source.mentions(name) if name not in named else []
                more = [node for node in mentions if isinstance(getattr(node, "ctx", None), ast.Load)]
                named.add(name)
            case ast.BinOp():
                more = [above]
            case ast.Attribute(attr=name) if name in _SETS_OF_SETS:
                more = [each for each in [source.parent(above)] if each is not None]
        fresh = [node for node in more if node not in seen] if far < _FAR else []
        seen.update(dict.fromkeys(fresh))
        waiting += [(node, far + 1) for node in fresh]


def _is_read_in_order(source: PythonSource, use: ast.AST) -> bool:
    """Whether the order of a set decides what an expression or a statement around it has."""
    above = source.parent(use)
    match above:
        case ast.Call(func=function) if function is not use:
            name = identifier_of(function)
            named = name in _IN_ORDER if isinstance(function, ast.Name) else name in _METHODS_IN_ORDER
            return named and not _is_put_in_order(source, above)
        case ast.Attribute(attr=name):
            return name in _METHODS_IN_ORDER
        case ast.Starred():
            return not isinstance(source.parent(above), ast.Set)
        case ast.For(iter=iterable, body=body) if iterable is use:
            return any(isinstance(node, ast.Break | ast.Return) for node in own_nodes(body))
        case ast.comprehension(iter=iterable) if iterable is use:
            around = source.parent(above)
            return not isinstance(around, ast.SetComp) and not _is_put_in_order(source, around)
        case ast.Assign(targets=[ast.Tuple() | ast.List()]):
            return True
    return isinstance(above, ast.FormattedValue)


def _is_put_in_order(source: PythonSource, node: ast.AST | None) -> bool:
    """Whether it is only handed to what gives the same in any order: `sorted(list(names))`."""
    above = source.parent(node) if node is not None else None
    return isinstance(above, ast.Call) and above.func is not node and identifier_of(above.func) in _WITHOUT_ORDER
