"""The search for one answer in many pieces of memory."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from dice.kernels.likeness.distribution import Distribution, may_be_rearranged
from dice.kernels.likeness.layouts import Reading, layouts, orders, read, readings
from dice.kernels.likeness.places import FEW, Line, Places
from dice.kernels.records.evidence import Form

_LEAST_SHARE = 0.05
_WIDE = (torch.float32, torch.float64)
_WHOLE = (torch.int32, torch.int64, torch.float32)
"""Types of memory in which a transformed answer of numbers with a point, or of whole ones, is looked for."""
_MOST_COLUMNS = 24
"""Pieces that are tried as terms of a sum."""
_PLACES_A_TERM = 8
"""Places for each of them, or a sum would fit by chance."""
_LARGEST_TERM = 1e30
_LEAST_TERM = 1e-3
"""Size of a term, relative to the answer's, below which it is not needed."""
_SAME_TERM = 1e-6
"""Relative size of what tells two terms apart."""
_NO_SUM_NEEDED = 0.5
"""Share from which on no sum is looked for: the answer is there in a simpler form."""
_MANY = 1024
"""Places from which on a few of them are looked at first."""


def find_answer(answer: torch.Tensor, pieces: Iterable[torch.Tensor]) -> dict[Form, float]:
    """Largest share of `answer` in `pieces`, by form; forms of which nothing was found are left out.

    answer: numbers of any shape and dtype. pieces: contiguous uint8 memory of any length, on the answer's device. Several
    pieces together may hold the answer as `equal`, `scaled` or `combined`; other forms are looked for in each alone.
    """
    search = Search(answer)
    for piece in pieces:
        search.look(piece)
    return search.found()


def find_outputs(outputs: Any, pieces: Iterable[torch.Tensor]) -> dict[Form, float]:
    """`find_answer` for all tensors of a pytree, each weighted by its number of elements; pieces on the CPU."""
    leaves = [leaf.detach().cpu() for leaf in tree_leaves(outputs) if isinstance(leaf, torch.Tensor)]
    pieces = list(pieces)
    return weighted([(leaf, find_answer(leaf, pieces)) for leaf in leaves])


def weighted(found: list[tuple[torch.Tensor, dict[Form, float]]]) -> dict[Form, float]:
    """Shares of all outputs together, from those of each."""
    whole = sum(leaf.numel() for leaf, _ in found)
    shares: dict[Form, float] = {}
    for leaf, own in found:
        for form, share in own.items():
            shares[form] = shares.get(form, 0.0) + share * leaf.numel() / whole
    return shares


def larger(left: dict[Form, float], right: dict[Form, float]) -> dict[Form, float]:
    """The larger share of both, by form."""
    return {form: max(left.get(form, 0.0), right.get(form, 0.0)) for form in left.keys() | right.keys()}


