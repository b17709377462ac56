"""The candidate's Python as a syntax tree: which code is alive, and which runs in forward.

Reachability follows names, whatever object they belong to: it may reach too much, never too little, as long as the
code does not compute names at run time (`computes_names`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, KeysView, Set
from functools import cached_property
from typing import Literal

from dice.kernels.checks.python_names import PythonNames, identifier_of, identifiers
from dice.kernels.source.lexer import words
from dice.python_scope import Definition, Function, functions_in, own_nodes, parameters, parts_outside

Try = ast.Try | ast.TryStar
ENTRY_CLASS = "ModelNew"
_CALLED = words(
    """
    forward train eval to cuda cpu half float double type apply _apply parameters named_parameters buffers modules
    named_buffers children state_dict load_state_dict _load_from_state_dict requires_grad_ zero_grad extra_repr
    """
)
"""Methods of a module that PyTorch or a harness may call, besides the ones with double underscores."""
CALLED_FIRST = ("forward", "__call__", "_call_impl", "_slow_forward")
"""What a call of a module ends in; a candidate may put anything in the place of each."""
_REFERENCE = ast.Name | ast.Attribute
_LAZY = words("map filter iter starmap takewhile dropwhile accumulate filterfalse")
"""What calls a function whenever its next value is asked for, and ends where that raises StopIteration."""
_SUPPRESSING = ("contextlib.suppress", "contextlib.ExitStack")
_CALLED_BY_PYTHON = ("__call__", "__getattr__", "__getattribute__")
"""Methods of a module that run when it is called, besides forward."""


class PythonSource(PythonNames):
    """A parsed candidate. Raises SyntaxError or ValueError when the text is not Python."""

    def __init__(self, code: str, entry: str = ENTRY_CLASS, ran: Set[int] = frozenset()) -> None:
        """ran: lines that a run saw in one call of the model, however it reached them."""
        super().__init__(code)
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

    @cached_property
    def arguments(self) -> set[str]:
        """Argument names of every function on forward's path, self left out."""
        functions = [node for node in self.in_forward if isinstance(node, Function | ast.Lambda)]
        return {item.arg for function in functions for item in parameters(function)} - {"self", "cls"}

    @cached_property
    def swallows_errors(self) -> bool:
        """Whether an error may end on forward's path: in a handler, at the end of a `with` statement, or in what takes it
        for an answer: `getattr(self, "fast", kept)` of a property, `[*map(self.step, inputs)]`."""
        handled = any(
            (isinstance(node, Try) and not _raises_again(node)) or self._takes_errors(node) for node in self.in_forward
        )
        suppressed = any(isinstance(node, _REFERENCE) and self.dotted(node) in _SUPPRESSING for node in self.live)
        return handled or suppressed or not all(map(_returns_nothing, self.definitions("__exit__")))

    def is_called(self, node: ast.AST) -> bool:
        """Whether a node names the function of a call."""
        above = self.parent(node)
        return isinstance(above, ast.Call) and above.func is node

    def _takes_errors(self, node: ast.AST) -> bool:
        """Whether it runs a function of the file's own, and takes its AttributeError or StopIteration for an answer."""
        if not isinstance(node, ast.Call):
            return False
        match self.dotted(node.func), node.args:
            case ("hasattr", [_, name]) | ("getattr", [_, name, _]):
                text = self.text(name)
                return text is None or bool(self.definitions(text))
            case (str(function), [first, *_]) if function.rpartition(".")[2] in _LAZY:
                return bool(self.definitions(identifier_of(first) or "")) or isinstance(first, ast.Lambda)
        return False

    def reach_from(self, nodes: list[ast.AST]) -> KeysView[ast.AST]:
        """What can run when `nodes` do, each node once; functions are followed by name."""
        return self._reach(nodes, "names")

    def leading_to(self, goals: Iterable[ast.AST]) -> set[ast.AST]:
        """Every node such that one of `goals` can run when it does: those from which `reach_from` reaches one."""
        found: set[ast.AST] = set()
        named: set[str] = set()
        waiting: list[tuple[ast.AST, bool]] = [(goal, True) for goal in goals]  # whether it runs where it stands

        def enter(node: ast.AST) -> None:
            """What runs `node` besides its place: mentions of a function, and of the classes that it is a part of."""
            inner: ast.AST | None = None if isinstance(node, ast.ClassDef) else node
            while inner is not None and inner is not self.entry:
                if isinstance(inner, Definition) and inner.name not in named and not _is_dunder(inner.name):
                    named.add(inner.name)
                    waiting.extend((mention, True) for mention in self.mentions(inner.name))
                above = self._parents.get(inner)
                part = isinstance(above, ast.ClassDef) and (isinstance(inner, ast.stmt) or inner in above.bases)
                inner = above if part else None

        in_place: set[ast.AST] = set()
        while waiting:
            node, placed = waiting.pop()
            if node not in found:
                found.add(node)
                enter(node)
            above = self._parents.get(node)
            if not placed or node in in_place or above is None:
                continue
            in_place.add(node)
            if node in self._outside:
                waiting.append((self._outside[node], True))
            if above not in self._main_blocks:
                waiting.append((above, not isinstance(above, Definition)))
        return found

    @cached_property
    def _outside(self) -> dict[ast.AST, ast.AST]:
        """Decorator, default, annotation or base -> the definition around which it runs."""
        return {part: node for node in self.nodes if isinstance(node, Definition) for part in parts_outside(node)}

    def _called_values(self) -> Iterator[ast.expr]:
        """What is put in the place of forward, or called with it: `self.forward = fast`, a namespace given to `type`,
        `setattr(ModelNew, "forward", fast)`, hooks."""
        for name in CALLED_FIRST:
            yield from self.values(name)
        hooks = (self.parent(node) for node in self.mentions("_forward_hooks"))
        hooked = self.around(above for above in hooks if above is not None)
        for node in self.nodes:
            if isinstance(node, ast.Assign):  # self._forward_hooks[0] = note
                names = identifiers(part for target in node.targets for part in ast.walk(target))
                yield from [node.value] if any("_hooks" in name for name in names) else ()
            elif isinstance(node, ast.Dict):
                named = zip(node.keys, node.values, strict=True)
                yield from (value for key, value in named if self.text(key) in CALLED_FIRST)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
                name = identifier_of(node.func) or ""
                called = name.startswith("register_forward") or name in ("partialmethod", "MethodType")
                called |= node in hooked
                called |= len(node.args) == 3 and self.text(node.args[1]) in CALLED_FIRST  # setattr(ModelNew, ...)
                yield from node.args if called else ()

    def _find_entry(self, name: str) -> ast.ClassDef | None:
        for _ in range(4):
            classes = [node for node in self.definitions(name) if isinstance(node, ast.ClassDef)]
            if classes:
                return classes[-1]
            made: dict[str, str | None] = {}
            behind = (self._class_behind(value, made) for value in reversed(self.values(name)))
            found = next(filter(None, behind), None)
            if found is None:
                return None
            name = found
        return None

    def _class_behind(self, value: ast.expr, made: dict[str, str | None]) -> str | None:
        """Name of the class that an expression gives: itself, of a module that the candidate wrote, or what the function
        that it calls makes. made: what is known of functions."""
        if isinstance(value, ast.Name | ast.Attribute):
            name = identifier_of(value)
            return self.aliases.get(name or "", name or "").rpartition(".")[2]
        if not isinstance(value, ast.Call):
            return None
        maker = identifier_of(value.func) or ""
        if maker not in made:
            makers = (item for item in self.definitions(maker) if isinstance(item, Function))
            inside = (inner for item in makers for inner in ast.walk(item))
            made[maker] = [None, *(inner.name for inner in inside if isinstance(inner, ast.ClassDef))][-1]
        return made[maker]

    def never_runs(self, statement: ast.stmt) -> bool:
        """Whether a statement is in the `__main__` block, or in a function that nothing mentions."""
        return any(
            _is_main(above) or (isinstance(above, Function) and above not in self.live)
            for above in self.ancestors(statement)
        )

    def _import_roots(self) -> list[ast.AST]:
        """What runs when the file is imported and ModelNew is used: module level, class level, ModelNew's methods."""
        roots: list[ast.AST] = [
            node for node in self.tree.body if not isinstance(node, Definition) and not _is_main(node)
        ]
        for node in self.tree.body:
            roots += parts_outside(node) if isinstance(node, Definition) else []
            if isinstance(node, ast.ClassDef):
                roots += [item for item in node.body if not isinstance(item, Definition)]
        if self.entry is not None:
            methods = [item for item in self.entry.body if isinstance(item, Definition)]
            roots += [item for item in methods if _is_dunder(item.name) or item.name in _CALLED]
        return roots

    def _reach(self, roots: list[ast.AST], follow: Literal["names", "objects", "values"]) -> KeysView[ast.AST]:
        """All nodes that run when the roots do. A definition is entered once its identifier is mentioned.

        follow: `objects` also enters the methods of objects, and the functions, that were ever assigned to a
        mentioned identifier; `values` enters whole assigned expressions, whenever they ran.
        """
        nodes: dict[ast.AST, None] = {}
        mentioned: set[str] = set()
        queue: list[ast.AST] = list(roots)
        entered: set[ast.AST] = set(roots)
        opened: set[ast.AST] = set()
        looked_up: set[tuple[str, bool]] = set()

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
            if value in opened:
                return
            opened.add(value)
            callees = {node.func for node in ast.walk(value) if isinstance(node, ast.Call)}
            for node in ast.walk(value):
                if isinstance(node, ast.Lambda):
                    enter(node)
                if (name := identifier_of(node)) is not None and (name, node in callees) not in looked_up:
                    looked_up.add((name, node in callees))
                    enter_named(name, called=node in callees)

        def enter_named(name: str, *, called: bool) -> None:
            for definition in self.definitions(name):
                if isinstance(definition, ast.ClassDef):
                    enter(definition, methods_only=True)
                elif not called:
                    enter(definition)
                else:
                    for inner in _given_back(definition):
                        enter(inner)

        while queue:
            root = queue.pop()
            for node in self._own_nodes(root):
                nodes.setdefault(node)
                identifier = identifier_of(node)
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
        return nodes.keys()

    def _own_nodes(self, root: ast.AST) -> Iterator[ast.AST]:
        """`root` and what it contains, nested definitions named but not entered, the main block left out."""
        stack: list[ast.AST] = [root]
        while stack:
            node = stack.pop()
            yield node
            if isinstance(node, Definition) and node is not root:
                stack += parts_outside(node)
            elif node not in self._main_blocks:
                stack += ast.iter_child_nodes(node)

    @cached_property
    def _main_blocks(self) -> set[ast.AST]:
        return {node for node in self.nodes if _is_main(node)}


