"""What the names in a candidate's Python mean.

Names are resolved through imports, simple aliases, `getattr` with a constant, `sys.modules[...]` and constant string
arithmetic, so that `t = torch; setattr(t.cuda, "sync" + "hronize", f)` reads like the plain assignment.
"""

from __future__ import annotations

import ast
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from importlib.util import decode_source
from itertools import pairwise
from typing import Any

from dice.python_scope import Definition, Function, bindings_of, functions_in, import_aliases
from dice.python_text import parse_python

_RECURSION_LIMIT = 30_000
"""Python compiles expressions of some 3,000 levels; the rules, and `ast.unparse`, make several calls for each level."""
_LONGEST_TEXT = 1 << 20
"""Characters of a string that is put together; `b = a + a; c = b + b; ...` doubles it in each line."""
_LARGEST = 1 << 1024
"""In the place of larger integers: Python refuses to write one of more than 4,300 digits, which hexadecimal ones have."""

_IN_BLOCKS = ast.stmt | ast.ExceptHandler | ast.match_case


def parse_deep(code: str) -> ast.Module:
    """The syntax tree of whatever Python itself can compile. Raises SyntaxError for the rest, and this process's recursion
    limit, so that rules can follow the tree to its leaves."""
    sys.setrecursionlimit(max(sys.getrecursionlimit(), _RECURSION_LIMIT))
    return parse_python(code)


def decoded(code: str) -> str:
    """The text that Python reads in the file that a candidate's text is written to: the file may declare another encoding.
    Raises SyntaxError where it reads none."""
    try:
        return decode_source(code.encode())
    except (ValueError, LookupError) as error:
        raise SyntaxError(str(error)) from error


