"""Names and scopes, against CPython's own symbol table (`symtable`) on the standard library and on hard cases."""

import ast
import importlib.util
import symtable
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from dice.python_scope import (
    Scopes,
    bindings_of,
    bound_names,
    classes_in,
    dotted_name,
    functions_in,
    import_aliases,
    own_nodes,
    parameter_defaults,
    parameters,
    positional_parameters,
    root_name,
    undefined_names,
)
from dice.python_text import parse_python

LIBRARY = (
    "argparse", "ast", "asyncio.tasks", "collections", "dataclasses", "difflib", "enum", "functools", "inspect", "logging",
    "mimetypes", "pickle", "pkgutil", "statistics", "tarfile", "tokenize", "unittest.mock", "zipfile",
)  # fmt: skip

HARD = """
import a.b, c.d as e
from f import g as h, i
from . import sibling
from os import *
counter: int
total: int = 0
source = None

def outer(first, /, second=source, *rest, third: counter = 3, **others):
    def inner():
        nonlocal first
        global total, fresh
        total, fresh = first, 1
        first += 1
        def innermost():
            return first, total, second
        return innermost
    return [first for first in rest if first], {x: y for x, y in others.items()}, (z for z in second)

class Body(dict, metaclass=type):
    source = source
    columns = [source for source in (source,)]
    rows = {source for _ in range(3)}
    def method(self, default=source):
        return source, default, __class__, super().keys()
    class Nested:
        def method(self):
            return columns
    @property
    def decorated(self, picked=(walrus := 1)):
        return walrus

def flow(value):
    if any((last := one) for one in value):
        print(last)
    with open(value) as (stream, *lines), lock:
        for value[0], self.field, (left, [right]) in stream:
            del left
    try:
        raise
    except (OSError, *others) as error:
        import late.module
    match value:
        case {"key": captured, **remaining}:
            pass
        case [head, *tail] | (head, *tail) as whole:
            pass
    async def waits():
        async for item in value:
            async with item as entered:
                pass
    return lambda one, two=last, *three: (one, two, three, captured, late)

def shadows():
    global total
    def reads():
        return total
    return [total for _ in "ab"], reads

def hides():
    total = 1
    def declares():
        global total
        return lambda: total
    return declares
"""


def library_sources():
    for name in LIBRARY:
        found = importlib.util.find_spec(name)
        assert found is not None
        assert found.origin is not None
        yield name, Path(found.origin).read_text(encoding="utf-8")


def tables_of(table, classes=()):
    """(table, classes around it) of a symbol table and all below it."""
    yield table, classes
    inner = (*classes, table.get_name()) if table.get_type() == "class" else classes
    for child in table.get_children():
        yield from tables_of(child, inner)


def plain(name, classes):
    """The name as it is written: CPython puts the class before a private one."""
    for owner in classes:
        if name.startswith(f"_{owner.lstrip('_')}__"):
            return name[len(owner.lstrip("_")) + 1 :]
    return name


INLINED = ("listcomp", "setcomp", "dictcomp") if sys.version_info >= (3, 12) else ()
"""Comprehensions that CPython counts among the scope around them."""
LABELS = {"Lambda": "lambda", "ListComp": "listcomp", "SetComp": "setcomp", "DictComp": "dictcomp"}
LABELS |= {"GeneratorExp": "genexpr", "Module": ""}


def place_of(scope):
    """What both sides know of a scope: its line and name."""
    return getattr(scope, "lineno", 0), LABELS.get(type(scope).__name__, getattr(scope, "name", ""))


def cpython(code):
    """Place -> for each scope there: name -> `local`, `free` or `global`."""
    found = defaultdict(list)
    for table, classes in tables_of(symtable.symtable(code, "source.py", "exec")):
        if table.get_type() not in ("module", "class", "function"):
            continue  # type parameters
        own = (*classes, table.get_name()) if table.get_type() == "class" else classes
        kinds = {
            plain(symbol.get_name(), own): "local" if symbol.is_local() else "free" if symbol.is_free() else "global"
            for symbol in table.get_symbols()
        }
        module = table.get_type() == "module"
        found[(0, "") if module else (table.get_lineno(), table.get_name())].append(kinds)
    return found


