"""Whether the memory that kernels are led to follows each element of an input by itself.

A product, a sum or a softmax mixes many elements of an input into one number. Where kernels do that, they are led to numbers
of which each follows one element: the input itself, a copy, a transpose, a cast. Where somebody else has done it before,
every number that they are led to follows many elements already, in whatever code it is written.

A kernel may also hand the elements to somebody else, in a code, and take the mixed numbers back. Then the memory that a later
launch is led to follows two elements at once although none that an earlier launch left did.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from dice.kernels.candidate.addresses import OF_ANYTHING, are_addresses

_FORWARDS = 4
_MANY = 8
"""Words from which on half of them say that two elements are mixed: in a code some stay the same by chance."""
_LEAST_ALIKE = 0.25
"""Share of the words of a piece that one element of an input does not change."""
_LEAST_CALM = 0.9
"""Share of the words of a piece that are the same for the same inputs, where words are counted."""
_SLACK = 64
"""Bytes by which a block of the heap may be longer another time; pieces no longer than that are arguments themselves."""
_BEHIND = 32
"""Bytes at the end of a block that may belong to nothing."""


@dataclass(frozen=True)
class Mixture:
    """Pieces of memory by how they follow two elements of an input."""

    apart: int = 0
    """Pieces of which one part follows the first element alone and another one the second, also of two pieces together."""
    mixed: int = 0
    """Pieces that follow both elements in the same places."""
    sided: int = 0
    """Pieces that follow one of the elements, where nothing follows the other: a number may be too coarse for a change."""
    shared: int = 0
    """Words that follow the two elements in different ways, of all pieces."""
    lost: int = 0
    """Pieces of the first forward that another one has not, or has with other content altogether."""


@dataclass(frozen=True)
class Step:
    """What the arguments of one launch were and pointed to before it, and what was other memory after it."""

    before: list[torch.Tensor]
    after: list[torch.Tensor]
    cut: bool = False
    """Whether it may have left more than is in `after`."""


def staged(forwards: Sequence[Sequence[Step]]) -> int | None:
    """How many words follow both elements in the memory that a launch is led to, where none of what earlier launches left
    does, as far as can be told; None where one may have left more. `forwards`: as `mixture` takes them, with kernels, by
    launch."""
    if len({len(steps) for steps in forwards}) != 1:
        return 0
    for steps in zip(*forwards, strict=True):
        before = mixture([step.before for step in steps])
        if before is not None and before.shared:
            return before.shared
        after = mixture([step.after for step in steps])
        if after is not None and (after.shared or after.mixed or after.lost):
            return 0
        if any(step.cut for step in steps):
            return None
    return 0


def mixture(forwards: Sequence[Sequence[torch.Tensor]]) -> Mixture | None:
    """How memory follows two elements of an input; None where the kernels are led to none.

    forwards: pieces (uint8, any length) of four forwards without kernels: twice of the same inputs, then with the first
    element changed, then with the second one.
    """
    if len(forwards) != _FORWARDS or not forwards[0]:
        return None
    found = [_same_pieces(forwards[0], others) for others in forwards[1:]]
    alone, mixed, shared, lost = [0, 0], 0, 0, 0
    for pieces in zip(forwards[0], *found, strict=True):
        present = [piece for piece in pieces if piece is not None]
        if len(present) < _FORWARDS:
            lost += 1
            continue
        base, again, first, second = _words(present)
        if len(base) > _SLACK // 4 and not all(_alike(base, words) for words in (again, first, second)):
            lost += 1
            continue
        steady = (base == again) & ~torch.stack([_addresses(words) for words in (base, first, second)]).any(0)
        by_first, by_second = steady & (base != first), steady & (base != second)
        fewer, both = min(int(by_first.sum()), int(by_second.sum())), int((by_first & by_second).sum())
        shared += int((by_first & by_second & (first != second)).sum()) if _calm(base, again) else 0
        if fewer and (both == fewer or (fewer >= _MANY and 2 * both >= fewer)):
            mixed += 1
        else:
            alone[0] += bool((by_first & ~by_second).any())
            alone[1] += bool((by_second & ~by_first).any())
    return Mixture(min(alone), mixed, 0 if min(alone) else max(alone), shared, lost)


def _same_pieces(pieces: Sequence[torch.Tensor], others: Sequence[torch.Tensor]) -> list[torch.Tensor | None]:
    """For each piece the one of about its size that comes next among `others`. What lies behind a word that only looks like
    an address is not there every time."""
    found: list[torch.Tensor | None] = []
    begin = 0
    for size in (piece.numel() for piece in pieces):
        slack = _SLACK if size > _SLACK else 0
        at = next((i for i in range(begin, len(others)) if abs(others[i].numel() - size) <= slack), None)
        found.append(None if at is None else others[at])
        begin = begin if at is None else at + 1
    return found


def _words(pieces: list[torch.Tensor]) -> list[torch.Tensor]:
    """What the pieces have in common, as words of four bytes, an even number of them, filled up with zeros."""
    size = min(piece.numel() for piece in pieces)
    size -= _BEHIND if size > _SLACK else 0
    return [torch.nn.functional.pad(piece[:size], (0, -size % 8)).view(torch.int32) for piece in pieces]


def _alike(base: torch.Tensor, words: torch.Tensor) -> bool:
    """Whether they may be the same piece: two pieces of one size may have taken each other's place."""
    return bool((base == words).double().mean() >= _LEAST_ALIKE)


def _calm(base: torch.Tensor, again: torch.Tensor) -> bool:
    """Whether a piece is nearly the same for the same inputs: one with freed memory in it may be anything another time."""
    return bool((base == again).double().mean() >= _LEAST_CALM)


def _addresses(words: torch.Tensor) -> torch.Tensor:
    """Which words (four bytes) are halves of addresses."""
    return are_addresses(words.view(torch.int64), OF_ANYTHING).repeat_interleave(2)
