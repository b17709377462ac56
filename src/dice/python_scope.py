"""Names in a Python source: what its imports stand for, what each scope binds, and where a name is looked up.

The rules are Python's own (language reference, 4.2 "Naming and binding"). Only the syntax tree is read: nothing is
imported or executed. Private names (`__name`) are taken as they are written, and type parameters (`def f[T]`) are passed
over.
"""

from __future__ import annotations

import ast
import builtins
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
Scope = ast.Module | Definition | ast.Lambda | Comprehension


def import_aliases(tree: ast.AST) -> dict[str, str]:
    """Name -> what it was imported as, wherever in `tree`: `F` -> `torch.nn.functional`; relative: `.ops.gelu`."""
    aliases: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                root = name.name.partition(".")[0]  # `import a.b` binds `a`
                aliases[name.asname or root] = name.name if name.asname else root
        elif isinstance(node, ast.ImportFrom):
            source = "." * node.level + (f"{node.module}." if node.module else "")
            aliases.update({name.asname or name.name: source + name.name for name in node.names if name.name != "*"})
    return aliases


def dotted_name(node: ast.AST | None, aliases: Mapping[str, str] = MappingProxyType({})) -> str | None:
    """`torch.nn.functional.relu` for `F.relu`; None where the expression is not a name with attributes behind it."""
    attributes: list[str] = []
    while isinstance(node, ast.Attribute):
        attributes.append(node.attr)
        node = node.value
    return ".".join([aliases.get(node.id, node.id), *reversed(attributes)]) if isinstance(node, ast.Name) else None


def root_name(node: ast.AST) -> str | None:
    """`self` for `self.layer.weight`; None where the expression is not a name with attributes behind it."""
    return (dotted_name(node) or "").partition(".")[0] or None


def parameters(function: Function | ast.Lambda) -> list[ast.arg]:
    """All parameters, in the order in which they are written."""
    args = function.args
    every = [*args.posonlyargs, *args.args, args.vararg, *args.kwonlyargs, args.kwarg]
    return [one for one in every if one is not None]


def positional_parameters(function: Function | ast.Lambda) -> list[str]:
    """Names of the parameters that a call can give by position, `self` included."""
    return [one.arg for one in (*function.args.posonlyargs, *function.args.args)]


def parameter_defaults(function: Function | ast.Lambda) -> dict[str, ast.expr]:
    """Parameter -> its default value, for those that have one."""
    args, positional = function.args, positional_parameters(function)
    found = dict(zip(positional[len(positional) - len(args.defaults) :], args.defaults, strict=True))
    return found | {one.arg: value for one, value in zip(args.kwonlyargs, args.kw_defaults, strict=True) if value}


def functions_in(body: Iterable[ast.stmt]) -> dict[str, Function]:
    """Functions that `body` defines itself, by name; of several with one name the last, as Python has it."""
    return {node.name: node for node in body if isinstance(node, Function)}


def classes_in(body: Iterable[ast.stmt]) -> dict[str, ast.ClassDef]:
    """Classes that `body` defines itself, by name; of several with one name the last, as Python has it."""
    return {node.name: node for node in body if isinstance(node, ast.ClassDef)}


@dataclass(frozen=True, eq=False)
class Binding:
    """One place that gives a name, or an attribute of some object, its value."""

    name: str
    node: ast.AST
    """What binds it: a statement, an `ast.arg`, `ast.alias`, `ast.comprehension`, ..."""
    value: ast.expr | None = None
    """The expression that the value comes from: right-hand side, default, iterable, context manager."""
    whole: bool = True
    """False where the name gets only a part of what `value` gives: an element of it, a round of a loop."""
    attribute: bool = False
    """`name` is an attribute, which belongs to no scope."""


def bindings_of(node: ast.AST) -> Iterator[Binding]:
    """What `node` itself binds, without what is inside it."""
    match node:
        case ast.Assign():
            for target in node.targets:
                yield from _stored(target, node.value, node)
        case ast.AnnAssign() | ast.AugAssign() | ast.NamedExpr():
            yield from _stored(node.target, node.value, node)
        case ast.For() | ast.AsyncFor() | ast.comprehension():
            yield from _stored(node.target, node.iter, node, whole=False)
        case ast.withitem(optional_vars=ast.expr() as target):
            yield from _stored(target, node.context_expr, node, whole=False)
        case ast.Delete():
            for target in node.targets:
                yield from _stored(target, None, node)
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield Binding(node.name, node)
        case ast.Import() | ast.ImportFrom():
            yield from (Binding(name, node) for name in import_aliases(node))
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield Binding(name, node)
        case ast.MatchMapping(rest=str(name)):
            yield Binding(name, node)


def _stored(target: ast.expr, value: ast.expr | None, node: ast.AST, whole: bool = True) -> Iterator[Binding]:
    match target:
        case ast.Name():
            yield Binding(target.id, node, value, whole)
        case ast.Attribute():
            yield Binding(target.attr, node, value, whole, attribute=True)
        case ast.Starred():
            yield from _stored(target.value, value, node, whole=False)
        case ast.Tuple() | ast.List():
            starred = any(isinstance(one, ast.Starred) for one in target.elts)
            written = isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts)
            for position, element in enumerate(target.elts):
                if whole and written and not starred:
                    yield from _stored(element, value.elts[position], node)  # pyright: ignore[reportAttributeAccessIssue, reportOptionalMemberAccess]
                else:
                    yield from _stored(element, value, node, whole=False)


