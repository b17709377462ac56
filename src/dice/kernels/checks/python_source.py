"""The candidate's Python as a syntax tree: what names mean, and which code is alive.

Names are resolved through imports, simple aliases, `getattr` with a constant, `sys.modules[...]` and constant string
arithmetic, so that `t = torch; setattr(t.cuda, "sync" + "hronize", f)` reads like the plain assignment. Reachability
follows identifiers, whatever object they belong to: it may reach too much, never too little, as long as the code
does not compute names at run time (`computes_names`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Set
from functools import cached_property
from importlib.util import decode_source
from typing import Literal

from dice.kernels.source.lexer import words
from dice.python_scope import Definition, Function, bindings_of, functions_in, import_aliases, own_nodes

ENTRY_CLASS = "ModelNew"
_CALLED = words(
    """
    forward train eval to cuda cpu half float double type apply _apply parameters named_parameters buffers modules
    named_buffers children state_dict load_state_dict _load_from_state_dict requires_grad_ zero_grad extra_repr
    """
)
"""Methods of a module that PyTorch or a harness may call, besides the ones with double underscores."""
_CALLED_FIRST = ("forward", "__call__", "_call_impl", "_slow_forward")
"""What a call of a module ends in; a candidate may put anything in the place of each."""
_CALLED_BY_PYTHON = ("__call__", "__getattr__", "__getattribute__")
"""Methods of a module that run when it is called, besides forward."""


class PythonSource:
    """A parsed candidate. Raises SyntaxError, ValueError or RecursionError when the text cannot be parsed as Python."""

    def __init__(self, code: str, entry: str = ENTRY_CLASS, ran: Set[int] = frozenset()) -> None:
        """ran: lines that a run saw in one call of the model, however it reached them."""
        text = decode_source(code.encode())  # what Python reads in the file, which may declare another encoding
        self.lines = text.splitlines()
        self.tree = ast.parse(text)
        self.nodes = list(ast.walk(self.tree))
        """Every node, dead code included."""
        self._parents = {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}
        self._definitions: dict[str, list[Definition]] = {}
        for node in self.nodes:
            if isinstance(node, Definition):
                self._definitions.setdefault(node.name, []).append(node)
        self.aliases = import_aliases(self.tree)
        """Imported name -> what it stands for."""
        self._values = self._collect_values()
        self.entry = self._find_entry(entry)
        self.forward = self.method(self.entry, "forward") or self.method(self.entry, "__call__")
        forward: list[ast.AST] = [self.forward] if self.forward else []
        for value in self._called_values():
            forward += [value, *(item for name in identifiers(ast.walk(value)) for item in self.definitions(name))]
        methods = (self.method(self.entry, name) for name in _CALLED_BY_PYTHON)
        forward += [method for method in methods if method is not None and method is not self.forward]
        forward += [node for node in self.nodes if isinstance(node, Function | ast.Lambda) and _has_run(node, ran)]
        self.live = self._reach(self._import_roots(), "names")
        """Everything that can run: code that nothing mentions, and the `__main__` block, are left out."""
        self.in_forward = self._reach(forward, "objects")
        """What runs inside forward."""
        self.behind_forward = self._reach(forward, "values")
        """That, and the expressions that made the objects it uses."""

    def line(self, node: ast.AST) -> str:
        """`line N: text` of a node, for a finding's evidence."""
        number = getattr(node, "lineno", 0)
        text = self.lines[number - 1].strip() if 0 < number <= len(self.lines) else ""
        return f"line {number}: {text[:200]}"

    def parent(self, node: ast.AST) -> ast.AST | None:
        """The node that directly contains `node`."""
        return self._parents.get(node)

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """From the direct parent up to the module."""
        above = self._parents.get(node)
        while above is not None:
            yield above
            above = self._parents.get(above)

    def values(self, identifier: str) -> list[ast.expr]:
        """Every expression that is assigned to a name or attribute called `identifier`, anywhere."""
        return self._values.get(identifier, [])

    def definitions(self, identifier: str) -> list[Definition]:
        """Functions and classes called `identifier`, methods and nested ones included."""
        return self._definitions.get(identifier, [])

    def method(self, owner: ast.ClassDef | None, name: str) -> Function | None:
        """Method `name` of a class or of its bases in this file."""
        seen: set[str] = set()
        queue = [owner] if owner else []
        while queue:
            current = queue.pop(0)
            seen.add(current.name)
            if found := functions_in(current.body).get(name):
                return found
            for base in current.bases:
                identifier = _identifier(base)
                if identifier and identifier not in seen:
                    queue += [node for node in self.definitions(identifier) if isinstance(node, ast.ClassDef)]
        return None

    def text(self, node: ast.AST | None) -> str | None:
        """A string that can be read off: constants, their sums, joins and formats; None otherwise."""
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            left, right = self.text(node.left), self.text(node.right)
            return left + right if left is not None and right is not None else None
        if isinstance(node, ast.JoinedStr):
            parts = [self._part(part) for part in node.values]
            return "".join(part for part in parts if part is not None) if None not in parts else None
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "join"
            and len(node.args) == 1
            and isinstance(node.args[0], ast.List | ast.Tuple)
        ):
            glue, parts = self.text(node.func.value), [self.text(item) for item in node.args[0].elts]
            return glue.join(map(str, parts)) if glue is not None and None not in parts else None
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            whole, step = self.text(node.value), node.slice.step
            if whole is not None and ast.unparse(node.slice) == "::-1" and step is not None:
                return whole[::-1]
            return None
        if isinstance(node, ast.Name):
            found = self.values(node.id)
            return self.text(found[0]) if len(found) == 1 and not isinstance(found[0], ast.Name) else None
        return None

    def _part(self, part: ast.expr) -> str | None:
        """Text of one part of an f-string; integers count as their digits."""
        value = part.value if isinstance(part, ast.FormattedValue) else part
        found = self.values(value.id) if isinstance(value, ast.Name) else [value]
        number = found[0].value if len(found) == 1 and isinstance(found[0], ast.Constant) else None
        return str(number) if isinstance(number, int) else self.text(value)

    def dotted(self, node: ast.AST | None, depth: int = 0) -> str | None:
        """What an expression refers to, as `torch.cuda.Event.elapsed_time`; None when it cannot be said."""
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

    @cached_property
    def imported(self) -> set[str]:
        """Dotted names of all imports; `module.*` for all that a module has."""
        modules = (node.module for node in self.nodes if isinstance(node, ast.ImportFrom) and node.names[0].name == "*")
        return {*self.aliases.values(), *(f"{module}.*" for module in modules)}

    def is_imported(self, dotted: str) -> bool:
        """Whether a dotted name begins with something that this file imports."""
        root = dotted.partition(".")[0]
        return any(name.partition(".")[0] == root for name in self.imported)

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
    def arguments(self) -> set[str]:
        """Argument names of every function on forward's path, self left out."""
        functions = [node for node in self.in_forward if isinstance(node, ast.FunctionDef | ast.Lambda)]
        lists = [function.args for function in functions]
        found = [item for args in lists for item in [*args.posonlyargs, *args.args, args.vararg] if item is not None]
        return {item.arg for item in found} - {"self", "cls"}

    def reach_from(self, nodes: list[ast.AST]) -> list[ast.AST]:
        """What can run when `nodes` do; functions are followed by name."""
        return self._reach(nodes, "names")

    def after(self, node: ast.stmt) -> list[ast.AST]:
        """Statements that follow `node` in its own block and in the blocks around it, up to its function."""
        found: list[ast.AST] = []
        inner: ast.AST = node
        while not isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef) and inner in self._parents:
            outer = self._parents[inner]
            for _, block in ast.iter_fields(outer):
                if isinstance(block, list) and inner in block:
                    found += block[block.index(inner) + 1 :]
            inner = outer
        return found

    @property
    def computes_names(self) -> bool:
        """Whether some name is made at run time, so that reachability by identifier proves nothing."""
        for node in self.nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                if node.func.id in ("exec", "eval", "globals", "locals", "vars", "__import__"):
                    return True
                if node.func.id in ("getattr", "setattr") and len(node.args) > 1 and self.text(node.args[1]) is None:
                    return True
        return False

    def _collect_values(self) -> dict[str, list[ast.expr]]:
        values: dict[str, list[ast.expr]] = {}
        for found in (found for node in self.nodes for found in bindings_of(node)):
            if found.value is not None:
                values.setdefault(found.name, []).append(found.value)
        return values

    def _called_values(self) -> Iterator[ast.expr]:
        """What is put in the place of forward, or called with it: `self.forward = fast`, a namespace given to `type`,
        `setattr(ModelNew, "forward", fast)`, hooks."""
        for name in _CALLED_FIRST:
            yield from self.values(name)
        for node in self.nodes:
            if isinstance(node, ast.Assign):  # self._forward_hooks[0] = note
                hooked = any("_hooks" in ast.unparse(target) for target in node.targets)
                yield from [node.value] if hooked else ()
            elif isinstance(node, ast.Dict):
                named = zip(node.keys, node.values, strict=True)
                yield from (value for key, value in named if self.text(key) in _CALLED_FIRST)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
                name = _identifier(node.func) or ""
                called = name.startswith("register_forward") or name in ("partialmethod", "MethodType")
                called |= "_forward_hooks" in identifiers(ast.walk(node.func))
                called |= len(node.args) == 3 and self.text(node.args[1]) in _CALLED_FIRST  # setattr(ModelNew, ...)
                yield from node.args if called else ()

    def _find_entry(self, name: str) -> ast.ClassDef | None:
        for _ in range(4):
            classes = [node for node in self.definitions(name) if isinstance(node, ast.ClassDef)]
            if classes:
                return classes[-1]
            named = [found for value in self.values(name) if (found := self._class_behind(value))]
            if not named:
                return None
            name = named[-1]
        return None

    def _class_behind(self, value: ast.expr) -> str | None:
        """Name of the class that an expression gives: itself, of a module that the candidate wrote, or what the function
        that it calls makes."""
        if isinstance(value, ast.Name | ast.Attribute):
            name = _identifier(value)
            return self.aliases.get(name or "", name or "").rpartition(".")[2]
        if not isinstance(value, ast.Call):
            return None
        maker = _identifier(value.func) or ""
        inside = [inner for item in self.definitions(maker) if isinstance(item, Function) for inner in ast.walk(item)]
        made = [inner.name for inner in inside if isinstance(inner, ast.ClassDef)]
        return made[-1] if made else None

    def _import_roots(self) -> list[ast.AST]:
        """What runs when the file is imported and ModelNew is used: module level, class level, ModelNew's methods."""
        roots: list[ast.AST] = [
            node for node in self.tree.body if not isinstance(node, Definition) and not _is_main(node)
        ]
        for node in self.tree.body:
            if isinstance(node, Definition):
                roots += node.decorator_list
            if isinstance(node, ast.ClassDef):
                roots += [item for item in node.body if not isinstance(item, Definition)]
        if self.entry is not None:
            methods = [item for item in self.entry.body if isinstance(item, Definition)]
            roots += [*self.entry.bases, *(item for item in methods if _is_dunder(item.name) or item.name in _CALLED)]
        return roots

    def _reach(self, roots: list[ast.AST], follow: Literal["names", "objects", "values"]) -> list[ast.AST]:
        """All nodes that run when the roots do. A definition is entered once its identifier is mentioned.

        follow: `objects` also enters the methods of objects, and the functions, that were ever assigned to a
        mentioned identifier; `values` enters whole assigned expressions, whenever they ran.
        """
        nodes: dict[ast.AST, None] = {}
        mentioned: set[str] = set()
        queue: list[ast.AST] = list(roots)
        entered: set[ast.AST] = set(roots)

        def enter(node: ast.AST, *, methods_only: bool = False) -> None:
            if node is self.entry:
                return  # its methods are entered by name: naming the class does not run __init__
            if isinstance(node, ast.ClassDef):
                for item in [*node.body, *node.bases]:
                    if not (methods_only and (not isinstance(item, Definition) or item.name == "__init__")):
                        enter(item)
            elif node not in entered:
                entered.add(node)
                queue.append(node)

        def enter_objects(value: ast.expr) -> None:
            callees = {node.func for node in ast.walk(value) if isinstance(node, ast.Call)}
            for node in ast.walk(value):
                for definition in self.definitions(_identifier(node) or ""):
                    if isinstance(definition, ast.ClassDef):
                        enter(definition, methods_only=True)
                    elif node not in callees:
                        enter(definition)

        while queue:
            root = queue.pop()
            for node in _own_nodes(root):
                nodes.setdefault(node)
                identifier = _identifier(node)
                if identifier is None or identifier in mentioned or _is_dunder(identifier):
                    continue
                mentioned.add(identifier)
                for definition in self.definitions(identifier):
                    enter(definition)
                for value in self.values(identifier):
                    if follow == "values":
                        enter(value)
                    elif follow == "objects":
                        enter_objects(value)
        return list(nodes)