def inlined_names(scopes):
    """Loop variables of comprehensions that have no table of their own."""
    inlined = [names for scope, names in scopes.bindings.items() if place_of(scope)[1] in INLINED]
    return {name for names in inlined for name in names}


def declared_global(code):
    """Names that some function declares global and binds."""
    return {
        symbol.get_name()
        for table, _ in tables_of(symtable.symtable(code, "source.py", "exec"))
        for symbol in table.get_symbols()
        if symbol.is_declared_global() and (symbol.is_assigned() or symbol.is_imported())
    }


@pytest.fixture(scope="module", params=["hard cases", *LIBRARY])
def code(request):
    if request.param == "hard cases":
        return HARD
    return dict(library_sources())[request.param]


def test_each_scope_binds_what_cpython_says(code):
    scopes = Scopes(parse_python(code))
    ignored = inlined_names(scopes)
    expected = defaultdict(list)
    for place, tables in cpython(code).items():
        more = declared_global(code) if place == (0, "") else set()
        for kinds in tables if place[1] not in INLINED else []:
            names = {name for name, kind in kinds.items() if kind == "local" and not name.startswith(".")}
            expected[place].append(sorted((names | more) - ignored))
    found = defaultdict(list)
    for scope, bindings in scopes.bindings.items():
        if place_of(scope)[1] not in INLINED:
            found[place_of(scope)].append(sorted({name for name, places in bindings.items() if places} - ignored))
    assert {place: sorted(names) for place, names in found.items()} == {
        place: sorted(names) for place, names in expected.items()
    }


def test_each_name_is_looked_up_where_cpython_looks(code):
    tables = cpython(code)
    scopes = Scopes(parse_python(code))
    unclear = {"__class__"} | inlined_names(scopes)  # the one that Python gives to methods by itself
    compared = 0
    for name in (node for node in scopes.scope_of if isinstance(node, ast.Name)):
        own = scopes.scope_of[name]
        if isinstance(own, ast.Module) or len(tables[place_of(own)]) != 1 or name.id in unclear:
            continue  # `len`: two lambdas on one line
        binding = next((one for one in scopes.lookup_order(name) if scopes.bindings[one].get(name.id)), scopes.tree)
        kind = "global" if binding is scopes.tree else "local" if binding is own else "free"
        assert (name.id, kind) == (name.id, tables[place_of(own)][0][name.id])
        compared += 1
    assert compared > 30


def test_own_nodes_leave_out_what_runs_elsewhere():
    tree = parse_python(
        "@decorated\ndef f(a: noted = given) -> result:\n    inside\n"
        "class C(base, key=word):\n    inside\n"
        "g = lambda b=given: inside\n[around for each in these]\n"
    )
    names = {node.id for node in own_nodes(tree.body) if isinstance(node, ast.Name)}
    assert names == {"decorated", "noted", "given", "result", "base", "word", "g", "around", "each", "these"}


def test_of_two_definitions_with_one_name_the_last_counts():
    body = parse_python("def f(): 1\nclass C:\n    def f(): 2\nasync def f(): 3\nclass C: 4\n").body
    assert functions_in(body) == {"f": body[2]}
    assert classes_in(body) == {"C": body[3]}


def test_bound_names_are_those_of_one_body():
    tree = parse_python("import a.b as c\nx, self.y = 1, 2\nfor i in x:\n    def f(p): q = 1\n[j for j in (k := x)]\n")
    assert bound_names(tree.body) == {"c", "x", "i", "f", "j", "k"}