class _Found:
    """Which places of an answer, or of what it was transformed to, were found so far."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self._sample = places.sample() if len(places.index) >= _MANY else None
        self._covered = torch.zeros_like(places.values, dtype=torch.bool)
        self._lines: list[Line] = []

    def compare(self, reading: Reading, index: torch.Tensor) -> None:
        """Compare the answer with what stands at `index`."""
        if self._sample is not None:  # most ways are wrong, which a few places show
            values = read(reading.memory, index[::16])
            nothing = self._sample.held(values, reading.rounding) is None
            if nothing and int(values.isfinite().sum()) >= 4 * FEW and self._sample.line(values) is None:
                return
        values = read(reading.memory, index)
        same = self.places.held(values, reading.rounding)
        if same is not None:
            self._covered |= same
        elif self.places.count >= FEW and (line := self.places.line(values, reading.rounding)) is not None:
            self._keep(line)

    @property
    def equal(self) -> float:
        """Share of the places that are there as they are."""
        return float(self._covered.double().mean())

    @property
    def scaled(self) -> float:
        """Largest share of the places that are there after one multiplication and one addition."""
        return max((float(line.fits.double().mean()) for line in self._lines), default=0.0)

    def _keep(self, line: Line) -> None:
        """With those that lie on the same line: they are parts of one answer."""
        for i, other in enumerate(self._lines):
            if other.like(line, self.places.spread):
                self._lines[i] = Line(other.slope, other.shift, other.fits | line.fits)
                return
        self._lines.append(line)


class Search:
    """Looks through one piece after another; `found` says what there was so far."""

    def __init__(self, answer: torch.Tensor) -> None:
        self._answer = answer.detach()
        self._seen: set[bytes] = set()
        self._rearranged = False
        self._columns: list[torch.Tensor] = []
        places = Places.of(answer)
        self._own = None if places is None else _Found(places)
        numbers = places is not None and answer.dtype != torch.bool and places.count >= FEW and not places.labels
        self._transformed = [_Found(new) for new in places.transformed(answer)] if places and numbers else []

    def look(self, piece: torch.Tensor) -> None:
        """Look through a piece (contiguous, uint8)."""
        if self._own is None or not piece.numel():
            return
        mark = hashlib.sha1(piece.cpu().numpy().tobytes(), usedforsecurity=False).digest()
        if mark in self._seen:
            return
        self._seen.add(mark)
        for reading in readings(piece, self._answer):
            for index in layouts(reading, self._own.places):
                self._own.compare(reading, index)
            if not reading.shifted and may_be_rearranged(self._answer, reading.memory):
                self._rearranged = self._rearranged or self._values.is_like(Distribution(reading.memory))
            kinds = _WIDE if self._answer.is_floating_point() else _WHOLE
            if not reading.shifted and reading.memory.dtype in kinds and not reading.rounding:
                self._look_further(reading, self._own.places)

    def _look_further(self, reading: Reading, places: Places) -> None:
        n, size = places.count, reading.memory.numel()
        if size < n or n < FEW:
            return
        for transformed in self._transformed:
            for index in orders(places):
                transformed.compare(reading, index)
        most = min(_MOST_COLUMNS, len(places.values) // _PLACES_A_TERM - 1)
        if size < 2 * n and len(self._columns) < most and self._answer.is_floating_point():
            values = read(reading.memory, places.index)
            if bool(values.isfinite().all()) and 0 < float(values.abs().max()) < _LARGEST_TERM:
                self._columns.append(values)

    @functools.cached_property
    def _values(self) -> Distribution:
        return Distribution(self._answer)

    def found(self) -> dict[Form, float]:
        """Largest shares, by form."""
        if self._own is None:
            return {}
        shares: dict[Form, float] = {"equal": self._own.equal, "scaled": self._own.scaled}
        shares["rearranged"] = float(self._rearranged and self._own.places.count >= FEW)
        shares["transformed"] = max((max(new.equal, new.scaled) for new in self._transformed), default=0.0)
        if max(shares.values()) < _NO_SUM_NEEDED:
            shares["combined"] = self._combined(self._own.places)
        return {form: share for form, share in shares.items() if share > _LEAST_SHARE}

    def _combined(self, places: Places) -> float:
        """Share of the places where the sum of the columns that fits best is the answer, if at least two of them are more
        than a bias: PyTorch's product and a bias that a kernel adds are no shares of an answer."""
        if len(self._columns) < 2 or places.labels:
            return 0.0
        matrix = torch.stack([*self._columns, torch.ones_like(places.values)], dim=1)
        matrix = matrix / matrix.abs().amax(dim=0)  # the squares of tiny numbers are zero
        matrix = (matrix / matrix.norm(dim=0)).cpu()
        values = places.values.cpu()
        try:
            terms = torch.linalg.lstsq(matrix, values, driver="gelsd").solution
        except RuntimeError:  # LAPACK found no solution: says nothing about the candidate
            return 0.0
        used = (terms[:-1].abs() > _LEAST_TERM * values.norm()).nonzero().reshape(-1).tolist()
        shares = [i for i in used if not places.is_broadcast(self._columns[i])]  # one piece may have been seen twice
        if len(shares) < 2 or int(torch.linalg.matrix_rank(matrix[:, shares], rtol=_SAME_TERM)) < 2:
            return 0.0
        rest = (matrix @ terms - values).abs()
        return float((rest <= places.tolerance.cpu()).double().mean())