def own_nodes(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes that run where `body` runs: not what nested functions, classes and lambdas hold.

    Comprehensions are entered, although their loop variables have a scope of their own.
    """
    waiting = list(body)
    while waiting:  # a stack: a long concatenation is a deep tree
        node = waiting.pop()
        yield node
        nested = isinstance(node, Definition | ast.Lambda)
        waiting += parts_outside(node) if nested else ast.iter_child_nodes(node)


def bound_names(body: Iterable[ast.AST]) -> set[str]:
    """Names that `body` binds where it runs (see `own_nodes`)."""
    return {found.name for node in own_nodes(body) for found in bindings_of(node) if not found.attribute}


def undefined_names(tree: ast.Module) -> set[str]:
    """Names that are read somewhere in the file and bound nowhere in it; builtins are bound."""
    bound = {*dir(builtins), "__file__", "__name__"}
    bound |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    bound |= {found.name for node in ast.walk(tree) for found in bindings_of(node) if not found.attribute}
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - bound


def parts_outside(scope: ast.AST) -> list[ast.AST]:
    """Parts of a scope's node that run around it: decorators, defaults, annotations, bases, the first iterable."""
    match scope:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            annotations = [one.annotation for one in parameters(scope)]
            given = [*scope.args.defaults, *scope.args.kw_defaults, *annotations, scope.returns]
            return [*scope.decorator_list, *(one for one in given if one is not None)]
        case ast.Lambda():
            return [one for one in (*scope.args.defaults, *scope.args.kw_defaults) if one is not None]
        case ast.ClassDef():
            return [*scope.decorator_list, *scope.bases, *scope.keywords]
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return [scope.generators[0].iter]
    return []


class Scopes:
    """Every scope of a file with what it binds, and the scope of every node."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.parent: dict[ast.AST, ast.AST] = {}
        self.scope_of: dict[ast.AST, Scope] = {}
        """Node -> the scope in which it runs; a function, class or lambda is in the one around it."""
        self.bindings: dict[Scope, dict[str, list[Binding]]] = {}
        """Scope -> name -> what binds it; what is declared `global` stands with the module, `nonlocal` likewise."""
        self.attributes: dict[str, list[Binding]] = defaultdict(list)
        """Attribute -> what stores it, whatever the object."""
        self._elsewhere: dict[tuple[Scope, str], Scope] = {}
        """(scope, name declared global or nonlocal) -> the scope that the name belongs to."""
        for scope, declaration in self._index():
            self._move(scope, declaration)

    def lookup_order(self, name: ast.Name) -> Iterator[Scope]:
        """The scopes that may bind `name`, innermost first; a builtin or undefined name is bound by none of them."""
        scope = self.scope_of[name]
        yield from self._around(self._elsewhere.get((scope, name.id), scope), name.id)

    def owner(self, name: str, scope: Scope) -> Scope | None:
        """The scope whose `name` code in `scope` means; None where nothing binds it."""
        order = self._around(self._elsewhere.get((scope, name), scope), name)
        return next((one for one in order if name in self.bindings[one]), None)

    def _around(self, scope: Scope, name: str) -> Iterator[Scope]:
        yield scope
        while scope is not self.tree:
            scope = self.scope_of[scope]
            if not isinstance(scope, ast.ClassDef):  # a class body is seen from within itself only
                scope = self._elsewhere.get((scope, name), scope)
                yield scope

    def _index(self) -> list[tuple[Scope, ast.Global | ast.Nonlocal]]:
        """Fill the tables; returns the declarations, those of outer scopes first."""
        declarations: list[tuple[Scope, ast.Global | ast.Nonlocal]] = []
        outside: dict[ast.AST, Scope] = {}
        waiting: list[tuple[ast.AST, Scope]] = [(self.tree, self.tree)]
        while waiting:
            node, scope = waiting.pop()
            self.scope_of[node] = scope
            inner = scope
            if isinstance(node, Scope):
                inner = node
                outside |= dict.fromkeys(parts_outside(node), scope)
                self.bindings[node] = self._parameters(node)
            if isinstance(node, ast.Global | ast.Nonlocal):
                declarations.append((scope, node))
            self._record(node, scope)
            for child in ast.iter_child_nodes(node):
                self.parent[child] = node
                waiting.append((child, outside.get(child, inner)))
        return declarations

    @staticmethod
    def _parameters(scope: Scope) -> dict[str, list[Binding]]:
        found: dict[str, list[Binding]] = defaultdict(list)
        if isinstance(scope, Function | ast.Lambda):
            defaults = parameter_defaults(scope)
            for one in parameters(scope):
                found[one.arg].append(Binding(one.arg, one, defaults.get(one.arg)))
        return found

    def _record(self, node: ast.AST, scope: Scope) -> None:
        while isinstance(node, ast.NamedExpr) and isinstance(scope, Comprehension):
            scope = self.scope_of[scope]  # `:=` in a comprehension binds outside it
        for found in bindings_of(node):
            (self.attributes if found.attribute else self.bindings[scope])[found.name].append(found)

    def _move(self, scope: Scope, declaration: ast.Global | ast.Nonlocal) -> None:
        """Hand what `scope` binds to the scope that it declares the names to belong to."""
        for name in declaration.names:
            owner: Scope = self.tree
            if isinstance(declaration, ast.Nonlocal):
                around = self._around(self.scope_of[scope], name)
                owner = next(
                    (one for one in around if not isinstance(one, ast.ClassDef) and name in self.bindings[one]),
                    self.tree,
                )
            self._elsewhere[scope, name] = owner
            self.bindings[owner][name] += self.bindings[scope].pop(name, [])
