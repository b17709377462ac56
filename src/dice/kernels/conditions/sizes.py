"""Conditions on sizes: batches and lengths that the problem does not draw and the reference accepts.

Which dimensions belong together is deduced: all of one size at one place in every input (a batch), or, where the reference
refuses that, all of one size anywhere (rows and columns of a square mask). The reference is asked for each, and once
more with a size beside the own one: a single size may be accepted by accident (`x[..., :96] - x[..., 96:]` takes 97).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_structure, tree_unflatten

from dice.kernels.conditions.condition import Condition, Source

Slot = tuple[int, int]
"""(number of the tensor among the leaves, its dimension)."""
_MOST_GROWTH = 1 << 22
"""Elements of all inputs together that growing them may give."""


def groups(leaves: list[Any]) -> Iterator[list[list[Slot]]]:
    """Dimensions that may belong together. Of each list of alternatives, those behind the first are for a reference that
    refuses the ones before."""
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


def resized(leaves: list[Any], more: list[Any], slots: list[Slot], size: int) -> list[Any]:
    """The leaves with `slots` of another size: cut, or continued by `more`, leaves of the same shapes."""
    result = list(leaves)
    for index, dimension in slots:
        tensor, other = result[index], more[index]
        while tensor.shape[dimension] < size:
            tensor = torch.cat([tensor, _fitting(other, tensor, dimension)], dimension)
        result[index] = tensor.narrow(dimension, 0, size).contiguous()
    return result


def _fitting(other: torch.Tensor, tensor: torch.Tensor, dimension: int) -> torch.Tensor:
    """`other` in the sizes of `tensor`, but for one dimension."""
    for place, size in enumerate(tensor.shape):
        if place != dimension and other.shape[place] != size:
            repeats = [1] * other.ndim
            repeats[place] = -(-size // other.shape[place])
            other = other.repeat(repeats).narrow(place, 0, size)
    return other


def _sized(new_size: Callable[[int], int], batch_only: bool = False) -> Callable[[Source], list[Any] | None]:
    """Inputs with every dimension that the reference lets go changed."""

    def made(source: Source) -> list[Any] | None:
        more = tree_leaves(source.other(1))
        leaves, found = tree_leaves(source.inputs), False
        if [_shape(leaf) for leaf in leaves] != [_shape(leaf) for leaf in more]:
            return None  # the problem itself draws sizes
        for alternatives in _batches(leaves) if batch_only else groups(leaves):
            accepted = False
            for number, slots in enumerate(alternatives):
                if accepted and 0 < number == len(alternatives) - 1:
                    break  # all places together are for where none alone may change
                index, dimension = slots[0]
                before = leaves[index].shape[dimension]
                after = new_size(before)
                if 1 <= after != before and _valid(leaves, slots, before, after):
                    tried = [size for size in (before + 1, before - 1, before + 2) if size > 1 and size != after]
                    first = resized(leaves, more, slots, after)
                    others = (resized(leaves, more, slots, size) for size in tried)
                    if _takes(source, first) and any(_takes(source, other) for other in others):
                        leaves, accepted = first, True
            found = found or accepted
        return tree_unflatten(leaves, tree_structure(source.inputs)) if found else None

    return made


def _takes(source: Source, leaves: list[Any]) -> bool:
    return source.accepts(tree_unflatten(leaves, tree_structure(source.inputs)))


def _shape(leaf: Any) -> Any:
    return tuple(leaf.shape) if torch.is_tensor(leaf) else leaf


def _batches(leaves: list[Any]) -> Iterator[list[list[Slot]]]:
    """The first dimension, where all tensors have the same one: then 1 is a batch and nothing is broadcast."""
    tensors = [(index, leaf) for index, leaf in enumerate(leaves) if torch.is_tensor(leaf)]
    if tensors and all(leaf.ndim > 1 and leaf.shape[0] == tensors[0][1].shape[0] for _, leaf in tensors):
        yield [[(index, 0) for index, _ in tensors]]


def _valid(leaves: list[Any], slots: list[Slot], before: int, after: int) -> bool:
    """Whether the change keeps the inputs valid: no integer may point behind a new end, and memory has a limit."""
    tensors = [leaf for leaf in leaves if torch.is_tensor(leaf)]
    if after > before:
        elements = sum(leaf.numel() for leaf in tensors)
        return elements * (after / before) ** max(1, len({dimension for _, dimension in slots})) <= _MOST_GROWTH
    batch = {dimension for _, dimension in slots} == {0} and len(slots) == len(tensors)
    integers = [leaf for leaf in tensors if not leaf.is_floating_point() and not leaf.is_complex() and leaf.numel()]
    return batch or all(int(leaf.max()) < after for leaf in integers if leaf.dtype is not torch.bool)


SIZES = [
    Condition("one_more", "every free size one larger", _sized(lambda n: n + 1), may_refuse=True),
    Condition("one_less", "every free size one smaller", _sized(lambda n: n - 1 if n > 2 else n), may_refuse=True),
    Condition("half", "every free size an odd number near its half", _sized(lambda n: n // 2 | 1), may_refuse=True),
    Condition(
        "twice", "every free size twice as large and one more", _sized(lambda n: 2 * n + 1), may_refuse=True, ties=True
    ),
    Condition("batch_of_one", "a batch of one", _sized(lambda n: 1, batch_only=True), may_refuse=True),
]