def _has_run(function: Function | ast.Lambda, ran: Set[int]) -> bool:
    """Whether one of the function's own lines is among those that ran, not only the line that defines it."""
    body = [function.body] if isinstance(function, ast.Lambda) else function.body
    return any(getattr(node, "lineno", 0) in ran for node in own_nodes(body))


def _given_back(maker: Function) -> Iterator[ast.AST]:
    """Functions that a function makes and returns."""
    inside = functions_in(node for node in own_nodes(maker.body) if isinstance(node, ast.stmt))
    for node in own_nodes(maker.body):
        for part in ast.walk(node.value) if isinstance(node, ast.Return) and node.value is not None else ():
            if isinstance(part, ast.Lambda):
                yield part
            elif isinstance(part, ast.Name) and part.id in inside:
                yield inside[part.id]


def _is_dunder(identifier: str) -> bool:
    return identifier.startswith("__") and identifier.endswith("__")


def _is_main(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.If)
        and isinstance(node.test, ast.Compare)
        and any(isinstance(part, ast.Name) and part.id == "__name__" for part in ast.walk(node.test))
        and any(isinstance(part, ast.Constant) and part.value == "__main__" for part in ast.walk(node.test))
    )


def _raises_again(attempt: ast.AST) -> bool:
    """Whether each handler of a `try` ends with another error, and nothing in it or behind it leaves by another way."""
    handlers: list[ast.ExceptHandler] = getattr(attempt, "handlers", [])
    parts = [*handlers, *getattr(attempt, "finalbody", [])]
    leaves = (node for part in parts for node in ast.walk(part))
    return all(isinstance(handler.body[-1], ast.Raise) for handler in handlers) and not any(
        isinstance(node, ast.Return | ast.Break | ast.Continue) for node in leaves
    )


def _returns_nothing(function: ast.AST) -> bool:
    """Whether a function gives back None or False alone."""
    returned = [node.value for node in ast.walk(function) if isinstance(node, ast.Return) and node.value is not None]
    return isinstance(function, ast.FunctionDef) and all(
        isinstance(value, ast.Constant) and not value.value for value in returned
    )
