"""The place in a candidate's file that writes its CUDA source: from the call that builds it back to the string literal.

A candidate is a Python file that hands CUDA text to `load_inline` (torch.utils.cpp_extension). The text may be a
variable, an attribute, an element of a list or dictionary, a literal in the call, an f-string, a concatenation or
the value of a helper function. `find_source` follows these through the syntax tree, without executing anything, to
the one place of the file that holds the literal with the kernels.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from dice.python_scope import Binding, Function, Scope, Scopes, positional_parameters, undefined_names

RefusalReason = Literal[
    "syntax",  # the candidate is not Python
    "no_extension",  # it builds nothing from a string
    "no_kernel_source",  # no string that reaches the extension holds a kernel
    "several_sources",  # kernels are written in several places
    "appended",  # the source is put together with +=
    "not_a_string",  # the source is computed, not written
    "hidden_variable",  # the scaffold does not show which name the middle must assign
    "no_middle",  # a response holds no such assignment or expression
    "unfinished",  # a response's string has no end
]
FoundBy = Literal["cuda_sources", "cpp_sources", "written_file", "only_kernel_string"]

_LOADERS = ("load_inline", "load")
_WRITERS = ("write", "write_text", "write_bytes", "writelines", "print")
_STRING_METHODS = ("format", "replace", "strip", "lstrip", "rstrip", "join", "dedent", "cleandoc", "substitute")
_STRING_FUNCTIONS = ("dedent", "cleandoc", "str", "Template")
CPP_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


class InfillingRefused(ValueError):
    """A candidate or a response cannot be cut into prefix, middle and suffix; reports count by `reason`."""

    def __init__(self, reason: RefusalReason, message: str) -> None:
        super().__init__(message)
        self.reason: RefusalReason = reason


@dataclass(frozen=True)
class SourcePlace:
    """The piece of Python that writes the CUDA source: a whole assignment, or an expression inside a call."""

    node: ast.stmt | ast.expr
    variable: str | None
    """What is assigned to (`source`, `self.cuda_source`); None for an expression."""
    found_by: FoundBy
    """The argument that led here; `written_file`: a file that the candidate writes for `load`; `only_kernel_string`: no
    call could be followed, and this is the only used string of the file that holds a kernel."""


def has_kernel(text: str) -> bool:
    """Whether C++ text declares a CUDA kernel outside comments."""
    return re.search(r"\b__global__\b", CPP_COMMENT.sub(" ", text)) is not None


def _looks_like_code(text: str) -> bool:
    return re.search(r"[;{]", text) is not None  # not a file name or an encoding


def puts_text_together(node: ast.AST) -> bool:
    """Whether this node only joins its parts to text (or a list of texts): f-string, operator, string method."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Add | ast.Mod | ast.Mult | ast.Sub | ast.FloorDiv)
    if isinstance(node, ast.Call):
        names = _STRING_METHODS if isinstance(node.func, ast.Attribute) else _STRING_FUNCTIONS
        return _called_name(node) in names
    return isinstance(node, ast.JoinedStr | ast.FormattedValue | ast.List | ast.Tuple)


def _called_name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def find_source(tree: ast.Module) -> SourcePlace:
    """The place of the CUDA source. Raises InfillingRefused with the reason when there is none or more than one."""
    return _Finder(tree).find()


def unbound_source_names(tree: ast.Module) -> set[str]:
    """Variables and attributes (`source`, `self.source`) that reach the extension and are assigned nowhere."""
    finder = _Finder(tree)
    for _, values in finder.searches():
        for value in values:
            finder.literals_of(value)
        if finder.unbound:
            break
    return finder.unbound


@dataclass(frozen=True)
class _Written:
    """A value that a name gets; `home` is the piece of the file that a literal inside `value` belongs to."""

    value: ast.expr
    home: ast.stmt | ast.expr


def _written(bindings: Iterable[Binding]) -> list[_Written]:
    """The values that `bindings` write out: assigned ones, and defaults of parameters."""
    found: list[_Written] = []
    for one in bindings:
        if one.value is not None and one.whole:
            statement = one.node if isinstance(one.node, ast.Assign | ast.AnnAssign | ast.AugAssign) else None
            if statement is not None and statement.value is not one.value:  # `a, b = "...", "..."`
                statement = None
            found.append(_Written(one.value, statement or one.value))
    return found


def _entries(node: ast.Dict, key: object) -> Iterator[ast.expr]:
    """The values that a literal dictionary writes under a constant key."""
    named = zip(node.keys, node.values, strict=True)
    return (value for name, value in named if isinstance(name, ast.Constant) and name.value == key)


Literals = dict[ast.stmt | ast.expr, list[str]]


