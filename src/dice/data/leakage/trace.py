"""Traces a program's forward into expressions (`dice.data.leakage.expression`).

Every operator that PyTorch dispatches is seen: methods, functions, modules and `einsum` all end there. Composite operators
are taken apart by PyTorch's own decompositions, so `F.silu(x)` and `x * torch.sigmoid(x)` give one graph. Changes in place
become values, also through views.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch._decomp import core_aten_decompositions, get_decompositions
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from dice.data.leakage import expression as ex
from dice.data.leakage.expression import HOLE, Node
from dice.data.leakage.operators import expression, kind, kinds_of, order_of, public_name, several
from dice.data.leakage.program import Failed, Program, blamed, contained, elements, without_data

MOST_OPERATORS = 20_000
"""A longer program is no exam problem; it is not traced to its end."""
MOST_ELEMENTS = 1 << 18
"""Elements of the inputs and weights of a program that is traced as it runs."""
_FURTHER = [
    "_softmax",
    "_log_softmax",
    "native_layer_norm",
    "native_group_norm",
    "native_batch_norm",
    "_native_batch_norm_legit",
    "_native_batch_norm_legit_no_training",
    "gelu",
    "elu",
    "leaky_relu",
    "addmm",
    "addmv",
    "logsumexp",
    "log_sigmoid_forward",
    "nll_loss_forward",
    "upsample_bilinear2d",
    "upsample_nearest2d",
    "max_pool2d_with_indices_backward",
    "cudnn_batch_norm",
]
"""Operators that are taken apart here, though PyTorch's core set keeps them."""
_WHOLE = frozenset(
    ["clamp_min", "clamp_max", "unsafe_split", "square", "avg_pool1d", "tril", "triu", "xlogy", "to", "silu", "arange"]
)
"""Decompositions of these are not used: there are rules for them below, or they lead away from other spellings."""
_SAME = frozenset(
    ["detach", "alias", "lift_fresh", "lift_fresh_copy", "clone", "contiguous", "positive", "_conj", "resolve_conj"]
)
_RESHAPES = frozenset(
    ["view", "_unsafe_view", "reshape", "_reshape_alias", "unsqueeze", "squeeze", "flatten", "view_as"]
)
_FREE = _SAME | _RESHAPES | frozenset(
    [
        "to", "tensor_split", "chunk", "expand", "permute", "transpose", "t", "select", "slice", "split",
        "split_with_sizes", "unbind", "narrow", "as_strided", "_to_copy", "copy_", "empty", "zeros", "ones",
        "full", "new_zeros", "new_ones", "new_full", "new_empty", "zeros_like", "ones_like", "full_like",
        "empty_like", "arange", "scalar_tensor", "fill_", "zero_", "rand", "randn", "randint", "cat", "stack",
        "diagonal", "unfold_", "_local_scalar_dense", "set_", "resize_"
    ]
)  # fmt: skip
"""Views, copies, constants and joins: not counted as operators, because each program has them."""


_WRITTEN = "part written"
"""A value of which a view was changed in place; no operator of PyTorch has this name."""


@cache
def _decompositions() -> dict[Any, Callable[..., Any]]:
    aten = torch.ops.aten
    further = get_decompositions([getattr(aten, name) for name in _FURTHER if hasattr(aten, name)])
    table = {**core_aten_decompositions(), **further}
    return {func: made for func, made in table.items() if _name(func) not in _WHOLE}


def _name(func: Any) -> str:
    return func.overloadpacket.__name__


@dataclass
class Traced:
    """What one forward computes."""

    outputs: list[Node]
    nodes: list[Node]
    """All values, in the order in which they were computed."""
    operators: Counter[str]
    """Operators that PyTorch dispatched, before they were taken apart -> how often; without views and constants."""
    kinds: tuple[str, ...]
    """Kinds of the inputs."""
    weights: int
    """Elements of the parameters and buffers."""

    @property
    def digest(self) -> str:
        """Name of the normal form."""
        return ex.graph_digest(self.outputs)


