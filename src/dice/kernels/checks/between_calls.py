"""What differs between calls of forward: things that outlive a call, and that forward changes.

A thing is an attribute of whatever outlives a call (the model, a class, a function, a module), a variable of the file or of
a function that is left, a default argument, or what an object has at all (`vars(self)`). It is followed through other names
for it, and into the functions that it is handed to. It differs by a step where forward changes it by what it was: counts,
texts and containers that grow, orders that turn, iterators that are read on.
"""

from __future__ import annotations

import ast
import functools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set

from dice.kernels.checks.callees import Called, Place, callees_of, given, takers
from dice.kernels.checks.choices import work_of
from dice.kernels.checks.extensions import builds
from dice.kernels.checks.inputs import SAME, SHAPE_ONLY
from dice.kernels.checks.local_values import local_values
from dice.kernels.checks.lookups import makes_room
from dice.kernels.checks.numbers_read import scopes_of
from dice.kernels.checks.python_names import identifier_of
from dice.kernels.checks.python_source import PythonSource
from dice.kernels.checks.told import is_told
from dice.kernels.source.lexer import words
from dice.python_scope import Function, Scope, bindings_of, parameter_defaults

Thing = tuple[Scope | None, str]
"""A name with the scope that it belongs to; an attribute of any object has None."""
_OWN: Thing = (None, "__dict__")
"""All that an object has."""
_TABLES = words("__dict__ _buffers _modules _parameters")
_LISTED = words("vars dir globals hasattr")
"""Functions that tell what an object has."""
_LISTED_OF_MODULES = words("children modules buffers parameters named_children named_modules named_buffers state_dict")
_REGISTERS = words("register_buffer register_parameter add_module register_module __setattr__ setattr")
_CHANGING = words(
    "append appendleft extend extendleft add insert update pop popleft popitem remove clear discard rotate reverse "
    "move_to_end send"
)
"""Methods that change what has them."""
_CHANGING_BY_NAME = ("heapq.heap", "operator.i", "operator.setitem", "operator.delitem", "random.shuffle")
"""Functions that change their first argument."""
_ITERATORS = words(
    "iter map filter zip enumerate reversed count cycle chain repeat islice accumulate starmap takewhile"
)
_HANDED = 3
"""Calls by which a thing is handed on."""


