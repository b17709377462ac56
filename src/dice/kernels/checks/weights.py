"""Expressions that only concern the candidate's weights, which the grader sets: neither an input nor an answer."""

from __future__ import annotations

import ast
import functools

from dice.kernels.checks.inputs import SAME
from dice.kernels.checks.named import says_all_names
from dice.kernels.checks.numbers_read import scopes_of
from dice.kernels.checks.once import once
from dice.kernels.checks.python_names import identifier_of
from dice.kernels.checks.python_source import PythonSource
from dice.kernels.source.lexer import words
from dice.python_scope import Function, Scope, positional_parameters, root_name

_REPLACES = words("set_ swap_tensors register_parameter register_buffer __setattr__ __dict__ _parameters _buffers")
"""Calls that replace a weight by another tensor."""
_ALL_WEIGHTS = words(
    "state_dict load_state_dict parameters named_parameters buffers named_buffers _parameters _buffers __dict__ vars "
    "register_load_state_dict_pre_hook"
)
_FAR = 3
"""Names by which a weight is handed on."""
_BEFORE_WEIGHTS = words("load_state_dict _load_from_state_dict state_dict __setattr__ to cuda train eval apply _apply")
"""Names that see all weights at once, and methods that run before the weights are loaded: both could keep a draw."""


