"""Which steps of the reference PyTorch did for a candidate, told by values.

An operator that takes values of the reference (inputs, weights, results of its steps) and gives the result of one of its
steps did that step and all between: a recurrence, a pooling, a distance that the reference writes out, whatever the
operator is called. Values count as the same also where a kernel has put a gain or a shift on them
(`dice.kernels.likeness.prints`); on an input only if one element of it changes one element, since a gain may be a norm.
In doubt, PyTorch did less: what it gives is the result of the earliest step with these values, what it takes may be that of
the latest, and an operator that takes what only a kernel knows did nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from dice.kernels.likeness.prints import WIDTH, equal_prints, like_prints

_GIVEN = -1
"""In the place of a step, for inputs and weights."""


@dataclass(frozen=True)
class Step:
    """One call of an operator by the reference."""

    after: frozenset[int]
    """Places of the steps that wrote what it takes."""
    prints: tuple[int, ...] = ()
    """Rows of the reference's prints: its results."""
    is_view: bool = False
    """It gives a part of what the steps before wrote."""


@dataclass(frozen=True)
class Reference:
    """What the reference did in one forward."""

    steps: Sequence[Step]
    prints: torch.Tensor
    """fp64 [n, WIDTH]; the first `given` of inputs and weights."""
    given: int

    def ends(self, places: frozenset[int]) -> set[int]:
        """Steps that need not be done where the results of `places` are there."""
        known = {place for place in places if place != _GIVEN}
        return known.union(*(self.steps[place].after for place in known if self.steps[place].is_view))


@dataclass(frozen=True)
class Call:
    """One call of an operator by the candidate; rows of its prints, -1 for a value without."""

    takes: tuple[int, ...]
    gives: tuple[int, ...]
    is_pytorchs: bool = True
    takes_number: bool = False
    """It computes with a number of Python's."""
    reads: bool = False
    """It makes a number of Python's."""


@dataclass(frozen=True)
class Candidate:
    """What the candidate's operators did in one forward."""

    calls: Sequence[Call] = ()
    prints: torch.Tensor = field(default_factory=lambda: torch.empty(0, WIDTH, dtype=torch.float64))
    """fp64 [n, WIDTH]; the first `given` of inputs and weights."""
    given: int = 0
    changed: Sequence[int] = ()
    """Elements of each value that change with one element of each input; -1: not known."""


def steps_done(reference: Reference, candidate: Candidate) -> dict[int, bool]:
    """Places of the reference's steps that the candidate's operators did; False where one is only known by a result that
    is not the same, but for gains and shifts."""
    values, done = _Values(reference, candidate), dict[int, bool]()
    numbers: frozenset[int] | None = frozenset[int]()  # where those that Python has read come from
    for call in candidate.calls:
        sources = [values.sources(row) for row in call.takes] + [numbers] * call.takes_number
        origin = _joined(sources) if call.is_pytorchs else None
        if call.reads:
            numbers = _joined([numbers, origin])
        for row in call.gives if origin is not None else ():
            last, is_equal = values.earliest(row)
            for place in _between(reference, origin or frozenset(), last):
                done[place] = done.get(place, False) or place != last or is_equal
        values.add(call.gives, origin)
    return done


def _joined(sources: Sequence[frozenset[int] | None]) -> frozenset[int] | None:
    """All of them; None where one is not known."""
    known = [source for source in sources if source is not None]
    return frozenset[int]().union(*known) if len(known) == len(sources) else None


class _Values:
    """What is known of the candidate's values."""

    def __init__(self, reference: Reference, candidate: Candidate) -> None:
        self._reference = reference
        self._prints, self._changed = candidate.prints, candidate.changed
        self._places: dict[int, list[int]] = {row: [_GIVEN] for row in range(reference.given)}
        for place, step in enumerate(reference.steps):
            for row in step.prints:
                self._places.setdefault(row, []).append(place)
        self._rows = list(range(candidate.given))
        self._origins: list[frozenset[int] | None] = [frozenset[int]()] * candidate.given

    def add(self, rows: Sequence[int], origin: frozenset[int] | None) -> None:
        """Values that an operator made from those of `origin`; None: from what a kernel made."""
        own = [row for row in rows if row >= 0]
        self._rows += own
        self._origins += [origin] * len(own)

    def sources(self, row: int) -> frozenset[int] | None:
        """Steps of the reference whose results a value is, or was made from by PyTorch; None: a kernel made it."""
        if row < 0:
            return None
        one = self._prints[row]
        same = equal_prints(self._prints[self._rows], one).nonzero().reshape(-1).tolist()
        made = [origin for origin in (self._origins[place] for place in same) if origin is not None]
        if made:
            return made[0]
        if equal := self._matching(equal_prints(self._reference.prints, one)):
            return frozenset(equal)
        if same:
            return None
        like = frozenset(self._matching(like_prints(self._reference.prints, one)))
        return like if like - {_GIVEN} or (like and self._changed[row] in (0, 1)) else None

    def earliest(self, row: int) -> tuple[int, bool]:
        """The first step that gives a value, and whether its result is the same as it stands; -1 without such a step."""
        if row < 0:
            return _GIVEN, False
        one = self._prints[row]
        for compare in (equal_prints, like_prints):
            found = self._matching(compare(self._reference.prints, one))
            whole = [place for place in found if place == _GIVEN or not self._reference.steps[place].is_view]
            if whole:
                return min(whole), compare is equal_prints
        return _GIVEN, False

    def _matching(self, matches: torch.Tensor) -> list[int]:
        return [place for row in matches.nonzero().reshape(-1).tolist() for place in self._places.get(row, [])]


def _between(reference: Reference, sources: frozenset[int], last: int) -> set[int]:
    """The steps that the result of `last` needs beside those of `sources`; none for an input."""
    ends, found = reference.ends(sources), set[int]()
    waiting = [last] if last != _GIVEN else []
    while waiting:
        place = waiting.pop()
        if place not in found and place not in ends:
            found.add(place)
            waiting += reference.steps[place].after
    return found
