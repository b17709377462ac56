"""Inputs of the problem that a candidate makes itself, and the self-tests that only look like it.

A self-test draws numbers from a seed too. What it draws stays in it: none of it is returned, kept, or given to anything
that could keep it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence, Set

from dice.kernels.checks.extensions import extension_names
from dice.kernels.checks.inputs import SHAPE_ONLY
from dice.kernels.checks.python_names import identifiers
from dice.kernels.checks.python_source import PythonSource
from dice.kernels.checks.weights import becomes_a_weight
from dice.kernels.source.lexer import words
from dice.python_scope import Definition, Function, bindings_of, parameters

_RANDOM = (
    "torch.rand",
    "torch.randn",
    "torch.randint",
    "torch.normal",
    "torch.rand_like",
    "torch.randn_like",
    "torch.randperm",
)
_SEEDS = words("manual_seed manual_seed_all set_rng_state fork_rng")
_OPINIONS = words("bool allclose equal assert_close isinstance len all any isfinite isclose")
"""Calls that say yes or no, or how many: no drawn number comes out of them."""
_TAKERS = words(
    "append extend insert update add setdefault push put register_buffer register_parameter setattr save dump copy_"
)
"""Methods by which another object keeps what it is given."""
_DEEP = 3
"""Helpers of helpers that are followed."""
_PLAIN = words("bool float int abs max min print str repr range zip enumerate list tuple sum sorted round type")


def predictions(source: PythonSource, reference: PythonSource | None) -> Iterator[tuple[str, ast.AST, str]]:
    """The candidate makes the benchmark's inputs itself, by calling get_inputs or by seeding the generator."""
    seeds, draws = [], []
    for call, name in source.calls(source.live):
        if isinstance(call.func, ast.Name) and call.func.id in ("get_inputs", "get_init_inputs"):
            yield "input_prediction", call, ""
        if name.rpartition(".")[2] in _SEEDS:
            seeds.append(call)
        if name in _RANDOM and not becomes_a_weight(source, call):
            draws.append(call)
    for node in source.live:
        if (
            isinstance(node, ast.Name)
            and node.id in ("get_inputs", "get_init_inputs")
            and isinstance(node.ctx, ast.Load)
        ):
            yield "input_prediction", node, ""
    seeded_by_reference = reference is not None and "manual_seed" in identifiers(reference.live)
    if seeds and not seeded_by_reference and not stay_in_tests(source, draws):
        yield "input_prediction", seeds[0], "seeds the generator and draws from it: "


def stay_in_tests(source: PythonSource, draws: Sequence[ast.Call]) -> bool:
    """Whether all draws are made in functions off forward's path, and nothing made of them leaves these functions."""
    drawn: dict[Function, set[ast.AST]] = {}
    for draw in draws:
        function = source.function_around(draw)
        if not isinstance(function, Function) or source.computes_names or draw in source.in_forward:
            return False
        drawn.setdefault(function, set()).add(draw)
    return all(_Test(source, function, made).keeps_to_itself() for function, made in drawn.items())


