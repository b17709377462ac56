"""Functions that forward calls aside: a check of the kernels at their first use, a line for a log. No output depends on them.

Nobody uses what such a function gives back, and it is told no more than devices and shapes of inputs. It changes nothing but
what it alone mentions, so that nothing else can follow that, and calls no more than what is known to leave nothing behind. An
extension may remember what it was given: it is called at the first use alone, which comes before any call could differ.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Set
from dataclasses import dataclass

from dice.kernels.checks.extensions import extension_names
from dice.kernels.checks.inputs import SAME, SHAPE_ONLY
from dice.kernels.checks.loggers import OF_LOGGERS, is_logger
from dice.kernels.checks.messages import (
    CLOCKS,
    PRINTS,
    has_special_methods,
    is_listened_to,
    may_work_aside,
    means_one_thing,
)
from dice.kernels.checks.named import says_all_names
from dice.kernels.checks.once import once
from dice.kernels.checks.python_names import identifier_of
from dice.kernels.checks.python_source import PythonSource
from dice.kernels.checks.told import is_called_by_others, is_told
from dice.kernels.checks.torch_calls import COMPUTE, names_computation
from dice.kernels.source.lexer import words
from dice.python_scope import Function, parameters

_RUNS_OTHER_CODE = words(
    "eval exec compile globals locals vars setattr delattr getattr __import__ open input memoryview type super object "
    "breakpoint help exit quit"
)
_LIBRARY = words("sys.stdout sys.stderr torch.cuda.synchronize torch.cuda.is_available torch.testing.assert_close") | {
    f"torch.{name}"
    for name in words("""
        rand randn randint randperm empty zeros ones full arange linspace tensor rand_like randn_like empty_like zeros_like
        ones_like full_like Generator device equal allclose isclose isfinite isnan all any finfo no_grad inference_mode
        float16 bfloat16 float32 float64 half float double int8 int32 int64 int long bool
        """)
}
"""Names of libraries that change no more than random numbers and memory, besides PyTorch's computations."""
_OF_VALUES = (
    SHAPE_ONLY | SAME | COMPUTE | words("item tolist all any equal allclose isfinite isnan manual_seed join index")
)
"""Attributes of tensors, devices and texts, and methods that change no more than those."""
_STARTS = words("set dict list itertools.count collections.Counter collections.deque collections.defaultdict")
"""What makes a container without anything in it, or a count."""
_ITEMS = words("int float list set")
_SETTINGS = words("os.getenv os.environ.get int float bool str")
"""Functions that give a number or a text."""
_HOLDS_MORE = (
    ast.Lambda
    | Function
    | ast.Yield
    | ast.YieldFrom
    | ast.Await
    | ast.ClassDef
    | ast.Delete
    | ast.Nonlocal
    | ast.Import
    | ast.ImportFrom
)


def is_aside(source: PythonSource, node: ast.AST) -> bool:
    """Whether a node stands in such a function."""
    around = source.function_around(node)
    return isinstance(around, ast.FunctionDef) and _is_aside(source, around)


@once
def _is_aside(source: PythonSource, function: ast.FunctionDef) -> bool:
    return (
        not is_listened_to(source)  # nor swallows errors: one may be a choice, too
        and says_all_names(source)
        and _gives_nothing(source, function)
        and _Inside.of(source, function).keeps_to_itself()
    )


def _gives_nothing(source: PythonSource, function: ast.FunctionDef) -> bool:
    """Whether forward calls it, nobody uses what it returns, and it is told no more than devices and shapes."""
    uses = [use for use in source.mentions(function.name) if use is not function]
    calls = [above for use in uses if isinstance(above := source.parent(use), ast.Call) and above.func is use]
    return (
        bool(calls)
        and len(calls) == len(uses)
        and len(source.definitions(function.name)) == 1
        and not function.decorator_list
        and not (function.args.defaults or function.args.kw_defaults)
        and is_called_by_others(source)
        and all(isinstance(source.parent(call), ast.Expr) for call in calls)
        and all(source.function_around(call) is source.forward for call in calls)
        and all(is_told(source, part) for call in calls for part in [*call.args, *(k.value for k in call.keywords)])
    )


