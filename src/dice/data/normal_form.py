"""The normal form of a PyTorch program: without comments, docstrings, annotations, layout and the author's names.

Deduplication and the leakage check take two programs with one normal form for the same program. The form is made from the
syntax tree; nothing is executed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from dice.python_scope import Function, bindings_of, import_aliases, own_nodes, parameters
from dice.python_text import parse_python

HARNESS_FUNCTIONS = frozenset({"get_inputs", "get_init_inputs"})
"""Functions of the KernelBench format that choose shapes and do not compute."""
_LONGEST_BODY = 400
"""Temporaries are not searched for in functions with more statements, because the search is quadratic."""
_DEEPEST = 200
"""Most levels of a tree that is written anew: the stack holds some three hundred of them, fewer below a deep caller."""
_KEPT_NAMES = HARNESS_FUNCTIONS | {"forward"}
_PLACEHOLDER = re.compile(r"_[agl]\d+_")
_TOKEN = re.compile(r"[A-Za-z_]\w*|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\"[^\"\n]*\"|'[^'\n]*'|[^\s\w]")


def _height(node: ast.AST) -> int:
    """Levels of a tree. Counted without recursion."""
    levels, level = 0, [node]
    while level:
        levels, level = levels + 1, [child for one in level for child in ast.iter_child_nodes(one)]
    return levels


def rewritable_tree(code: str) -> ast.Module | None:
    """The syntax tree; None where the code is not Python, or nested so deeply that its tree cannot be written anew."""
    try:
        tree = parse_python(code)
    except SyntaxError:
        return None
    return tree if _height(tree) <= _DEEPEST else None


def _chosen_names(body: Iterable[ast.AST]) -> set[str]:
    """Names that statements bind where they run. Imported names are left out: their meaning is not the author's."""
    nodes = (node for node in own_nodes(body) if not isinstance(node, ast.Import | ast.ImportFrom))
    return {found.name for node in nodes for found in bindings_of(node) if not found.attribute}


def _own_attributes(node: ast.ClassDef) -> set[str]:
    """Attributes that a class defines itself: methods, class variables, and attributes stored on objects."""
    stored = {found.name for child in ast.walk(node) for found in bindings_of(child) if found.attribute}
    return _chosen_names(node.body) | stored


def _loads(name: str, nodes: Iterable[ast.AST]) -> int:
    return sum(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
        for root in nodes
        for node in ast.walk(root)
    )