class _Finder:
    def __init__(self, tree: ast.Module) -> None:
        self.scopes = Scopes(tree)
        self.nodes = list(self.scopes.scope_of)
        self.calls = [node for node in self.nodes if isinstance(node, ast.Call)]
        self.functions: dict[str, list[Function]] = defaultdict(list)
        self.loader_names: dict[str, str] = {}
        for node in self.nodes:
            if isinstance(node, Function):
                self.functions[node.name].append(node)
            elif isinstance(node, ast.ImportFrom) and (node.module or "").endswith("cpp_extension"):
                self.loader_names |= {
                    name.asname or name.name: name.name for name in node.names if name.name in _LOADERS
                }
        self.attributes = self._attributes()
        self.undefined = undefined_names(tree)
        self.unbound: set[str] = set()
        """Names and attributes that `literals_of` met and the file assigns nowhere."""

    # -- the values of names --

    def _attributes(self) -> dict[str, list[_Written]]:
        """Attribute -> what is stored in it: `self.source = ...`, or `source = ...` in a class."""
        found: dict[str, list[_Written]] = defaultdict(list)
        in_classes = [names for scope, names in self.scopes.bindings.items() if isinstance(scope, ast.ClassDef)]
        for names in (self.scopes.attributes, *in_classes):
            for name, bindings in names.items():
                if written := _written(bindings):
                    found[name] += written
        return found

    def _values_of(self, name: ast.Name) -> list[_Written]:
        for scope in self.scopes.lookup_order(name):
            if found := self._in_scope(scope, name.id):
                return found
        return []

    def _in_scope(self, scope: Scope, name: str) -> list[_Written]:
        found = _written(self.scopes.bindings[scope].get(name, ()))
        if isinstance(scope, Function):
            positional = positional_parameters(scope)
            if name in positional or name in [one.arg for one in scope.args.kwonlyargs]:
                found += [_Written(value, value) for value in self._passed(scope, name, positional)]
        return found

    def _passed(self, function: Function, name: str, positional: list[str]) -> Iterator[ast.expr]:
        """What calls of `function` pass for its parameter `name`."""
        for call in self.calls:
            if _called_name(call) != function.name:
                continue
            method = isinstance(call.func, ast.Attribute)
            yield from (keyword.value for keyword in call.keywords if keyword.arg == name)
            skipped = int(method and bool(positional) and positional[0] in ("self", "cls"))
            if name in positional and 0 <= positional.index(name) - skipped < len(call.args):
                yield call.args[positional.index(name) - skipped]

    # -- from an expression to the literals that it is made of --

    def literals_of(self, expression: ast.expr) -> Literals:
        """Place -> the texts that it writes, for all parts of `expression`; blank places are left out."""
        found: Literals = defaultdict(list)
        visited: set[ast.AST] = set()
        pending: list[tuple[ast.expr, ast.stmt | ast.expr]] = [(expression, expression)]
        while pending:
            node, home = pending.pop()
            if node in visited:
                continue
            visited.add(node)
            if isinstance(node, ast.Constant):
                if isinstance(node.value, str | bytes):
                    text = node.value
                    found[home].append(text if isinstance(text, str) else text.decode("utf-8", "replace"))
            elif isinstance(node, ast.Name):
                pending += [(b.value, b.home) for b in self._values_of(node)]
                if node.id in self.undefined:
                    self.unbound.add(node.id)
            elif isinstance(node, ast.Attribute):
                pending += [(b.value, b.home) for b in self.attributes.get(node.attr, [])]
                if node.attr not in self.attributes and isinstance(node.value, ast.Name):
                    self.unbound.add(ast.unparse(node))
            elif isinstance(node, ast.Subscript):
                element = self._element(node)
                pending.append((element, element) if element else (node.value, home))
            elif isinstance(node, ast.List | ast.Tuple):
                inline = home is node  # in a list inside the call, each element is a place
                pending += [(element, element if inline else home) for element in node.elts]
            elif isinstance(node, ast.Call):
                pending += self._call_parts(node, home)
            elif isinstance(node, ast.NamedExpr):
                pending.append((node.value, node.value))
            else:  # made of its parts; where it does more than join text, each part is a place
                parts = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
                pending += [(part, home if puts_text_together(node) else part) for part in parts]
        return {place: texts for place, texts in found.items() if "".join(texts).strip()}

    def _call_parts(self, call: ast.Call, home: ast.stmt | ast.expr) -> Iterator[tuple[ast.expr, ast.stmt | ast.expr]]:
        if isinstance(call.func, ast.Attribute):
            yield call.func.value, home  # "...".format(), template.replace()
        for function in self.functions.get(_called_name(call), []):
            for node in ast.walk(function):
                if isinstance(node, ast.Return) and node.value is not None and self.scopes.scope_of[node] is function:
                    yield node.value, node.value
        for argument in (*call.args, *(keyword.value for keyword in call.keywords)):
            yield argument, home if puts_text_together(call) else argument

    def _written_out(self, node: ast.expr) -> list[ast.expr]:
        """The expressions that a name stands for; of anything else itself."""
        return [b.value for b in self._values_of(node)] if isinstance(node, ast.Name) else [node]

    def _element(self, node: ast.Subscript) -> ast.expr | None:
        """The element that a constant subscript of a literal list or dictionary selects."""
        values = self._written_out(node.value)
        if len(values) != 1 or not isinstance(node.slice, ast.Constant):
            return None
        key = node.slice.value
        if isinstance(values[0], ast.Dict):
            return next(_entries(values[0], key), None)
        if isinstance(values[0], ast.List | ast.Tuple) and isinstance(key, int):
            return values[0].elts[key] if -len(values[0].elts) <= key < len(values[0].elts) else None
        return None

    # -- the choice --

    def searches(self) -> list[tuple[FoundBy, list[ast.expr]]]:
        """The expressions that may hold the source, the most reliable first."""
        inline = [call for call in self.calls if self._loader(call) == "load_inline"]
        loads = any(self._loader(call) == "load" for call in self.calls)
        writers = [call for call in self.calls if loads and _called_name(call) in _WRITERS]
        return [
            ("cuda_sources", [value for call in inline for value in self._argument(call, "cuda_sources", 2)]),
            ("cpp_sources", [value for call in inline for value in self._argument(call, "cpp_sources", 1)]),
            ("written_file", [value for call in writers for value in call.args]),
        ]

    def find(self) -> SourcePlace:
        without_kernel: list[tuple[ast.stmt | ast.expr, FoundBy]] = []
        for found_by, values in self.searches():
            literals: Literals = {}
            for value in values:
                literals.update(self.literals_of(value))
            if kernels := [place for place, texts in literals.items() if has_kernel("".join(texts))]:
                return self._only(kernels, found_by)
            if found_by == "cuda_sources":  # CUDA text may call libraries and hold no kernel of its own
                without_kernel = [(p, found_by) for p, texts in literals.items() if _looks_like_code("".join(texts))]
        if used := self._used_kernel_strings():
            return self._only(used, "only_kernel_string")
        if len(without_kernel) == 1:
            return self._place(*without_kernel[0])
        if any(self._loader(call) for call in self.calls):
            raise InfillingRefused("no_kernel_source", "no string that reaches the extension holds a __global__ kernel")
        raise InfillingRefused("no_extension", "the code builds no CUDA extension from a string")

    def _loader(self, call: ast.Call) -> str | None:
        if isinstance(call.func, ast.Name):
            return self.loader_names.get(call.func.id) or ("load_inline" if call.func.id == "load_inline" else None)
        if isinstance(call.func, ast.Attribute):
            if call.func.attr == "load_inline":
                return "load_inline"
            if call.func.attr == "load" and ast.unparse(call.func.value).endswith("cpp_extension"):
                return "load"
        return None

    def _argument(self, call: ast.Call, name: str, position: int) -> Iterator[ast.expr]:
        yield from (keyword.value for keyword in call.keywords if keyword.arg == name)
        if len(call.args) > position and not any(isinstance(a, ast.Starred) for a in call.args[: position + 1]):
            yield call.args[position]
        for packed in (keyword.value for keyword in call.keywords if keyword.arg is None):
            for value in self._written_out(packed):
                if isinstance(value, ast.Dict):
                    yield from _entries(value, name)
                elif isinstance(value, ast.Call):  # dict(cuda_sources=...)
                    yield from (keyword.value for keyword in value.keywords if keyword.arg == name)

    def _used_kernel_strings(self) -> list[ast.stmt | ast.expr]:
        """Strings with a kernel that no call leads to, without docstrings and variables that are never read."""
        read = {node.id for node in self.nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        read |= {n.attr for n in self.nodes if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load)}
        places: dict[ast.stmt | ast.expr, None] = {}
        for node in self.nodes:
            if not (isinstance(node, ast.Constant) and isinstance(node.value, str) and has_kernel(node.value)):
                continue
            outer: ast.AST = node
            while isinstance(self.scopes.parent[outer], ast.JoinedStr | ast.BinOp | ast.FormattedValue):
                outer = self.scopes.parent[outer]
            parent = self.scopes.parent[outer]
            if isinstance(parent, ast.Assign | ast.AnnAssign):
                targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
                if any((getattr(t, "id", None) or getattr(t, "attr", None)) in read for t in targets):
                    places[parent] = None
            elif not isinstance(parent, ast.Expr) and isinstance(outer, ast.expr):
                places[outer] = None
        return list(places)

    def _only(self, places: list[ast.stmt | ast.expr], found_by: FoundBy) -> SourcePlace:
        if len(places) > 1:
            lines = ", ".join(str(line) for line in sorted(place.lineno for place in places))
            raise InfillingRefused("several_sources", f"kernels are written in {len(places)} places (lines {lines})")
        return self._place(places[0], found_by)

    def _place(self, node: ast.stmt | ast.expr, found_by: FoundBy) -> SourcePlace:
        if isinstance(node, ast.AugAssign):
            raise InfillingRefused("appended", f"the source is put together with += (line {node.lineno})")
        if isinstance(node, ast.Assign):
            return SourcePlace(node, ast.unparse(node.targets[0]), found_by)
        if isinstance(node, ast.AnnAssign):
            return SourcePlace(node, ast.unparse(node.target), found_by)
        return SourcePlace(node, None, found_by)