class _Test:
    """One function, and what in it is made of drawn numbers: `drawn`, expressions, and `names`, its parameters."""

    def __init__(
        self,
        source: PythonSource,
        function: Function,
        drawn: Set[ast.AST] = frozenset(),
        depth: int = 0,
        harmless: dict[tuple[Definition, int], bool] | None = None,
    ) -> None:
        """harmless: what is known of helpers at some depth."""
        self._source, self._function, self._drawn, self._depth = source, function, drawn, depth
        self._harmless = {} if harmless is None else harmless
        self._nodes = list(ast.walk(function))
        self._shared = {
            name for node in self._nodes if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names
        }
        bound = {binding.name for node in self._nodes for binding in bindings_of(node) if not binding.attribute}
        given = {each.arg for each in parameters(function)} - {"self", "cls"}
        self._local = (bound | given) - self._shared
        self._holding: set[ast.AST] = set()
        """What has drawn numbers in its value."""
        self._follow(set() if drawn else given)

    def keeps_to_itself(self) -> bool:
        """Whether no drawn number leaves the function. What a helper returns stays in the function that called it."""
        return not any(self._leaves(node) for node in self._nodes)

    def _follow(self, names: set[str]) -> None:
        """Note what holds drawn numbers: the draws, names that are given them, and what these are in."""
        mentions: dict[str, list[ast.AST]] = {}
        taken: dict[ast.AST, list[str]] = {}
        for node in self._nodes:
            if isinstance(node, ast.Name):
                mentions.setdefault(node.id, []).append(node)
            for binding in bindings_of(node):
                if not binding.attribute and binding.value is not None:
                    taken.setdefault(binding.value, []).append(binding.name)
        waiting = [*self._drawn, *(node for name in names for node in mentions.pop(name, ()))]
        while waiting:
            inner: ast.AST | None = waiting.pop()
            while inner is not None and inner not in self._holding:
                self._holding.add(inner)
                waiting += [node for name in taken.get(inner, ()) for node in mentions.pop(name, ())]
                above = self._source.parent(inner) if inner is not self._function else None
                inner = None if above is None or _hides(above) else above

    def _holds(self, node: ast.AST | None) -> bool:
        """Whether the value of an expression has drawn numbers in it."""
        return node in self._holding

    def _leaves(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Return):
            return self._depth == 0 and self._holds(node.value)
        if isinstance(node, ast.Yield | ast.YieldFrom | ast.Await):
            return self._holds(node.value)
        if isinstance(node, Function | ast.Lambda | ast.ClassDef) and node is not self._function:
            return any(self._holds(inner) for inner in ast.walk(node))
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.NamedExpr | ast.For | ast.withitem):
            held = [binding for binding in bindings_of(node) if self._holds(binding.value)]
            targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
            elsewhere = any(isinstance(inner, ast.Subscript) and not self._is_local(inner) for inner in targets)
            return (elsewhere and self._holds(getattr(node, "value", None))) or any(
                binding.attribute or binding.name in self._shared for binding in held
            )
        return isinstance(node, ast.Call) and self._gives_away(node)

    def _is_local(self, node: ast.expr) -> bool:
        while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
            node = node.func if isinstance(node, ast.Call) else node.value
        return isinstance(node, ast.Name) and node.id in self._local

    def _gives_away(self, call: ast.Call) -> bool:
        """Whether a call takes drawn numbers to where they could be kept."""
        given = [*call.args, *(item.value for item in call.keywords)]
        if not any(self._holds(argument) for argument in given):
            return False
        source, function = self._source, call.func
        if isinstance(function, ast.Attribute) and function.attr in _TAKERS:
            return not self._is_local(function.value)
        own = [definition for name in identifiers([function]) for definition in source.definitions(name)]
        if own:
            return not all(self._is_harmless(definition) for definition in own)
        names = identifiers(ast.walk(function))
        known = (source.dotted(function) or "").startswith("torch.") or names & (extension_names(source) | _PLAIN)
        return not known and not self._is_local(function)

    def _is_harmless(self, helper: Definition) -> bool:
        """Whether a helper keeps nothing that it is given."""
        if not isinstance(helper, Function) or self._depth == _DEEP:
            return False
        place = (helper, self._depth + 1)
        if place not in self._harmless:
            inner = _Test(self._source, helper, depth=self._depth + 1, harmless=self._harmless)
            self._harmless[place] = inner.keeps_to_itself()
        return self._harmless[place]


def _hides(node: ast.AST) -> bool:
    """Whether no number in a node gets out of it."""
    if isinstance(node, ast.Attribute):
        return node.attr in SHAPE_ONLY
    return isinstance(node, ast.Call) and bool(identifiers([node.func]) & (_OPINIONS | SHAPE_ONLY))