@dataclass
class _View:
    base: Any
    of: Callable[[Node], Node]


class Recorder(TorchDispatchMode):
    """Gives every tensor an expression while a program runs."""

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[int, Node] = {}
        self.views: dict[int, _View] = {}
        self.alive: list[Any] = []
        self.nodes: list[Node] = []
        self.operators: Counter[str] = Counter()
        self.depth = 0

    # ---- what tensors stand for --------------------------------------------------------------------------------------

    def node(self, tensor: Any) -> Node:
        """The expression of a tensor; a leaf where it was made before the recording."""
        view = self.views.get(id(tensor))
        if view is not None:
            base, hole = self.node(view.base), view.of(HOLE)
            if base.op == _WRITTEN and base.args[1].digest == hole.digest:  # pyright: ignore[reportAttributeAccessIssue, reportOptionalMemberAccess]
                return base.args[2]  # pyright: ignore[reportReturnType]
            return view.of(base)
        if id(tensor) not in self.values:
            self._keep(tensor, Node(f"leaf {kind(tensor)}"))
        return self.values[id(tensor)]

    def _keep(self, tensor: Any, node: Node) -> None:
        self.values[id(tensor)] = node
        self.nodes.append(node)
        self.alive.append(tensor)

    def assign(self, tensor: Any, node: Node) -> None:
        """`tensor` was changed in place; its base changes with it."""
        view = self.views.get(id(tensor))
        if view is None:
            self._keep(tensor, node)
            return
        hole = view.of(HOLE)
        self.assign(view.base, node if hole is HOLE else Node(_WRITTEN, (self.node(view.base), hole, node)))
        self.nodes.append(node)

    def _seen_as(self, out: Any, base: Any, of: Callable[[Node], Node], aliases: bool) -> None:
        if out is base:
            return
        if aliases:
            self.views[id(out)] = _View(base, of)
            self.alive.append(out)
        else:
            self._keep(out, of(self.node(base)))

    # ---- operators ---------------------------------------------------------------------------------------------------

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, name = kwargs or {}, _name(func)
        if len(self.nodes) > MOST_OPERATORS:
            raise Failed(f"more than {MOST_OPERATORS} operators")
        if self.depth == 0 and name not in _FREE and func.namespace != "prim":
            self.operators[public_name(name, args)] += 1
        made = _decompositions().get(func)
        if made is not None:
            self.depth += 1
            try:
                with self:
                    out = made(*args, **kwargs)
            finally:
                self.depth -= 1
            if out is not NotImplemented:
                return out
        before = [tuple(arg.shape) for arg in args if torch.is_tensor(arg)]
        out = func(*args, **kwargs)
        self._record(func, name, args, kwargs, before, out)
        return out

    def _record(self, func: Any, name: str, args: Any, kwargs: Any, before: list[Any], out: Any) -> None:
        if not any(torch.is_tensor(leaf) for leaf in tree_leaves(out)):
            return
        schema = func._schema.arguments
        writes = [arg.name for arg in schema if arg.alias_info is not None and arg.alias_info.is_write]
        aliases = not writes and any(arg.alias_info is not None for arg in schema)
        given = {arg.name: value for arg, value in zip(schema, args, strict=False)} | kwargs
        first = args[0] if args and torch.is_tensor(args[0]) else None
        if writes:
            self._changed(name, writes, given, out)
        elif first is not None and self._view(name, first, before[0], given, out, aliases):
            pass
        else:
            self._computed(name, given, out)

    def _changed(self, name: str, writes: list[str], given: dict[str, Any], out: Any) -> None:
        target = given[writes[0]]
        if name == "copy_":
            source = given["src"]
            self.assign(target, ex.expanded(self.node(source), source.shape, target.shape))
        elif name in ("zero_", "fill_"):
            value = given.get("value", 0)
            filled = self.node(value) if torch.is_tensor(value) else ex.number(value)
            self.assign(target, Node("full", (filled,)))
        else:
            plain = {key: value for key, value in given.items() if key != "out"}
            self.assign(target, expression(self.node, name.removesuffix("_"), plain, target))

    def _view(self, name: str, x: Any, shape: ex.Shape, given: dict[str, Any], out: Any, aliases: bool) -> bool:
        """Record a view or copy; False for other operators."""
        if name in _SAME or (name in ("to", "_to_copy") and kind(out) == kind(x)):
            self._seen_as(out, x, lambda node: node, aliases)
        elif name in _RESHAPES:
            self._seen_as(out, x, lambda node: ex.viewed(node, shape, out.shape), aliases)
        elif name == "expand":
            self._seen_as(out, x, lambda node: ex.expanded(node, shape, out.shape), aliases)
        elif name in ("permute", "transpose", "t"):
            order = order_of(name, len(shape), given)
            self._seen_as(out, x, lambda node: ex.permuted(node, shape, order), aliases)
        elif name == "slice" and len(shape):
            dim, start, end = given.get("dim", 0), given.get("start") or 0, given.get("end")
            last, step = shape[dim] if end is None else end, given.get("step", 1)
            self._seen_as(out, x, lambda node: ex.sliced(node, shape, dim, start, last, step), aliases)
        elif name == "select":
            dim, index = given["dim"], given["index"]
            self._seen_as(out, x, lambda node: ex.selected(node, shape, dim, index), aliases)
        elif name in ("split", "split_with_sizes", "unbind", "unsafe_split", "tensor_split", "chunk"):
            self._parts(name, x, shape, given.get("dim", 0), out, aliases)
        else:
            return False
        return True

    def _parts(self, name: str, x: Any, shape: ex.Shape, dim: int, out: Sequence[Any], aliases: bool) -> None:
        start = 0
        for one in out:
            if name == "unbind":
                self._seen_as(one, x, lambda node, at=start: ex.selected(node, shape, dim, at), aliases)
                start += 1
            else:
                end = start + one.shape[dim]
                self._seen_as(one, x, lambda node, a=start, b=end: ex.sliced(node, shape, dim, a, b), aliases)
                start = end

    def _computed(self, name: str, given: dict[str, Any], out: Any) -> None:
        if torch.is_tensor(out):
            self._keep(out, expression(self.node, name, given, out))
            return
        leaves = [leaf for leaf in tree_leaves(out) if torch.is_tensor(leaf)]
        for node, leaf in zip(several(self.node, name, given, leaves), leaves, strict=True):
            self._keep(leaf, node)