def _stores(name: str, node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and any(isinstance(one, ast.Name) and one.id == name for one in node.targets)


class _Substitution(ast.NodeTransformer):
    """Puts `value` where `name` is read."""

    def __init__(self, name: str, value: ast.expr) -> None:
        self.name, self.value = name, value

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self.value if node.id == self.name and isinstance(node.ctx, ast.Load) else node


def without_temporaries(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements, with a temporary that only the next statement reads, and reads once, replaced by its value.

    `y = torch.relu(x); return y` becomes `return torch.relu(x)`, so that both count as the same program.
    """
    if len(body) > _LONGEST_BODY:
        return body
    done: list[ast.stmt] = []
    for position, node in enumerate(body):
        while done and isinstance(node, ast.Assign | ast.Return) and node.value is not None:
            last = done[-1]
            if not (isinstance(last, ast.Assign) and len(last.targets) == 1 and isinstance(last.targets[0], ast.Name)):
                break
            name = last.targets[0].id
            later = [] if isinstance(node, ast.Return) or _stores(name, node) else body[position + 1 :]
            if _loads(name, [node]) != 1 or _loads(name, later) or _height(node) + _height(last.value) > _DEEPEST:
                break
            node = _Substitution(name, last.value).visit(node)
            done.pop()
        done.append(node)
    return done


class _Scope:
    """Names bound in one scope, numbered in the order in which they appear."""

    def __init__(self, letter: str, bound: Iterable[str]) -> None:
        self.letter = letter
        self.bound = set(bound)
        self.numbered: dict[str, str] = {}

    def name(self, name: str) -> str:
        return self.numbered.setdefault(name, f"_{self.letter}{len(self.numbered)}_")


class _Renamer(ast.NodeTransformer):
    """Rewrites a tree in place; see the module's docstring."""

    def __init__(self, tree: ast.Module) -> None:
        self.aliases = import_aliases(tree)
        self.scopes = [_Scope("g", _chosen_names(tree.body) - _KEPT_NAMES)]
        self.attributes = _Scope("a", ())
        self.self_name: str | None = None

    def _lookup(self, name: str) -> str:
        for scope in reversed(self.scopes):
            if name in scope.bound:
                return scope.name(name)
        return self.aliases.get(name, name)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.copy_location(ast.Name(self._lookup(node.id), node.ctx), node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        own = (
            isinstance(node.value, ast.Name) and node.value.id == self.self_name and node.attr in self.attributes.bound
        )
        self.generic_visit(node)
        if own and node.attr not in _KEPT_NAMES:
            node.attr = self.attributes.name(node.attr)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return ast.arg(self._lookup(node.arg), None)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        return None if node.value is None else self.visit(ast.Assign([node.target], node.value, lineno=node.lineno))

    def visit_Import(self, node: ast.Import) -> None:
        return None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        return None

    def visit_If(self, node: ast.If) -> ast.AST | None:
        test = node.test
        if isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__":
            return None
        return self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        if isinstance(node.value, ast.Constant):
            return None  # a docstring, or an unused value
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id == "super":
            return ast.Call(ast.Name("super", ast.Load()), [], [])
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        outer = self.attributes
        self.attributes = _Scope("a", {name for name in _own_attributes(node) if not name.startswith("__")})
        node.name = self._lookup(node.name)
        node.bases = [self.visit(base) for base in node.bases]
        node.body = _filled(self.visit(child) for child in node.body)
        self.attributes = outer
        return node

    def _function(self, node: Function | ast.Lambda, body: Iterable[ast.AST]) -> None:
        arguments = [one.arg for one in parameters(node)]
        self.scopes.append(_Scope("l", {*arguments, *_chosen_names(body)}))
        outer_self = self.self_name
        if isinstance(node, ast.FunctionDef) and self.attributes.bound and arguments and len(self.scopes) == 2:
            self.self_name = arguments[0]
        self.generic_visit(node)
        self.self_name = outer_self
        self.scopes.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if node.name in self.attributes.bound and len(self.scopes) == 1:
            name = node.name if node.name in _KEPT_NAMES else self.attributes.name(node.name)
        else:
            name = self._lookup(node.name)
        node.returns = None
        node.body = without_temporaries(node.body)
        self._function(node, node.body)
        node.name = name
        node.body = node.body or [ast.Pass()]
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        self._function(node, [node.body])
        return node


def _filled(nodes: Iterable[ast.AST | None]) -> list[ast.stmt]:
    """The remaining statements; `pass` where there are none."""
    return [node for node in nodes if isinstance(node, ast.stmt)] or [ast.Pass()]


def drop_docstrings(tree: ast.Module) -> None:
    """Take docstrings, and other constants that are statements, out of a tree."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            kept = [item for item in body if not (isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant))]
            node.body = kept or [ast.Pass()]  # pyright: ignore[reportAttributeAccessIssue]


def _text(nodes: Iterable[ast.stmt]) -> str:
    text = ast.unparse(ast.Module(list(nodes), []))
    return text.replace("torch.nn.functional.", "torch.")  # F.relu and torch.relu are one operator


@dataclass(frozen=True)
class NormalForms:
    """The normal forms of one program, made by `normal_forms`: they differ in how much they leave out."""

    code: str
    tree: ast.Module | None
    """None where the program has no `rewritable_tree`; then only `text` and `tokens` are not empty."""

    @cached_property
    def text(self) -> str:
        """Without comments, docstrings and layout; names as they are."""
        if self.tree is None:
            return " ".join(self.code.split())
        tree = parse_python(self.code)
        drop_docstrings(tree)
        return ast.unparse(tree)

    @cached_property
    def _statements(self) -> list[ast.stmt]:
        if self.tree is None:
            return []
        tree = parse_python(self.code)  # the renamer works in place
        return _Renamer(tree).visit(tree).body

    @cached_property
    def model(self) -> str:
        """Classes and helper functions, without HARNESS_FUNCTIONS; the author's names are numbered."""
        return _text(
            node
            for node in self._statements
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name not in HARNESS_FUNCTIONS
        )

    @cached_property
    def tokens(self) -> list[str]:
        """Tokens of `model`, with one placeholder for all of the author's names; of the text where there is no tree."""
        found = _TOKEN.findall(self.model if self.tree is not None else self.code)
        return ["_" if _PLACEHOLDER.fullmatch(token) else token for token in found]


def normal_forms(code: str) -> NormalForms:
    """The normal forms of `code`; never raises, whatever the code is."""
    return NormalForms(code, rewritable_tree(code))