def test_a_deep_tree_is_no_deep_recursion():
    deep: ast.expr = ast.Name("x", ast.Load())
    for _ in range(5000):
        deep = ast.BinOp(deep, ast.Add(), ast.Name("x", ast.Load()))
    tree = ast.Module([ast.Assign([ast.Name("y", ast.Store())], deep)], [])
    assert bound_names(tree.body) == {"y"}
    assert sum(isinstance(node, ast.BinOp) for node in Scopes(tree).scope_of) == 5000


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("import a.b", {"a": "a"}),
        ("import a.b as c", {"c": "a.b"}),
        ("from a.b import c, d as e", {"c": "a.b.c", "e": "a.b.d"}),
        ("from a import *", {}),
        ("from .ops import gelu", {"gelu": ".ops.gelu"}),
        ("from .. import ops", {"ops": "..ops"}),
        ("def f():\n    import torch.nn.functional as F", {"F": "torch.nn.functional"}),
    ],
)
def test_import_aliases(statement, expected):
    assert import_aliases(parse_python(statement)) == expected


@pytest.mark.parametrize(
    ("expression", "dotted", "root"),
    [
        ("F.relu", "torch.nn.functional.relu", "F"),
        ("F", "torch.nn.functional", "F"),
        ("self.F.relu", "self.F.relu", "self"),
        ("F().relu", None, None),
        ("F[0].relu", None, None),
        ("'F'.join", None, None),
    ],
)
def test_dotted_names(expression, dotted, root):
    node = ast.parse(expression, mode="eval").body
    assert dotted_name(node, {"F": "torch.nn.functional", "relu": "wrong"}) == dotted
    assert root_name(node) == root


def test_parameters_and_their_defaults():
    function = parse_python("def f(a, b=1, /, c=2, *d, e, g=3, **h): pass").body[0]
    assert isinstance(function, ast.FunctionDef)
    assert [one.arg for one in parameters(function)] == ["a", "b", "c", "d", "e", "g", "h"]
    assert positional_parameters(function) == ["a", "b", "c"]
    defaults = {name: ast.literal_eval(value) for name, value in parameter_defaults(function).items()}
    assert defaults == {"b": 1, "c": 2, "g": 3}


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("a = b = c", [("a", "c", True, False), ("b", "c", True, False)]),
        ("a, (b, c) = d, (e, f)", [("a", "d", True, False), ("b", "e", True, False), ("c", "f", True, False)]),
        ("a, b = c", [("a", "c", False, False), ("b", "c", False, False)]),
        ("a, *b = c, d", [("a", "(c, d)", False, False), ("b", "(c, d)", False, False)]),
        ("a.b.c = d", [("c", "d", True, True)]),
        ("a[0] = d", []),
        ("a += b", [("a", "b", True, False)]),
        ("a: int", [("a", None, True, False)]),
        ("for a, b in (c, d): pass", [("a", "(c, d)", False, False), ("b", "(c, d)", False, False)]),
        ("del a", [("a", None, True, False)]),
    ],
)
def test_bindings_tell_where_a_value_comes_from(statement, expected):
    found = bindings_of(parse_python(statement).body[0])
    assert [(one.name, one.value and ast.unparse(one.value), one.whole, one.attribute) for one in found] == expected


def test_a_parameter_has_its_default_and_a_global_stands_with_the_module():
    tree = parse_python(
        "x = 1\ndef f(y=x):\n    global x\n    x = 2\n    def g():\n        nonlocal y\n        y = 3\n"
    )
    scopes = Scopes(tree)
    function = tree.body[1]
    assert isinstance(function, ast.FunctionDef)
    assert [one.value and ast.unparse(one.value) for one in scopes.bindings[tree]["x"]] == ["1", "2"]
    assert [one.value and ast.unparse(one.value) for one in scopes.bindings[function]["y"]] == ["x", "3"]


def test_undefined_names_are_read_and_bound_nowhere():
    assert undefined_names(parse_python(HARD)) == {"lock", "__class__"}
    code = "def f(a, *b, **c):\n    return a, b, c, d, print, __file__\nclass E:\n    pass\nE, f, g\n"
    assert undefined_names(parse_python(code)) == {"d", "g"}