# ---- programs ----------------------------------------------------------------------------------------------------


@contained()
def trace(code: str) -> Traced:
    """The normal form of the program's forward on its own inputs. Raises Failed.

    A program of at most MOST_ELEMENTS runs, which is faster; a larger one is traced on tensors without data.
    """
    with without_data():
        model, inputs = _made(code)
        if elements([inputs, *model.parameters(), *model.buffers()]) > MOST_ELEMENTS:
            return _traced(model, inputs)
    return _traced(*_made(code))


def _made(code: str) -> tuple[torch.nn.Module, list[Any]]:
    """The program's model and inputs."""
    program = Program(code)
    inputs = program.inputs()
    return program.model(program.arguments()), inputs


def _traced(model: torch.nn.Module, inputs: list[Any]) -> Traced:
    inputs = tree_map(lambda leaf: leaf.detach() if torch.is_tensor(leaf) else leaf, inputs)
    recorder = Recorder()
    with blamed("forward"), sdpa_kernel(SDPBackend.MATH), recorder:
        out = model(*inputs)
    with blamed("the graph"):
        nodes = [recorder.node(leaf) for leaf in tree_leaves(out) if torch.is_tensor(leaf)]
    if not nodes:
        raise Failed("forward returns no tensor")
    weights = elements([*model.parameters(), *model.buffers()])
    return Traced(nodes, recorder.nodes, recorder.operators, kinds_of(inputs), weights)