class BetweenCalls:
    """Which expressions of forward ask for things that differ between calls."""

    def __init__(self, source: PythonSource) -> None:
        self._source, self._scopes, self._work = source, scopes_of(source), work_of(source)
        self._local_values = local_values(source)
        self._inside = {node for node in source.in_forward if isinstance(node, Function | ast.Lambda)}
        self._attributes: dict[ast.AST, dict[str, set[Thing]]] = {}
        self._iterators: dict[Thing, bool] = {}
        self._other_names: dict[Thing, set[Thing]] = defaultdict(set)
        self._ends: dict[ast.Name, ast.expr] = {}
        self._known: dict[ast.AST, Set[Thing]] = {}
        """What `things` says, as long as no other names are found."""
        for _ in range(_HANDED):
            self._hand_on()
        self._reads: dict[ast.AST | str, set[Thing]] = {}
        self._directly: dict[ast.AST, tuple[Set[Thing], Set[ast.AST | str]]] = {}
        self._after: dict[Thing, set[Thing]] = defaultdict(set)
        """Thing -> those from which forward makes it."""
        self.stepped: set[Thing] = set()
        """Things that forward changes by what they were."""
        for node in source.in_forward:
            self._note(node)
        self.stepped |= made_of_themselves(self._after)

    def things(self, node: ast.AST) -> Set[Thing]:
        """The things that outlive a call for which an expression may stand."""
        if node not in self._known:
            self._known[node] = self._things(node)
        return self._known[node]

    def _things(self, node: ast.AST) -> Set[Thing]:
        match node:
            case ast.Name():
                return self._named(node)
            case ast.Attribute(value=owner, attr=name):
                if name in _TABLES:
                    return {_OWN}
                return {(None, name)} if self._outlives(owner) else frozenset()
            case ast.Subscript(value=value) | ast.Starred(value=value) | ast.NamedExpr(value=value):
                return self.things(value)
            case ast.IfExp(body=body, orelse=orelse):
                return self.things(body) | self.things(orelse)
            case ast.BoolOp(values=values):
                return {thing for value in values for thing in self.things(value)}
            case ast.Call():
                return self._of_call(node)
        return frozenset()

    def values(self, thing: Thing) -> list[ast.expr]:
        """Every expression that a thing may ever be given; of a parameter, its default too."""
        owner, name = thing
        default = parameter_defaults(owner).get(name) if isinstance(owner, Function | ast.Lambda) else None
        return [*self._source.values(name), *([default] if default is not None else [])]

    def is_stepped(self, node: ast.AST) -> bool:
        """Whether an expression asks for a thing that a call changes by what it was."""
        asks = isinstance(node, ast.Call) or isinstance(getattr(node, "ctx", None), ast.Load)
        return asks and not self.stepped.isdisjoint(self.things(node))

    def assigned(self) -> Iterator[tuple[Thing, ast.expr]]:
        """Things to which forward gives a value, whatever they were and whatever it is given; with the value."""
        for node in self._source.in_forward:
            for found in bindings_of(node) if isinstance(node, ast.Assign | ast.AnnAssign) else ():
                if found.value is not None and found.whole and self._asks_for_kept_alone(node):
                    yield from ((thing, found.value) for thing in self._bound(node, found.name, found.attribute))

    def _named(self, node: ast.Name) -> Set[Thing]:
        owner = self._scopes.owner(node.id, self._scopes.scope_of[node])
        if owner is None or node.id in self._source.aliases:
            return frozenset()
        if (end := self._end(node)) is not node:
            return self.things(end)
        thing = (owner, node.id)
        return self._other_names.get(thing, frozenset()) | ({thing} if self._is_kept(owner, node.id) else set[Thing]())

    def _end(self, name: ast.Name) -> ast.expr:
        """What stands behind a variable that does not outlive a call, through other ones; itself where that is not sure."""
        path: list[ast.Name] = []
        end: ast.expr = name
        while isinstance(end, ast.Name) and end not in self._ends:
            path.append(end)
            value = self._local_values.at(end) if self._is_passing(end) else None
            if value is None:
                break
            end = value
        end = self._ends.get(end, end) if isinstance(end, ast.Name) else end
        self._ends.update(dict.fromkeys(path, end))
        return end

    def _is_passing(self, name: ast.Name) -> bool:
        owner = self._scopes.owner(name.id, self._scopes.scope_of[name])
        return owner is not None and name.id not in self._source.aliases and not self._is_kept(owner, name.id)

    def _is_kept(self, owner: Scope, name: str) -> bool:
        """Whether a variable outlives a call."""
        if isinstance(owner, ast.Module | ast.ClassDef):
            return True
        if not isinstance(owner, Function | ast.Lambda):
            return False
        default = parameter_defaults(owner).get(name)
        return owner not in self._inside or isinstance(default, ast.List | ast.Dict | ast.Set | ast.Call)

    def _outlives(self, owner: ast.expr) -> bool:
        """Whether an object is there in the next call, too."""
        match owner:
            case ast.Name(id="self" | "cls"):
                return True
            case ast.Name(id=name) if name in self._source.aliases or self._source.definitions(name):
                return True
            case ast.Call(func=ast.Name(id="type")):
                return True
        return bool(self.things(owner))

    def _of_call(self, call: ast.Call) -> Set[Thing]:
        name, owner = identifier_of(call.func), call.func.value if isinstance(call.func, ast.Attribute) else None
        if owner is None and name in _LISTED:
            return {_OWN}
        if isinstance(call.func, ast.Name) and name == "getattr" and len(call.args) > 1:
            key = identifier_of(call)
            return ({_OWN} if key is None else {(None, key)}) if self._outlives(call.args[0]) else frozenset()
        if owner is not None and name in _LISTED_OF_MODULES:
            return {_OWN}
        return self.things(owner) if owner is not None and name in (*_CHANGING, "get", "setdefault") else frozenset()

    def _hand_on(self) -> None:
        """Note other names that forward has for things, and parameters that are given them."""
        handed: dict[Called, dict[Place, set[Thing]]] = {}
        for node in self._source.in_forward:
            for found in bindings_of(node):
                if found.value is not None and not found.attribute and not self._bound(node, found.name, False):
                    owner = self._scopes.owner(found.name, self._scopes.scope_of[node])
                    if owner is not None and (things := self.things(found.value)):
                        self._add_name((owner, found.name), things)
            if isinstance(node, ast.Call):
                places = handed.setdefault(callees_of(self._source).of(node), {})
                for argument, place in given(node):
                    places.setdefault(place, set()).update(self.things(argument))
        for called, places in handed.items():
            for function in callees_of(self._source).functions(called):
                for place, things in places.items():
                    for name in takers(function, place):
                        self._add_name((function, name), things)

    def _add_name(self, name: Thing, things: Set[Thing]) -> None:
        if not things <= self._other_names[name]:
            self._other_names[name] |= things
            self._known.clear()

    def _bound(self, node: ast.AST, name: str, attribute: bool) -> Set[Thing]:
        """The things that a statement binds under a name itself."""
        if attribute:
            return self._stored(node).get(name, frozenset())
        owner = self._scopes.owner(name, self._scopes.scope_of[node])
        return {(owner, name)} if owner is not None and self._is_kept(owner, name) else frozenset()

    def _stored(self, node: ast.AST) -> dict[str, set[Thing]]:
        """The attributes that a statement stores, with the things that they are."""
        if node not in self._attributes:
            found = self._attributes[node] = {}
            for part in ast.walk(node):
                if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store):
                    found.setdefault(part.attr, set()).update(self.things(part))
        return self._attributes[node]

    def _note(self, node: ast.AST) -> None:
        """Note what a statement or an expression changes."""
        match node:
            case ast.AugAssign(target=target):
                self.stepped |= set() if self._only_grows(node) else self._own(target)
            case ast.Delete(targets=targets):
                ends = (part for part in targets if isinstance(part, ast.Subscript) and _is_a_place(part.slice))
                self.stepped |= {thing for part in ends for thing in self.things(part)}
            case ast.Assign() | ast.AnnAssign() | ast.NamedExpr():
                self._note_bindings(node)
                self._note_elements(node)
            case ast.Call():
                self._note_call(node)
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            self.stepped |= {thing for thing in self.things(node) if self._is_iterator(thing)}

    def _note_bindings(self, node: ast.Assign | ast.AnnAssign | ast.NamedExpr) -> None:
        read: dict[ast.expr, set[Thing]] = {}
        for found in bindings_of(node):
            things = self._bound(node, found.name, found.attribute) if found.value is not None else ()
            for thing in things:
                assert found.value is not None
                if found.value not in read:
                    read[found.value] = self._read(found.value)
                self._after[thing] |= read[found.value] if not self._is_it(found.value, thing) else set()

    def _note_elements(self, node: ast.Assign | ast.AnnAssign | ast.NamedExpr) -> None:
        parts = [*_subscripts(node)]
        read = self._read(node.value) if parts and node.value is not None else set[Thing]()
        for part in parts:
            shortens = _has_an_end(part.slice) and isinstance(node.value, ast.List | ast.Tuple)
            self.stepped |= self.things(part) if shortens else set()
            for thing in self.things(part):
                self._after[thing] |= read | self._read(part.slice)

    def _is_it(self, value: ast.expr, thing: Thing) -> bool:
        return isinstance(value, ast.Name | ast.Attribute) and self.things(value) == {thing}

    def _own(self, target: ast.expr) -> Set[Thing]:
        """What `target += ...` changes: of another name for a thing, nothing."""
        return self._bound(target, target.id, False) if isinstance(target, ast.Name) else self.things(target)

    def _note_call(self, call: ast.Call) -> None:
        name, first = identifier_of(call.func), call.args[0] if call.args else None
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        arguments = [*call.args, *(item.value for item in call.keywords)]
        if isinstance(call.func, ast.Name):  # add = self.seen.add
            given = self._local_values.at(call.func)
            held = self._source.values(call.func.id) if given is None else [given]
            methods = (each for each in held if isinstance(each, ast.Attribute) and each.attr in _CHANGING)
            self.stepped |= {thing for each in methods for thing in self.things(each.value)} - {_OWN}
        if name in _REGISTERS or (isinstance(call.func, ast.Name) and call.func.id == "setattr"):
            key = identifier_of(call)
            self._after[_OWN if key is None else (None, key)] |= {
                read for each in arguments for read in self._read(each)
            }
        elif first is not None and self._changes_first(call, first):
            self.stepped |= self.things(first)
        elif owner is not None and name in (*_CHANGING, "__next__"):
            things = self.things(owner)
            notes = name == "add" and all(is_told(self._source, each) for each in arguments)
            rooms = name == "clear" and makes_room(self._source, call)
            self.stepped |= {thing for thing in things if not (rooms or (notes and self._is_a_set(thing)))} - {_OWN}
            self._after[_OWN] |= {read for each in arguments for read in self._read(each)} & {_OWN}
        elif owner is not None and name in ("setdefault", "__setitem__"):
            for thing in self.things(owner):
                self._after[thing] |= {read for each in arguments for read in self._read(each)}

    def _only_grows(self, step: ast.AugAssign) -> bool:
        """Whether it is `while self.room < x.shape[0]: self.room *= 2` of a number: the same input changes it once."""
        match self._source.parent(step):
            case ast.While(test=ast.Compare(left=asked, ops=[ast.Lt()], comparators=[bound]), body=[_], orelse=[]):
                same = ast.unparse(asked) == ast.unparse(step.target) and isinstance(step.op, ast.Mult)
            case _:
                return False
        name = identifier_of(step.target) or ""
        begun = [value for value in self._source.values(name) if value is not step.value]
        written = any(text == name for _, text in self._source.strings())  # register_buffer("size", ...)
        other = any(each in self._source.in_forward for each in begun) or written or self._source.definitions(name)
        whole = all(map(_is_a_number, [*begun, step.value])) and bool(begun) and _is_a_number(step.value, 2)
        return same and whole and not other and is_told(self._source, bound)

    def _is_a_set(self, thing: Thing) -> bool:
        """Whether a thing begins as an empty set, and is never another one: what is told again changes nothing in it."""
        made = self.values(thing)
        return (
            bool(made)
            and not self._source.definitions("set")
            and all(ast.unparse(value) == "set()" and value not in self._source.in_forward for value in made)
        )

    def _changes_first(self, call: ast.Call, first: ast.expr) -> bool:
        """Whether a call changes the first thing that it is given."""
        name = self._source.dotted(call.func) or ""
        goes_on = name == "next" and isinstance(first, ast.Name | ast.Attribute)
        return goes_on or name.startswith(_CHANGING_BY_NAME)

    def _read(self, value: ast.AST) -> set[Thing]:
        """The things whose value goes into an expression as it is: not their kinds, and not what PyTorch and kernels make
        of them."""
        things, behind = self._read_directly(value)
        return {*things}.union(*map(self._read_behind, behind))

    def _read_behind(self, begin: ast.AST | str) -> set[Thing]:
        """The same of a value, or of all that a name is given."""
        path: list[tuple[ast.AST, Set[Thing]]] = []
        while isinstance(begin, ast.AST) and begin not in self._reads:
            things, behind = self._read_directly(begin)
            if len(behind) != 1:
                break
            path.append((begin, things))
            (begin,) = behind
        found = self._reads[begin] if begin in self._reads else self._read_all_behind(begin)
        for each, things in reversed(path):
            found = self._reads[each] = found if things <= found else found | things
        return found

    def _read_all_behind(self, begin: ast.AST | str) -> set[Thing]:
        found: set[Thing] = set()
        seen, waiting = {begin}, [begin]
        while waiting:
            each = waiting.pop()
            if each in self._reads:
                found |= self._reads[each]
                continue
            for root in self._source.values(each) if isinstance(each, str) else [each]:
                things, behind = self._read_directly(root)
                found |= things
                waiting += behind - seen
                seen |= behind
        self._reads[begin] = found
        return found

    def _read_directly(self, value: ast.AST) -> tuple[Set[Thing], Set[ast.AST | str]]:
        """The same without what stands behind local variables; and that: values, and names that have several."""
        if value in self._directly:
            return self._directly[value]
        found: set[Thing] = set()
        behind: set[ast.AST | str] = set()
        pending = [value]
        while pending:
            node = pending.pop()
            if isinstance(node, ast.Name) and self._is_local(node):
                only = self._local_values.at(node)
                behind.add(node.id if only is None else only)
            worked_on = isinstance(node, ast.Call) and self._is_worked_on(node)
            if isinstance(node, ast.Name | ast.Attribute | ast.Call) and not worked_on:
                found |= self.things(node)
            match node:
                case ast.Compare(ops=[ast.Is() | ast.IsNot()]) | ast.Attribute():
                    continue
                case ast.Call(func=function):
                    if worked_on:
                        continue
                    pending += [function.value] if isinstance(function, ast.Attribute) else []
                    pending += [*node.args, *(item.value for item in node.keywords)]
                case ast.IfExp(test=test, body=body, orelse=orelse):
                    pending += [test, *(each for each in (body, orelse) if not self.things(each))]
                case ast.BoolOp(values=values):
                    pending += [each for each in values if not self.things(each)]
                case _:
                    pending += ast.iter_child_nodes(node)
        self._directly[value] = found, behind
        return found, behind

    def _is_local(self, node: ast.Name) -> bool:
        """Whether a name is a variable of what runs in forward, and no other name for a thing."""
        owner = self._scopes.owner(node.id, self._scopes.scope_of[node])
        return owner in self._inside and not self.things(node)

    def _is_worked_on(self, call: ast.Call) -> bool:
        name = identifier_of(call.func)
        if (self._source.dotted(call.func) or "").startswith("torch.") or (name in SHAPE_ONLY | SAME):
            return True
        return any(self._work.of([call])) or builds(self._source, call)

    def _is_iterator(self, thing: Thing) -> bool:
        """Whether a thing is ever given an iterator, or what reads one on."""
        if thing not in self._iterators:
            self._iterators[thing] = any(map(self._iterates, self.values(thing)))
        return self._iterators[thing]

    def _iterates(self, value: ast.expr) -> bool:
        match value:
            case ast.GeneratorExp():
                return True
            case ast.Attribute(value=owner, attr="__next__" | "send"):
                return self._iterates(owner)
            case ast.Call(func=function, args=arguments):
                name = identifier_of(function)
                if name == "partial":
                    return any(map(self._iterates, arguments))
                return name in _ITERATORS or any(map(is_generator, self._source.definitions(name or "")))
        return False

    def _asks_for_kept_alone(self, statement: ast.AST) -> bool:
        """Whether nothing but things that outlive a call decides if a statement of forward runs."""
        for above in self._source.ancestors(statement):
            if isinstance(above, Function | ast.Lambda):
                return True
            tests = [above.test] if isinstance(above, ast.If | ast.While) else []
            if isinstance(above, ast.For | ast.Match) or not all(map(self._is_of_kept, tests)):
                return False
        return True

    def _is_of_kept(self, test: ast.expr) -> bool:
        names = [part for part in ast.walk(test) if isinstance(part, ast.Name)]
        return all(part.id in ("self", "cls") or self.things(part) for part in names)


