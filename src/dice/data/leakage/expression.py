"""What a program computes, as an expression over its inputs and parameters: the normal form of its operator graph.

A value is a tensor without its dimensions of size one, so `unsqueeze`, `keepdim` and a batch of one change nothing, and
dimensions are counted from the last one. Left out: sizes, dtypes and layouts; which leaf is an input and which a parameter;
and floating-point numbers, which are hyper-parameters (`ANY_NUMBER`). Kept: small whole numbers, exponents, strides, axes.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

ANY_NUMBER = "number"
"""Stands for a hyper-parameter."""
LARGEST_KEPT = 16
"""Whole numbers up to this say what is computed (a stride, a scale of two); larger ones are sizes or hyper-parameters."""
NEAR = 8
"""Positions this close to an end of a dimension are counted from there; others are shares of its size."""
COMMUTATIVE = frozenset(
    [
        "add",
        "mul",
        "maximum",
        "minimum",
        "eq",
        "ne",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "logical_and",
        "logical_or",
        "logical_xor",
    ]
)
_IDENTITY = {"add": 0, "mul": 1}
"""Operand that changes nothing."""

Attribute = int | str | None | tuple["Attribute", ...]
Shape = Sequence[int]


@dataclass(frozen=True, eq=False, slots=True)
class Node:
    """One operator on values, or a leaf. Nodes with equal digests compute the same from leaves of the same kinds."""

    op: str
    args: tuple[Node | Attribute, ...] = ()
    extent: tuple[int, ...] = ()
    """Size of the source of a view, to undo it; not part of the digest."""
    digest: str = field(init=False, default="")

    def __post_init__(self) -> None:
        args = [arg.digest if isinstance(arg, Node) else repr(arg) for arg in self.args]
        object.__setattr__(self, "digest", _operator_digest(self.op, args))

    @property
    def children(self) -> list[Node]:
        """Operands that are values; of a commutative operator in canonical order."""
        nodes = [arg for arg in self.args if isinstance(arg, Node)]
        return sorted(nodes, key=lambda node: node.digest) if self.op in COMMUTATIVE else nodes


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _operator_digest(op: str, args: list[str]) -> str:
    """Name of an operator on arguments of these names."""
    return _digest("(".join([op, *(sorted(args) if op in COMMUTATIVE else args)]))


HOLE = Node("hole")
"""What a view is a view of, where only the kind of view matters."""


def number(value: float) -> Attribute:
    """A scalar of a program: itself where it is a small whole number, else ANY_NUMBER."""
    if isinstance(value, bool):
        return int(value)
    whole = math.isfinite(value) and value == int(value) and abs(value) <= LARGEST_KEPT
    return int(value) if whole else ANY_NUMBER if math.isfinite(value) else str(value)


def extent(shape: Shape) -> tuple[int, ...]:
    """A shape without ones."""
    return tuple(size for size in shape if size != 1)


def axis(shape: Shape, dim: int) -> int:
    """Dimension `dim`, counted from the last one (-1) without those of size one; 0 where it is one of these."""
    dim %= max(1, len(shape))
    return -len(extent(shape[dim:])) if len(shape) and shape[dim] != 1 else 0


def axes(shape: Shape, dims: Sequence[int] | None) -> Attribute:
    """Dimensions in order; `all` where no further one is left (and for none or an empty list, which mean all)."""
    found = {axis(shape, dim) for dim in dims or range(len(shape))} - {0}
    return "all" if len(found) == len(extent(shape)) else tuple(sorted(found))


def position(index: int, size: int) -> Attribute:
    """A place in a dimension: from the nearer of its ends where that is near, whatever the size, else as a share."""
    if index < size - index and index <= NEAR:
        return index
    return ("end", size - index) if size - index <= NEAR else str(Fraction(index, size))


# ---- values ------------------------------------------------------------------------------------------------------


def viewed(source: Node, before: Shape, after: Shape) -> Node:
    """`source` in another shape of as many elements."""
    old, new = extent(before), extent(after)
    if source.op == "view":
        old, source = source.extent, source.args[0]  # pyright: ignore[reportAssignmentType]
    return source if old == new else Node("view", (source, _groups(old, new)), old)


def _groups(old: Shape, new: Shape) -> Attribute:
    """Which dimensions are merged and split: (how many before, how many after) for each group, equal ones left out."""
    found: list[tuple[int, int]] = []
    i = j = 0
    while i < len(old) or j < len(new):
        start, left, right = (i, j), 1, 1
        while i == start[0] or j == start[1] or left != right:
            if (left <= right or j == len(new)) and i < len(old):
                left, i = left * old[i], i + 1
            elif j < len(new):
                right, j = right * new[j], j + 1
            else:
                break
        found.append((i - start[0], j - start[1]))
    return tuple(found)


def expanded(source: Node, before: Shape, after: Shape) -> Node:
    """`source` repeated along dimensions of size one."""
    spread = spread_of(before, after)
    if source.op == "full":
        return source
    return Node("expand", (source, spread)) if spread else source


def spread_of(shape: Shape, out: Shape) -> Attribute:
    """The axes of `out` along which a tensor of `shape` is repeated."""
    padded = (1,) * (len(out) - len(shape)) + tuple(shape)
    return tuple(axis(out, dim) for dim, size in enumerate(padded) if size == 1 and out[dim] != 1)


def permuted(source: Node, shape: Shape, order: Sequence[int]) -> Node:
    """`source` with its dimensions in another order."""
    kept = [axis(shape, dim) for dim in order if axis(shape, dim)]
    if source.op == "permute":
        inner = dict(source.args[1])  # pyright: ignore[reportArgumentType, reportCallIssue]
        source, kept = source.args[0], [inner.get(one, one) for one in kept]  # pyright: ignore[reportArgumentType, reportAssignmentType, reportCallIssue]
    moved = tuple((place - len(kept), was) for place, was in enumerate(kept) if place - len(kept) != was)
    return Node("permute", (source, moved)) if moved else source


def sliced(source: Node, shape: Shape, dim: int, start: int, end: int, step: int = 1) -> Node:
    """Elements `start` to `end` of dimension `dim`."""
    size = shape[dim]
    start, end = (min(max(one + size if one < 0 else one, 0), size) for one in (start, end))
    if (start, end, step) == (0, size, 1):
        return source
    if end - start == 1:
        return selected(source, shape, dim, start)
    return Node("slice", (source, axis(shape, dim), position(start, size), position(end, size), step))


def selected(source: Node, shape: Shape, dim: int, index: int) -> Node:
    """Element `index` of dimension `dim`."""
    if shape[dim] == 1:
        return source
    return Node("select", (source, axis(shape, dim), position(index % shape[dim], shape[dim])))


def power(base: Node | Attribute, exponent: float) -> Node | Attribute:
    """`base ** exponent`; exponents are kept exactly."""
    if not isinstance(base, Node):
        return ANY_NUMBER
    if base.op == "expand":
        inner = power(base.args[0], exponent)
        return Node("expand", (inner, base.args[1]))
    if base.op == "power":
        return power(base.args[0], float(base.args[1]) * exponent)  # pyright: ignore[reportArgumentType]
    return base if exponent == 1 else Node("power", (base, f"{exponent:g}"))


def clamped(x: Node | Attribute, low: Node | Attribute, high: Node | Attribute) -> Node | Attribute:
    """`x` between two bounds; None: no bound."""
    if isinstance(x, Node) and x.op == "clamp":
        inner, lower, upper = x.args
        if (low is None or lower is None) and (high is None or upper is None):
            return Node("clamp", (inner, lower if low is None else low, upper if high is None else high))
    return Node("clamp", (x, low, high))


def combined(op: str, *args: Node | Attribute) -> Node | Attribute:
    """A commutative operator of two operands: without an operand that changes nothing; `x * x` is a power."""
    kept = [arg for arg in args if arg != _IDENTITY.get(op)]
    if len(kept) == 1:
        return kept[0]
    left, right = kept
    if not isinstance(left, Node) and not isinstance(right, Node):
        return ANY_NUMBER
    if op == "mul" and isinstance(left, Node) and isinstance(right, Node) and left.digest == right.digest:
        return power(left, 2) if same_leaves(left, right) else Node(op, (left, right))
    return Node(op, (left, right))


# ---- graphs ------------------------------------------------------------------------------------------------------


def postorder(roots: Sequence[Node]) -> Iterator[Node]:
    """Every node once, operands first."""
    done: set[int] = set()
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        node, ready = stack.pop()
        if ready:
            yield node
        elif id(node) not in done:
            done.add(id(node))
            stack.append((node, True))
            stack += [(child, False) for child in reversed(node.children)]


def same_leaves(left: Node, right: Node) -> bool:
    """Whether two nodes of one digest read the same leaves in the same places."""
    return all(
        a is b
        for a, b in zip(postorder([left]), postorder([right]), strict=False)
        if a.op.startswith("leaf") or b.op.startswith("leaf")
    )


def graph_digest(outputs: Sequence[Node]) -> str:
    """One name for what `outputs` compute together: equal where two graphs differ only in the names of their leaves."""
    numbers: dict[int, int] = {}
    names: dict[int, str] = {}
    for node in postorder(outputs):
        if node.op.startswith("leaf"):
            names[id(node)] = _digest(f"{node.op} {numbers.setdefault(id(node), len(numbers))}")
        else:
            args = [names[id(arg)] if isinstance(arg, Node) else repr(arg) for arg in node.args]
            names[id(node)] = _operator_digest(node.op, args)
    return _digest(" ".join(names[id(node)] for node in outputs))


def contains(node: Node, pattern: Node, bound: dict[int, Node] | None = None) -> bool:
    """Whether `node` is an instance of `pattern`: leaves stand for any value, axes and views for any other."""
    bound = {} if bound is None else bound
    if pattern.op.startswith("leaf"):
        return bound.setdefault(id(pattern), node).digest == node.digest
    if node.op != pattern.op:
        return False
    if _numbers(node) != _numbers(pattern):
        return False
    ours, theirs = node.children, pattern.children
    if len(ours) != len(theirs):
        return False
    orders = [ours, ours[::-1]] if node.op in COMMUTATIVE and len(ours) == 2 else [ours]
    for order in orders:
        trial = dict(bound)
        if all(contains(one, other, trial) for one, other in zip(order, theirs, strict=True)):
            bound.update(trial)
            return True
    return False


def _numbers(node: Node) -> list[Node | Attribute]:
    """The arguments that are scalars of the computation, not axes or patterns of dimensions."""
    return [arg for arg in node.args if not isinstance(arg, Node | tuple)] if node.op in _WITH_NUMBERS else []


_WITH_NUMBERS = COMMUTATIVE | {"power", "clamp", "lt", "le", "where", "full", "pow"}
"""Operators whose plain arguments are all scalars."""
