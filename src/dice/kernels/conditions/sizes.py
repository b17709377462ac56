"""Conditions on sizes: batches and lengths that the problem does not draw and the reference accepts.

Which dimensions belong together is deduced: all of one size at one place in every input (a batch), or, where the reference
refuses that, all of one size anywhere (rows and columns of a square mask). The reference is asked for each, and once
more with a size beside the own one: a single size may be accepted by accident (`x[..., :96] - x[..., 96:]` takes 97).
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_structure, tree_unflatten

from dice.kernels.conditions.condition import Condition, Source

Slot = tuple[int, int]
"""(number of the tensor among the leaves, its dimension)."""
_MOST_GROWTH = 1 << 22
"""Elements of all inputs together that growing them may give."""
_LONG = (1025, 513, 257)
"""Sizes of the conditions `long_*`: the first that is within `_MOST_OF_LONG`. Each is one more than a multiple of all smaller
blocks, warps and tiles, so a loop over it takes more than one step, and its last step has one element."""
_MOST_OF_LONG = 1 << 17
"""Elements of all inputs together. Some references take the square of it."""
_MOST_OF_SHORTER = 1 << 15
"""Elements of all inputs together, beyond which `shorter` cuts them."""
_LEAST_ROW = 256
"""Of a last dimension that `shorter` cuts: one block, whose threads all have work, so that races show."""
_MANY = 1 << 17
"""Elements of all inputs together under `many`: enough for a second step over blocks, or over their sums."""
_MOST_WORK = 1 << 23
"""Elements that the reference may make under `many`."""
_SHORT = 4
"""Of the other sizes, and of all under `short`, or one more; smaller ones grow by one, which shows whether they are free."""


def groups(leaves: list[Any]) -> Iterator[list[list[Slot]]]:
    """Dimensions that may belong together: for each size a list of groups. Each has those at one place of the tensors; where
    there are several places, the last one has all, for a reference that lets none of the others change."""
    sizes: dict[int, list[Slot]] = {}
    for index, leaf in enumerate(leaves):
        if torch.is_tensor(leaf):
            for dimension, size in enumerate(leaf.shape):
                sizes.setdefault(size, []).append((index, dimension))
    for size, slots in sizes.items():
        if size < 2:
            continue
        by_place: dict[int, list[Slot]] = {}
        for slot in slots:
            by_place.setdefault(slot[1], []).append(slot)
        yield [*by_place.values(), *([slots] if len(by_place) > 1 else [])]


def resized(leaves: list[Any], more: Callable[[int], list[Any]], slots: list[Slot], size: int) -> list[Any]:
    """The leaves with `slots` of another size: cut, or continued by further draws, `more(1)`, `more(2)`, ..."""
    result, drawn = list(leaves), dict[int, list[Any]]()
    for index, dimension in slots:
        pieces, length = [result[index]], result[index].shape[dimension]
        further = _further(drawn, more, index, result[index], dimension)
        while length < size:
            pieces.append(next(further))
            length += pieces[-1].shape[dimension]
        result[index] = torch.cat(pieces, dimension).narrow(dimension, 0, size).contiguous()
    return result


def _further(
    drawn: dict[int, list[Any]], more: Callable[[int], list[Any]], index: int, tensor: torch.Tensor, dimension: int
) -> Iterator[torch.Tensor]:
    """What may stand behind `tensor`, without end: further draws of it, kept in `drawn`, in its sizes but for one dimension.
    A draw that is larger gives several pieces."""
    for number in itertools.count(1):
        if number not in drawn:
            drawn[number] = more(number)
        yield from _pieces(drawn[number][index], tensor, dimension)


def _pieces(other: torch.Tensor, tensor: torch.Tensor, dimension: int) -> Iterator[torch.Tensor]:
    """Parts of `other` in the sizes of `tensor`, but for one dimension; where `other` is smaller, it is repeated."""
    starts = []
    for place, size in enumerate(tensor.shape):
        if place == dimension:
            starts.append(range(1))
            continue
        if other.shape[place] < size:
            repeats = [1] * other.ndim
            repeats[place] = -(-size // other.shape[place])
            other = other.repeat(repeats)
        starts.append(range(0, other.shape[place] - size + 1, max(1, size)))
    for start in itertools.product(*starts):
        ends = (first + (other if place == dimension else tensor).shape[place] for place, first in enumerate(start))
        yield other[tuple(map(slice, start, ends))]


NewSize = Callable[[list[Any], list[Slot]], int]
"""(leaves, dimensions that change together) -> their new size."""


def _from(new_size: Callable[[int], int]) -> NewSize:
    """A new size that follows from the old one alone."""
    return lambda leaves, slots: new_size(_size(leaves, slots))


def _size(leaves: list[Any], slots: list[Slot]) -> int:
    index, dimension = slots[0]
    return leaves[index].shape[dimension]


def _sized(new_size: NewSize, batch_only: bool = False) -> Callable[[Source], list[Any] | None]:
    """Inputs with every dimension that the reference lets go changed."""

    def made(source: Source) -> list[Any] | None:
        leaves = tree_leaves(source.inputs)
        if _drawn_sizes(source):
            return None
        free, leaves = _resized_where_free(source, _batches(leaves) if batch_only else groups(leaves), new_size)
        return tree_unflatten(leaves, tree_structure(source.inputs)) if free else None

    return made


def _fewer(leaves: list[Any], slots: list[Slot]) -> int:
    """As short as makes the inputs small enough, but neither short nor odd rows: those are other conditions."""
    before = _size(leaves, slots)
    rows = any(dimension == leaves[index].ndim - 1 for index, dimension in slots)
    unit, least = (32, _LEAST_ROW) if rows else (4, 4)
    wanted = -(-before * _MOST_OF_SHORTER // _elements(leaves, slots, before))
    return min(before, max(least, -(-wanted // unit) * unit))


def _shorter(source: Source) -> list[Any] | None:
    leaves = tree_leaves(source.inputs)
    return _sized(_fewer)(source) if _elements(leaves, [], 0) > _MOST_OF_SHORTER else None


def _short(size: int) -> int:
    return _SHORT + size % 2 if size > _SHORT + 1 else size + 1


def _long(place: int) -> Callable[[Source], list[Any] | None]:
    """Inputs with the free size of this number long, and the others, which cost time, short."""

    def made(source: Source) -> list[Any] | None:
        if _drawn_sizes(source):
            return None
        free, leaves = _resized_where_free(source, groups(tree_leaves(source.inputs)), _from(_short))
        if place >= len(free):
            return None
        slots = free[place]
        for after in _LONG:
            if _elements(leaves, slots, after) <= _MOST_OF_LONG:
                grown = resized(leaves, _draws(source), slots, after)
                return tree_unflatten(grown, tree_structure(source.inputs)) if _takes(source, grown) else None
        return None

    return made


def _many(source: Source) -> list[Any] | None:
    """Inputs whose first free size was doubled until they have `_MANY` elements; None where that means too much work."""
    if _elements(tree_leaves(source.inputs), [], 0) >= _MANY or _drawn_sizes(source):
        return None
    free, _ = _resized_where_free(source, groups(tree_leaves(source.inputs)), _from(lambda n: 2 * n + 1))
    if not free:
        return None
    leaves, structure, more = tree_leaves(source.inputs), tree_structure(source.inputs), _draws(source)
    while _elements(leaves, [], 0) < _MANY:
        leaves = resized(leaves, more, free[0], 2 * _size(leaves, free[0]) + 1)
        work = source.work(tree_unflatten(leaves, structure))
        if work is None or work > _MOST_WORK:
            return None
    return tree_unflatten(leaves, structure)


def _draws(source: Source) -> Callable[[int], list[Any]]:
    return functools.lru_cache(maxsize=1)(lambda number: tree_leaves(source.whole(number)))


def _drawn_sizes(source: Source) -> bool:
    """Whether the problem itself draws sizes."""
    one, other = tree_leaves(source.inputs), tree_leaves(source.other(1))
    return [_shape(leaf) for leaf in one] != [_shape(leaf) for leaf in other]


def _resized_where_free(
    source: Source, found: Iterable[list[list[Slot]]], new_size: NewSize
) -> tuple[list[list[Slot]], list[Any]]:
    """(groups of dimensions that the reference lets go, the leaves with all of them changed)."""
    leaves, more = tree_leaves(source.inputs), _draws(source)
    free: list[list[Slot]] = []
    for alternatives in found:
        accepted = False
        for number, slots in enumerate(alternatives):
            if accepted and 0 < number == len(alternatives) - 1:
                break  # all places together are for where none alone may change
            before, after = _size(leaves, slots), new_size(leaves, slots)
            if 1 <= after != before and _valid(leaves, slots, before, after):
                least = min(before, after)
                tried = [size for size in (least + 1, least - 1, least + 2) if size > 1 and size not in (before, after)]
                first = resized(leaves, more, slots, after)
                others = (resized(leaves, more, slots, size) for size in tried)
                if _takes(source, first) and any(_takes(source, other) for other in others):
                    leaves, accepted = first, True
                    free.append(slots)
    return free, leaves


def _takes(source: Source, leaves: list[Any]) -> bool:
    return source.accepts(tree_unflatten(leaves, tree_structure(source.inputs)))


def _shape(leaf: Any) -> Any:
    return tuple(leaf.shape) if torch.is_tensor(leaf) else leaf


def _batches(leaves: list[Any]) -> Iterator[list[list[Slot]]]:
    """The first dimension, where all tensors have the same one: then 1 is a batch and nothing is broadcast."""
    tensors = [(index, leaf) for index, leaf in enumerate(leaves) if torch.is_tensor(leaf)]
    if tensors and all(leaf.ndim > 1 and leaf.shape[0] == tensors[0][1].shape[0] for _, leaf in tensors):
        yield [[(index, 0) for index, _ in tensors]]


def _elements(leaves: list[Any], slots: list[Slot], size: int) -> int:
    """Of all leaves together, if `slots` had this size."""
    shapes = {index: list(leaf.shape) for index, leaf in enumerate(leaves) if torch.is_tensor(leaf)}
    for index, dimension in slots:
        shapes[index][dimension] = size
    return sum(map(math.prod, shapes.values()))


def _valid(leaves: list[Any], slots: list[Slot], before: int, after: int) -> bool:
    """Whether the change keeps the inputs valid: no integer may point behind a new end, and memory has a limit."""
    tensors = [leaf for leaf in leaves if torch.is_tensor(leaf)]
    if after > before:
        return _elements(leaves, slots, after) <= _MOST_GROWTH
    batch = {dimension for _, dimension in slots} == {0} and len(slots) == len(tensors)
    integers = [leaf for leaf in tensors if not leaf.is_floating_point() and not leaf.is_complex() and leaf.numel()]
    return batch or all(int(leaf.max()) < after for leaf in integers if leaf.dtype is not torch.bool)


SHORTER = Condition(
    "shorter",
    "inputs of over 32,768 elements cut; where the kernel is right, the conditions that follow start from these",
    _shorter,
    may_refuse=True,
)
SIZES = [
    Condition("one_more", "every free size one larger", _sized(_from(lambda n: n + 1)), may_refuse=True),
    Condition(
        "one_less", "every free size one smaller", _sized(_from(lambda n: n - 1 if n > 2 else n)), may_refuse=True
    ),
    Condition(
        "half", "every free size an odd number near its half", _sized(_from(lambda n: n // 2 | 1)), may_refuse=True
    ),
    Condition("short", "every free size 4 or 5; those up to 5 one larger", _sized(_from(_short)), may_refuse=True),
    Condition(
        "few",
        "every free size 2 or 3; those become 3 and 2",
        _sized(_from(lambda n: 5 - n if n in (2, 3) else 2 + n % 2)),
        may_refuse=True,
    ),
    Condition(
        "twice",
        "every free size twice as large and one more",
        _sized(_from(lambda n: 2 * n + 1)),
        may_refuse=True,
        ties=True,
    ),
    *(
        Condition(
            f"long_{place + 1}",
            f"free size number {place + 1} is 257 to 1,025, the others at most 6",
            _long(place),
            may_refuse=True,
        )
        for place in range(3)
    ),
    Condition("many", "first free size so large that inputs have 131,072 elements", _many, may_refuse=True, ties=True),
    Condition("batch_of_one", "a batch of one", _sized(_from(lambda n: 1), batch_only=True), may_refuse=True),
]