def is_weight(source: PythonSource, value: ast.expr, far: int = _FAR) -> bool:
    """Whether an expression is one of the module's own weights, also in another form (`.detach()`), as a helper's argument
    in each of its calls, or as a local variable."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in SAME:
        value = value.func.value
    if not isinstance(value, ast.Name):
        return _is_attribute(source, value)
    scopes = scopes_of(source)
    owner = scopes.owner(value.id, scopes.scope_of[value])
    return far > 0 and _names_weight(source, helper_of(source, value), owner, value.id, far)


@once
def _names_weight(source: PythonSource, helper: Helper, owner: Scope | None, name: str, far: int) -> bool:
    given = passed_to(source, helper, name) or _local_values(source, owner, name)
    return bool(given) and all(is_weight(source, each, far - 1) for each in given)


def _local_values(source: PythonSource, function: Scope | None, name: str) -> list[ast.expr]:
    """What a function gives its variable; nothing where that is not all that it may be."""
    given = scopes_of(source).bindings[function][name] if isinstance(function, Function) else []
    values = [
        each.value for each in given if each.whole and each.value is not None and not isinstance(each.node, ast.arg)
    ]
    return values if len(values) == len(given) else []


Helper = ast.FunctionDef | ast.Lambda | None


def helper_of(source: PythonSource, node: ast.AST) -> Helper:
    """The function that a node stands in."""
    found = source.function_around(node)
    while isinstance(found, ast.AsyncFunctionDef):
        found = source.function_around(found)
    return found


def passed_values(source: PythonSource, name: ast.Name) -> list[ast.expr]:
    """What the calls of a helper pass for one of its arguments; nothing where a call may pass something else."""
    return passed_to(source, helper_of(source, name), name.id)


@once
def passed_to(source: PythonSource, helper: Helper, name: str) -> list[ast.expr]:
    """The same of an argument by its name."""
    if not isinstance(helper, ast.FunctionDef) or helper is source.forward or source.computes_names:
        return []
    places = positional_parameters(helper)
    simple = not helper.decorator_list and len(source.definitions(helper.name)) == 1
    simple = simple and len(scopes_of(source).bindings[helper].get(name, [])) == 1
    if not simple or name not in places:
        return []
    index = places.index(name) - (places[0] == "self")
    calls, shortest = _calls(source, helper)
    return [call.args[index] for call in calls] if shortest and index < shortest else []


@once
def _calls(source: PythonSource, helper: ast.FunctionDef) -> tuple[list[ast.Call], int]:
    """All that is done with a helper, where that is to call it with arguments that have no names; and the fewest of them."""
    mentions = _objects(source, helper) if helper.name == "__call__" else _mentions(source, helper.name)
    calls = [above for node in mentions if isinstance(above := source.parent(node), ast.Call) and above.func is node]
    if not calls or len(calls) < len(mentions) or any(call.keywords for call in calls):
        return [], 0
    return calls, min(len(call.args) for call in calls)


def _mentions(source: PythonSource, helper: str) -> list[ast.AST]:
    """Where a helper's name is mentioned, but for calls of a method of that name that a module or a dict has:
    `os.environ.get(name)`, `self.kept.get(key)`."""
    return [node for node in source.mentions(helper) if not (source.is_called(node) and _is_of_another(source, node))]


def _is_of_another(source: PythonSource, method: ast.AST) -> bool:
    if not isinstance(method, ast.Attribute):
        return False
    owner, root = method.value, root_name(method) or ""
    name = identifier_of(owner) or ""
    if not says_all_names(source) or source.definitions(name):
        return False
    if root in source.aliases:
        return not (source.values(name) or _is_given(source, root))
    return isinstance(owner, ast.Attribute) and _is_a_dict(source, name)


@once
def _is_given(source: PythonSource, name: str) -> bool:
    """Whether the file gives a name something besides what it imports."""
    own = source.values(name) or source.definitions(name) or name in source.parameters
    return bool(own) or any(_stores(node) for node in source.mentions(name))


@once
def _is_a_dict(source: PythonSource, name: str) -> bool:
    """Whether all that a name is ever given are dicts that the file writes out."""
    values, stored = source.values(name), [node for node in source.mentions(name) if _stores(node)]
    return bool(values) and len(stored) == len(values) and all(isinstance(value, ast.Dict) for value in values)


def _stores(node: ast.AST) -> bool:
    """Whether a mention of a name may give it something, as all do but for reading it: `setattr(self, "name", value)`."""
    return not (isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load))


def _objects(source: PythonSource, method: ast.FunctionDef) -> list[ast.AST]:
    """Where objects are read whose calls run `__call__`; nothing where something else may have that method, or such an object
    another name."""
    made = source.parent(method)
    if not isinstance(made, ast.ClassDef) or made.bases or made.decorator_list or made not in source.tree.body:
        return []
    if len(source.definitions(made.name)) > 1 or source.values(made.name) or source.mentions("__call__"):
        return []
    names: set[str] = set()
    for mention in source.mentions(made.name):
        call = source.parent(mention)
        given = source.parent(call) if call is not None else None
        if not (source.is_called(mention) and isinstance(given, ast.Assign) and given.value is call):
            return []
        names |= {identifier_of(target) or "" for target in given.targets}
    values = [value for name in names for value in source.values(name)]
    own = all(isinstance(value, ast.Call) and identifier_of(value.func) == made.name for value in values)
    mentions = [mention for name in names for mention in source.mentions(name)]
    return [each for each in mentions if not isinstance(getattr(each, "ctx", None), ast.Store)] if own else []


def _is_attribute(source: PythonSource, value: ast.expr) -> bool:
    """Whether an expression is `self.weight` or `self.layer.weight`, made by `torch.nn` and never written by forward."""
    chain: list[str] = []
    while isinstance(value, ast.Attribute):
        chain.append(value.attr)
        value = value.value
    if not (isinstance(value, ast.Name) and value.id == "self" and chain):
        return False
    made = _kept_values(source, chain[-1])
    by_torch = all(
        isinstance(item, ast.Call)
        and (source.dotted(item.func) or "").startswith("torch.nn.")
        and item not in source.in_forward
        for item in made
    )
    written = _written(source)
    return bool(made) and by_torch and written is not None and written.isdisjoint({*chain, "data"})


@once
def _kept_values(source: PythonSource, name: str) -> list[ast.expr]:
    """What an attribute, or a variable of a class or the file, may be; not the local variables of this name."""
    local = _given_locally(source).get(name, ())
    return [value for value in source.values(name) if value not in local]


@once
def _given_locally(source: PythonSource) -> dict[str, set[ast.expr | None]]:
    """What functions give their variables, by name."""
    given: dict[str, set[ast.expr | None]] = {}
    for scope, names in scopes_of(source).bindings.items():
        for name, found in names.items() if isinstance(scope, Function | ast.Lambda) else ():
            given.setdefault(name, set()).update(each.value for each in found)
    return given


@functools.lru_cache(maxsize=8)
def _written(source: PythonSource) -> set[str] | None:
    """Attributes that forward assigns; None where it may change any, by a call of `set_` and similar."""
    written: set[str] = set()
    for node in source.in_forward:
        if identifier_of(node) in _REPLACES or (isinstance(node, ast.Name) and node.id in ("setattr", "vars")):
            return None
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            written.add(node.attr)
    return written


def becomes_a_weight(source: PythonSource, draw: ast.Call) -> bool:
    """Whether a draw is only the first value of `self.name = nn.Parameter(draw)` or of a buffer, made in `__init__`.

    The grader loads the reference's weights (all of them, by name) before forward is called. So the drawn values are gone by
    then, unless `__init__` or the code that loads the weights keeps them: the name may only be read on forward's path and
    passed to `nn.init`.
    """
    made = source.parent(draw)
    while isinstance(made, ast.BinOp | ast.UnaryOp):
        made = source.parent(made)
    if not isinstance(made, ast.Call) or any(source.definitions(name) for name in _BEFORE_WEIGHTS):
        return False
    statement = source.parent(made)
    function = helper_of(source, made)
    if function is None or function is not source.method(source.entry, "__init__") or source.computes_names:
        return False
    if source.dotted(made.func) == "torch.nn.Parameter":
        target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
        name = target.attr if isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self" else None
    else:
        registers = ast.unparse(made.func) == "self.register_buffer" and isinstance(statement, ast.Expr)
        name = source.text(made.args[0]) if registers and len(made.args) == 2 and not made.keywords else None
    return name is not None and not _are_all_seen(source) and not _read_early(source, name)


@once
def _are_all_seen(source: PythonSource) -> bool:
    return any(node in source.live for each in _ALL_WEIGHTS for node in source.mentions(each))


@once
def _read_early(source: PythonSource, name: str) -> bool:
    """Whether an attribute is read outside forward's path by anything but `torch.nn.init`."""
    for node in source.mentions(name):
        stored = isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load)
        if isinstance(node, ast.Attribute | ast.Call) and node in source.live and not stored:
            above = source.parent(node)
            initialised = isinstance(above, ast.Call) and (source.dotted(above.func) or "").startswith("torch.nn.init.")
            if node not in source.in_forward and not initialised:
                return True
    return False