class PythonNames:
    """The syntax tree of a text with what its names stand for. Raises SyntaxError for what is not Python."""

    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")  # `splitlines` also splits at form feeds, where Python begins no line
        self.tree = parse_deep(text)
        self.nodes = list(ast.walk(self.tree))
        """Every node, dead code included."""
        self._parents = {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}
        self._definitions: dict[str, list[Definition]] = {}
        self._values: dict[str, list[ast.expr]] = {}
        self._unknown: set[str] = set()  # names that also hold what an assignment does not say as a whole
        for node in self.nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, int):
                node.value = min(node.value, _LARGEST)
            if isinstance(node, Definition):
                self._definitions.setdefault(node.name, []).append(node)
            for found in bindings_of(node):
                if found.value is not None:
                    self._values.setdefault(found.name, []).append(found.value)
                if not (found.whole and found.value is not None) and not isinstance(node, ast.Delete):
                    self._unknown.add(found.name)
        self.aliases = import_aliases(self.tree)
        """Imported name -> what it stands for."""
        self._texts: dict[str, str | None] = {}
        self.known: dict[Callable[..., Any], dict[Any, Any]] = {}
        """What functions have found of this file (`dice.kernels.checks.once`)."""

    def line(self, node: ast.AST) -> str:
        """`line N: text` of a node, for a finding's evidence."""
        number = getattr(node, "lineno", 0)
        text = self._stripped[number - 1] if 0 < number <= len(self.lines) else ""
        return f"line {number}: {text[:200]}"

    @cached_property
    def _stripped(self) -> list[str]:
        return [line.strip() for line in self.lines]

    def parent(self, node: ast.AST) -> ast.AST | None:
        """The node that directly contains `node`."""
        return self._parents.get(node)

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """From the direct parent up to the module."""
        above = self._parents.get(node)
        while above is not None:
            yield above
            above = self._parents.get(above)

    def function_around(self, node: ast.AST) -> Function | ast.Lambda | None:
        """The innermost function that contains `node`."""
        return self._functions_around.get(node)

    @cached_property
    def _functions_around(self) -> dict[ast.AST, Function | ast.Lambda | None]:
        found: dict[ast.AST, Function | ast.Lambda | None] = {}
        for node in self.nodes:  # from the outside in
            above = self._parents.get(node)
            found[node] = above if above is None or isinstance(above, Function | ast.Lambda) else found.get(above)
        return found

    def statement_around(self, node: ast.AST) -> ast.stmt | None:
        """The innermost statement that contains `node`."""
        return self._statements_around.get(node)

    @cached_property
    def _statements_around(self) -> dict[ast.AST, ast.stmt | None]:
        found: dict[ast.AST, ast.stmt | None] = {}
        for node in self.nodes:  # from the outside in
            above = self._parents.get(node)
            found[node] = above if above is None or isinstance(above, ast.stmt) else found.get(above)
        return found

    def values(self, identifier: str) -> list[ast.expr]:
        """Every expression that is assigned to a name or attribute called `identifier`, anywhere."""
        return self._values.get(identifier, [])

    def definitions(self, identifier: str) -> list[Definition]:
        """Functions and classes called `identifier`, methods and nested ones included."""
        return self._definitions.get(identifier, [])

    def method(self, owner: ast.ClassDef | None, name: str) -> Function | None:
        """Method `name` of a class or of its bases in this file."""
        seen: set[str] = set()
        looked_at: set[ast.ClassDef] = set()
        queue = deque([owner] if owner else [])
        while queue:
            current = queue.popleft()
            if current in looked_at:
                continue
            looked_at.add(current)
            seen.add(current.name)
            if found := functions_in(current.body).get(name):
                return found
            for base in current.bases:
                identifier = identifier_of(base)
                if identifier and identifier not in seen:
                    queue += [node for node in self.definitions(identifier) if isinstance(node, ast.ClassDef)]
        return None

    def text(self, node: ast.AST | None) -> str | None:
        """A string that can be read off: constants, their sums, joins and formats; None otherwise."""
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return _joined("", [self.text(node.left), self.text(node.right)])
        if isinstance(node, ast.JoinedStr):
            return _joined("", [self._part(part) for part in node.values])
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "join"
            and len(node.args) == 1
            and isinstance(node.args[0], ast.List | ast.Tuple)
        ):
            return _joined(self.text(node.func.value), [self.text(item) for item in node.args[0].elts])
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            whole = self.text(node.value)
            return whole[::-1] if whole is not None and ast.unparse(node.slice) == "::-1" else None
        return self._text_of_name(node.id) if isinstance(node, ast.Name) else None

    def _text_of_name(self, name: str) -> str | None:
        """What the only assignment to a name gives; None for a name that is made of itself, as in `x = x + "a"`."""
        if name not in self._texts:
            self._texts[name] = None
            found = self._only_value(name)
            if not isinstance(found, ast.Name):
                self._texts[name] = self.text(found)
        return self._texts[name]

    def _only_value(self, name: str) -> ast.expr | None:
        """The expression that gives a name its value; None where a name has several, or another one than an expression."""
        found = self.values(name)
        return found[0] if len(found) == 1 and name not in self._unknown and name not in self.parameters else None

    def _part(self, part: ast.expr) -> str | None:
        """Text of one part of an f-string; integers count as their digits. None with a format, which may cut or fill."""
        if isinstance(part, ast.FormattedValue) and (part.format_spec is not None or part.conversion != -1):
            return None
        value = part.value if isinstance(part, ast.FormattedValue) else part
        found = self._only_value(value.id) if isinstance(value, ast.Name) else value
        number = found.value if isinstance(found, ast.Constant) else None
        return str(number) if isinstance(number, int) else self.text(value)

    def dotted(self, node: ast.AST | None, depth: int = 0) -> str | None:
        """What an expression refers to, as `torch.cuda.Event.elapsed_time`; None when it is not known."""
        if depth > 8:
            return None
        if isinstance(node, ast.Attribute):
            owner = self.dotted(node.value, depth + 1)
            if owner is None:
                return None
            return owner.removesuffix(".__dict__") + "." + node.attr
        if isinstance(node, ast.Name):
            if node.id in self.aliases:
                return self.aliases[node.id]
            found = self._values.get(node.id, [])
            if len(found) == 1 and isinstance(found[0], ast.Name | ast.Attribute | ast.Call | ast.Subscript):
                return self.dotted(found[0], depth + 1)
            return None if found or node.id in self._definitions else node.id
        if isinstance(node, ast.Call):
            return self._dotted_call(node, depth)
        if isinstance(node, ast.Subscript):
            owner, key = self.dotted(node.value, depth + 1), self.text(node.slice)
            if key is None or owner is None:
                return None
            if owner == "sys.modules":
                return key
            if owner.endswith(".__dict__"):
                return f"{owner.removesuffix('.__dict__')}.{key}"
            return key if owner == "globals()" else None
        return None

    def _dotted_call(self, node: ast.Call, depth: int) -> str | None:
        function = self.dotted(node.func, depth + 1)
        if function == "getattr" and len(node.args) >= 2:
            owner, key = self.dotted(node.args[0], depth + 1), self.text(node.args[1])
            return f"{owner}.{key}" if owner and key else None
        if function in ("__import__", "importlib.import_module") and node.args:
            return self.text(node.args[0])
        if function == "vars" and len(node.args) == 1:
            owner = self.dotted(node.args[0], depth + 1)
            return f"{owner}.__dict__" if owner else None
        return "globals()" if function == "globals" else None

    def mentions(self, identifier: str) -> list[ast.AST]:
        """Every node that mentions `identifier`, as `identifier_of` reads it."""
        return self._mentions.get(identifier, [])

    @property
    def mentioned(self) -> Iterable[str]:
        """Every identifier that some node mentions."""
        return self._mentions.keys()

    @cached_property
    def _mentions(self) -> dict[str, list[ast.AST]]:
        found: dict[str, list[ast.AST]] = {}
        for node in self.nodes:
            if name := identifier_of(node):
                found.setdefault(name, []).append(node)
        return found

    @cached_property
    def parameters(self) -> set[str]:
        """Names of the parameters of all functions."""
        return {node.arg for node in self.nodes if isinstance(node, ast.arg)}

    @cached_property
    def imported(self) -> set[str]:
        """Dotted names of all imports; `module.*` for all that a module has."""
        modules = (node.module for node in self.nodes if isinstance(node, ast.ImportFrom) and node.names[0].name == "*")
        return {*self.aliases.values(), *(f"{module}.*" for module in modules)}

    def is_imported(self, dotted: str) -> bool:
        """Whether a dotted name begins with something that this file imports."""
        return dotted.partition(".")[0] in self.imported_roots

    @cached_property
    def imported_roots(self) -> set[str]:
        """Modules that the file imports, without what is in them."""
        return {name.partition(".")[0] for name in self.imported}

    def calls(self, nodes: Iterable[ast.AST]) -> Iterator[tuple[ast.Call, str]]:
        """Calls among `nodes` whose callee is known, with its dotted name."""
        for node in nodes:
            if isinstance(node, ast.Call):
                name = self.dotted(node.func)
                if name:
                    yield node, name

    def strings(self) -> Iterator[tuple[ast.expr, str]]:
        """Strings that are not docstrings; what an f-string cannot tell is written as the name `unknown`."""
        inside = {part for node in self.nodes if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
        for node in self.nodes:
            if isinstance(node, ast.JoinedStr):
                yield node, "".join(self._part(part) or " unknown " for part in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in inside:
                is_docstring = isinstance(self._parents.get(node), ast.Expr)
                if not is_docstring:
                    yield node, node.value

    @cached_property
    def written(self) -> set[str]:
        """The texts of `strings`."""
        return {text for _, text in self.strings()}

    def after(self, node: ast.stmt) -> Iterator[ast.AST]:
        """Statements that follow `node` in its own block and in the blocks around it, up to its function."""
        following = self.successors.get(node)
        while following is not None:
            yield following
            following = self.successors.get(following)

    @cached_property
    def successors(self) -> dict[ast.AST, ast.AST]:
        """Statement, handler or case -> the first that follows it, as `after` says."""
        found: dict[ast.AST, ast.AST] = {}
        for node in self.nodes:  # from the outside in
            behind = None if isinstance(node, Function) else found.get(node)
            for _, block in ast.iter_fields(node):
                if isinstance(block, list) and block and isinstance(block[0], _IN_BLOCKS):
                    found.update(pairwise(block))
                    if behind is not None:
                        found[block[-1]] = behind
        return found

    def before(self, nodes: Iterable[ast.AST]) -> set[ast.AST]:
        """Statements, handlers and cases that any of `nodes` follows."""
        found: set[ast.AST] = set()
        waiting = list(nodes)
        while waiting:
            fresh = [node for node in self._predecessors.get(waiting.pop(), ()) if node not in found]
            found.update(fresh)
            waiting += fresh
        return found

    @cached_property
    def _predecessors(self) -> dict[ast.AST, list[ast.AST]]:
        found: dict[ast.AST, list[ast.AST]] = {}
        for node, following in self.successors.items():
            found.setdefault(following, []).append(node)
        return found

    def around(self, nodes: Iterable[ast.AST]) -> set[ast.AST]:
        """`nodes` and all that contains any of them."""
        found: set[ast.AST] = set()
        for node in nodes:
            inner: ast.AST | None = node
            while inner is not None and inner not in found:
                found.add(inner)
                inner = self._parents.get(inner)
        return found

    def mentioning(self, names: Iterable[str]) -> set[ast.AST]:
        """Every node that mentions one of `names`, itself or in what it contains."""
        return self.around(node for name in names for node in self.mentions(name))

    @cached_property
    def computes_names(self) -> bool:
        """Whether some name is made at run time, so that reachability by identifier proves nothing."""
        for node in self.nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                if node.func.id in ("exec", "eval", "globals", "locals", "vars", "__import__"):
                    return True
                if node.func.id in ("getattr", "setattr") and len(node.args) > 1 and self.text(node.args[1]) is None:
                    return True
        return False


def _joined(glue: str | None, parts: list[str | None]) -> str | None:
    if glue is None or None in parts:
        return None
    texts = [str(part) for part in parts]
    length = sum(map(len, texts)) + len(glue) * len(texts)
    return glue.join(texts) if length <= _LONGEST_TEXT else None


def identifiers(nodes: Iterable[ast.AST]) -> set[str]:
    """Names and attribute names that occur among `nodes`."""
    return {name for name in map(identifier_of, nodes) if name}


def identifier_of(node: ast.AST) -> str | None:
    """The name, attribute name, or constant name given to `getattr` or `setattr`, that a node mentions."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("getattr", "setattr"):
        key = node.args[1] if len(node.args) > 1 else None
        return key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else None
    return None