@dataclass(frozen=True)
class _Inside:
    """What stands inside such a function."""

    source: PythonSource
    function: ast.FunctionDef
    nodes: Set[ast.AST]
    own: Set[str]
    """Its arguments and variables."""
    private: Set[str]
    """What outlives a call of it, as variables of the file or as attributes, and nobody else mentions."""

    @staticmethod
    def of(source: PythonSource, function: ast.FunctionDef) -> _Inside:
        nodes = {node for statement in function.body for node in ast.walk(statement)}
        shared = {name for node in nodes if isinstance(node, ast.Global) for name in node.names}
        stored = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
        own = {argument.arg for argument in parameters(function)} | stored - shared
        named = {name for name in map(identifier_of, nodes) if name is not None} - own
        return _Inside(source, function, nodes, own, {name for name in named if _is_private(source, name, nodes)})

    def keeps_to_itself(self) -> bool:
        """Whether it changes nothing but what it alone mentions, and calls nothing that may remember a call."""
        return (
            not any(isinstance(node, _HOLDS_MORE) for node in self.nodes)
            and not ("self" in self.own and has_special_methods(self.source))  # __setattr__
            and all(map(self._is_known, self.nodes))
            and (not self._works() or self._runs_once())
        )

    def _is_known(self, node: ast.AST) -> bool:
        match node:
            case ast.Global(names=names):
                return self.private >= {*names}
            case ast.Name():
                return node.id in self.own | self.private or self._is_named(node)
            case ast.Attribute():
                return self._is_part(node)
            case ast.Subscript(ctx=ast.Store()):
                return identifier_of(node.value) in self.own | self.private
        return True

    def _is_named(self, node: ast.Name) -> bool:
        """Whether a name that is not the function's own stands for what leaves nothing behind."""
        source, name = self.source, node.id
        if name in extension_names(source) or is_logger(source, name):
            return self._is_known_attribute(node)
        if name in source.aliases:
            return means_one_thing(source, name) and self._leaves_nothing(_whole(source, node))
        plain = name in vars(builtins) and name not in _RUNS_OTHER_CODE and not source.definitions(name)
        return plain if not source.values(name) else all(_is_setting(source, value) for value in source.values(name))

    def _is_known_attribute(self, node: ast.Name | ast.Attribute) -> bool:
        """Whether a name or attribute is an extension's or a logger's, and called for what forward does or for a message."""
        name, above = identifier_of(node) or "", self.source.parent(node)
        if is_logger(self.source, name):
            return isinstance(above, ast.Attribute) and above.attr in OF_LOGGERS and self.source.is_called(above)
        return name in extension_names(self.source) and self._is_forwards(node)

    def _leaves_nothing(self, whole: ast.expr) -> bool:
        """Whether a name of a library is of what gives a value, or writes a message."""
        name = self.source.dotted(whole) or ""
        if name == "torch.cuda.synchronize" and may_work_aside(self.source):
            return False
        return name in _LIBRARY | PRINTS | CLOCKS or name.startswith("math.") or names_computation(self.source, whole)

    def _is_part(self, node: ast.Attribute) -> bool:
        """Whether an attribute is the function's own state, or of a value that only the function has."""
        owner = node.value
        if isinstance(owner, ast.Name) and owner.id == "self":
            return node.attr in self.private or self._is_known_attribute(node)
        if not isinstance(node.ctx, ast.Load) or node.attr.startswith("_"):
            return False
        if identifier_of(owner) in self.private or is_logger(self.source, identifier_of(owner) or ""):
            return True
        if not self._is_of_values(owner):
            return True
        built = isinstance(owner, ast.Call) and identifier_of(owner.func) in extension_names(self.source)
        return node.attr in _OF_VALUES or (built and self._is_forwards(node))

    def _is_of_values(self, owner: ast.expr) -> bool:
        """Whether an attribute's owner is no library, extension or logger, whose names are asked as a whole."""
        while isinstance(owner, ast.Attribute):
            owner = owner.value
        return not isinstance(owner, ast.Name) or owner.id in self.own | self.private

    def _is_forwards(self, node: ast.expr) -> bool:
        """Whether it is a function of an extension that is called elsewhere, too, so that it runs what forward runs."""
        above = self.source.parent(node)
        function = above if isinstance(above, ast.Attribute) else node  # ext.relu, relu
        uses = [use for use in self.source.mentions(identifier_of(function) or "") if use not in self.nodes]
        return self.source.is_called(function) and any(self.source.is_called(use) for use in uses)

    def _works(self) -> bool:
        """Whether it names an extension or PyTorch, which may remember what was done: memory, random numbers."""
        names = {*filter(None, map(identifier_of, self.nodes))}
        return bool(names & extension_names(self.source)) or any(
            self.source.aliases.get(name, "").startswith("torch") for name in names
        )

    def _runs_once(self) -> bool:
        """Whether all that it does is done once for what it is told: `if device in checked: return`, `checked.add(device)`.
        Nothing else is kept, and what is asked is what is noted, so that no later call does anything."""
        told, body = self._told()
        match body:
            case [ast.If(test=test, body=[ast.Return(value=None)], orelse=[]), *behind]:
                has_run = True
            case [ast.If(test=test, body=behind, orelse=[])]:
                has_run = False
            case _:
                return False
        flag, key, means_that = _asked(test)
        return (
            has_run is means_that
            and identifier_of(flag) in self.private
            and sum(identifier_of(node) in self.private for node in self.nodes) == 2
            and (key is None or _is_made_of(key, told))
            and any(_notes(statement, flag, key) for statement in behind)
        )

    def _told(self) -> tuple[set[str], list[ast.stmt]]:
        """Names that only stand for what it is told, or for a key made of that; and what follows them."""
        stored = [node.id for node in self.nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)]
        told = {argument.arg for argument in parameters(self.function)} - {*stored, "self"}
        body = [item for item in self.function.body if not (isinstance(item, ast.Global) or _is_text(item))]
        while body and (key := _name_given(body[0], told)) is not None and stored.count(key) == 1:
            told.add(key)
            body = body[1:]
        return told, body