def _has_run(function: Function | ast.Lambda, ran: Set[int]) -> bool:
    """Whether one of the function's own lines is among those that ran, not only the line that defines it."""
    body = [function.body] if isinstance(function, ast.Lambda) else function.body
    return any(getattr(node, "lineno", 0) in ran for node in own_nodes(body))


def identifiers(nodes: Iterable[ast.AST]) -> set[str]:
    """Names and attribute names that occur among `nodes`."""
    return {name for name in map(_identifier, nodes) if name}


def _identifier(node: ast.AST) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("getattr", "setattr"):
        key = node.args[1] if len(node.args) > 1 else None
        return key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else None
    return None


def _is_dunder(identifier: str) -> bool:
    return identifier.startswith("__") and identifier.endswith("__")


def _own_nodes(root: ast.AST) -> Iterator[ast.AST]:
    """`root` and what it contains, nested definitions named but not entered, the main block left out."""
    stack: list[ast.AST] = [root]
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, Definition) and node is not root:
            stack += [*node.decorator_list, *(node.bases if isinstance(node, ast.ClassDef) else node.args.defaults)]
        elif not _is_main(node):
            stack += list(ast.iter_child_nodes(node))


def _is_main(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.If)
        and isinstance(node.test, ast.Compare)
        and "__name__" in ast.unparse(node.test)
        and "__main__" in ast.unparse(node.test)
    )
