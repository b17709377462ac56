"""Which steps of the reference PyTorch did for a candidate, told by values.

An operator that takes values of the reference (inputs, weights, results of its steps) and gives the result of one of its
steps did that step and all between: a recurrence, a pooling, a distance that the reference writes out, whatever the
operator is called. Values count as the same also where a kernel has put a gain or a shift on what the operator takes
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
    whole: int = -1
    """The one of them that is larger than the others, as the rows of a norm beside their means; -1 without one."""
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


@dataclass(frozen=True)
class _Origin:
    """What a value was made from by PyTorch."""

    places: frozenset[int] = frozenset()
    """Steps of the reference that give it, or what it was made from."""
    has_gain: bool = False
    """A kernel has put a gain or a shift on some of that."""


def steps_done(reference: Reference, candidate: Candidate) -> dict[int, bool]:
    """Places of the reference's steps that the candidate's operators did; False where one is only known by a result that
    is not the same, but for gains and shifts."""
    values, done = _Values(reference, candidate), dict[int, bool]()
    numbers: _Origin | None = _Origin()  # of those that Python has read
    for call in candidate.calls:
        origins = [values.origin(row) for row in call.takes] + [numbers] * call.takes_number
        origin = _joined(origins) if call.is_pytorchs else None
        if call.reads:
            numbers = _joined([numbers, origin])
        for row in call.gives if origin is not None else ():
            last, is_equal = values.earliest(row)
            if origin and (is_equal or origin.has_gain):
                for place in _between(reference, origin.places, last):
                    done[place] = done.get(place, False) or place != last or is_equal
        values.add(call.gives, origin)
    return done


def _joined(origins: Sequence[_Origin | None]) -> _Origin | None:
    """All of them; None where one is not known."""
    known = [origin for origin in origins if origin is not None]
    if len(known) < len(origins):
        return None
    return _Origin(frozenset[int]().union(*(o.places for o in known)), any(o.has_gain for o in known))


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
        self._origins: list[_Origin | None] = [_Origin()] * candidate.given

    def add(self, rows: Sequence[int], origin: _Origin | None) -> None:
        """Values that an operator made; `origin` None: from what a kernel made."""
        own = [row for row in rows if row >= 0]
        self._rows += own
        self._origins += [origin] * len(own)

    def origin(self, row: int) -> _Origin | None:
        """What a value was made from; None: a kernel made it, of its own."""
        if row < 0:
            return None
        one = self._prints[row]
        same = equal_prints(self._prints[self._rows], one).nonzero().reshape(-1).tolist()
        made = [origin for origin in (self._origins[place] for place in same) if origin is not None]
        if made:
            return made[0]
        if equal := self._matching(equal_prints(self._reference.prints, one)):
            return _Origin(frozenset(equal))
        like = frozenset() if same else frozenset(self._matching(like_prints(self._reference.prints, one)))
        is_gain = bool(like - {_GIVEN}) or (bool(like) and self._changed[row] in (0, 1))
        return _Origin(like, has_gain=True) if is_gain else None

    def earliest(self, row: int) -> tuple[int, bool]:
        """The first step that gives a value, and whether its result is the same as it stands; -1 without such a step."""
        if row < 0:
            return _GIVEN, False
        one = self._prints[row]
        for compare in (equal_prints, like_prints):
            rows = compare(self._reference.prints, one).nonzero().reshape(-1).tolist()
            whole = [place for row in rows for place in self._places.get(row, ()) if self._is_whole(place, row)]
            if whole:
                return min(whole), compare is equal_prints
        return _GIVEN, False

    def _is_whole(self, place: int, row: int) -> bool:
        """Whether the row is an input, or all that a step gives."""
        step = None if place == _GIVEN else self._reference.steps[place]
        return step is None or (step.whole == row and not step.is_view)

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