def _name_given(statement: ast.stmt, told: Set[str]) -> str | None:
    """The name that a statement gives to what consists of these names alone."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if _is_made_of(value, told):
            return name
    return None


def _asked(test: ast.expr) -> tuple[ast.expr, ast.expr | None, bool]:
    """What a test asks, whether what is in it, and whether the answer `true` means that it is there."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            flag, key, there = _asked(operand)
            return flag, key, not there
        case ast.Compare(left=key, ops=[ast.In() | ast.NotIn() as operator], comparators=[flag]):
            return flag, key, isinstance(operator, ast.In)
    return test, None, True


def _notes(statement: ast.stmt, flag: ast.expr, key: ast.expr | None) -> bool:
    """Whether a statement makes the flag say that it has run, for this key."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=noted, attr="add" | "append"), args=[item])):
            pass
        case ast.Assign(targets=[ast.Subscript(value=noted, slice=item)]):
            pass
        case ast.Assign(targets=[noted], value=ast.Constant(value=True)) if key is None:
            item = None
        case _:
            return False
    same = key is None or (item is not None and ast.unparse(item) == ast.unparse(key))
    return same and ast.unparse(noted) == ast.unparse(flag)


def _is_made_of(value: ast.expr, told: Set[str]) -> bool:
    """Whether an expression consists of these names, their attributes and constants, and is the same whenever it is asked."""
    match value:
        case ast.Name(id=name):
            return name in told
        case ast.Attribute(value=owner, attr=name):
            return name in SHAPE_ONLY | {"type", "index"} and _is_made_of(owner, told)
        case ast.Tuple(elts=parts) | ast.Call(func=ast.Name(id="tuple" | "str"), args=parts, keywords=[]):
            return all(_is_made_of(part, told) for part in parts)
    return isinstance(value, ast.Constant)


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _whole(source: PythonSource, node: ast.expr) -> ast.expr:
    """The longest name with attributes that begins with a name: `torch.testing.assert_close`."""
    above = source.parent(node)
    return _whole(source, above) if isinstance(above, ast.Attribute) else node


def _is_private(source: PythonSource, name: str, nodes: Set[ast.AST]) -> bool:
    """Whether what outlives a call is mentioned by these nodes alone, but for where it begins without anything in it."""
    outside = [node for node in source.mentions(name) if node not in nodes]
    begun = [value for value in source.values(name) if value not in nodes]
    return (
        bool(begun)
        and all(_begins_empty(source, value) for value in begun)
        and all(isinstance(getattr(node, "ctx", None), ast.Store) and node not in source.in_forward for node in outside)
        and name not in source.aliases.keys() | source.parameters
        and not source.definitions(name)
    )


def _begins_empty(source: PythonSource, value: ast.expr) -> bool:
    match value:
        case ast.List(elts=parts) | ast.Dict(values=parts):
            return not parts
        case ast.Call(func=function, args=parts, keywords=[]):
            return source.dotted(function) in _STARTS and all(
                isinstance(part, ast.Constant) or source.dotted(part) in _ITEMS for part in parts
            )
    return isinstance(value, ast.Constant)


def _is_setting(source: PythonSource, value: ast.expr) -> bool:
    """Whether a value is made of numbers and texts of constants and of the environment alone."""
    match value:
        case ast.Compare(left=left, comparators=others):
            parts = [left, *others]
        case ast.BoolOp(values=parts):
            pass
        case ast.Call(func=function, args=parts, keywords=[]):
            if source.dotted(function) not in _SETTINGS:
                return False
        case ast.UnaryOp(operand=operand):
            parts = [operand]
        case _:
            return isinstance(value, ast.Constant)
    return all(_is_setting(source, part) for part in parts)