def made_of_themselves(after: Mapping[Thing, Set[Thing]]) -> set[Thing]:
    """The things from which a way leads back to them. After S. R. Kosaraju: what leads to the last one of a walk, and was not
    found from a later one, is in a ring with it."""
    before: dict[Thing, list[Thing]] = {}
    for thing, others in after.items():
        for other in others:
            before.setdefault(other, []).append(thing)
    ring_of: dict[Thing, Thing] = {}
    for last in reversed(_finished(after)):
        waiting = [last] if last not in ring_of else []
        while waiting:
            thing = waiting.pop()
            if thing not in ring_of:
                ring_of[thing] = last
                waiting += before.get(thing, ())
    return {thing for thing, others in after.items() if any(ring_of[thing] == ring_of[other] for other in others)}


def _finished(after: Mapping[Thing, Set[Thing]]) -> list[Thing]:
    """All things, each behind those that are reached from it for the first time."""
    found: list[Thing] = []
    seen: set[Thing] = set()
    for begin in after:
        waiting = [(begin, iter(after.get(begin, ())))] if begin not in seen else []
        seen.add(begin)
        while waiting:
            thing, others = waiting[-1]
            other = next((each for each in others if each not in seen), None)
            if other is None:
                found.append(thing)
                waiting.pop()
            else:
                seen.add(other)
                waiting.append((other, iter(after.get(other, ()))))
    return found


def _is_a_number(value: ast.expr, least: int = 1) -> bool:
    return isinstance(value, ast.Constant) and isinstance(value.value, int) and value.value >= least


def is_generator(function: ast.AST) -> bool:
    """Whether it is a function that yields."""
    return isinstance(function, Function) and bool(yields(function))


def yields(function: Function) -> list[ast.Yield]:
    """Where a function gives a value and goes on later."""
    return [node for node in ast.walk(function) if isinstance(node, ast.Yield)]


def _is_a_place(index: ast.expr) -> bool:
    return all(isinstance(part, ast.Constant | ast.Slice | ast.UnaryOp | ast.USub) for part in ast.walk(index))


def _has_an_end(index: ast.expr) -> bool:
    return isinstance(index, ast.Slice) and not (index.lower is None and index.upper is None)


def _subscripts(node: ast.AST) -> Iterable[ast.Subscript]:
    """Elements that an assignment stores to."""
    for target in node.targets if isinstance(node, ast.Assign) else ():
        parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
        yield from (part for part in parts if isinstance(part, ast.Subscript))


@functools.lru_cache(maxsize=8)
def between_calls(source: PythonSource) -> BetweenCalls:
    """What differs between calls of a file's forward."""
    return BetweenCalls(source)
