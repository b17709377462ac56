"""The elements of an answer that are compared, and when values that were read elsewhere are the same."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch

PLACES = 4096
"""Elements of the answer that are compared."""
FEW = 16
"""Answers of fewer elements are looked for only at the beginning of small pieces: anything is in a large one by chance."""
_LEAST_AGREEMENT = 0.3
"""Least share of equal values among those that one way of reading a piece gives; fewer are chance."""
_LABELS_AGREEMENT = 0.9
"""The same for an answer of a few values, beyond what is equal by chance."""
_LEAST_CORRELATION = 0.3
"""Below it no line fits most of the values."""
_LEAST_FIT = 0.5
_EXACT = {torch.float16: 2e-3, torch.bfloat16: 1.6e-2}
_CLOSE = 1e-4
"""Difference, relative to the spread of the answer, up to which two values are the same; more for 16-bit numbers."""
_CLOSE_ALONE = 1e-5
"""The same for answers of fewer than `FEW` elements, relative to the value."""
_SAME_LINE = 2 * _CLOSE
"""Difference up to which two lines are the same: rows that are normalised have factors that differ by a few per cent."""
_LANDMARK_SIZE = 5
"""Elements."""
_LARGEST_EXPONENT = 80.0
_LARGEST_RUNNING = 1 << 21
"""Elements; of larger answers no running sums are made."""
_MOST_LOOKED_AT = 1 << 18
"""Elements of the answer among which the places are chosen."""
_LANDMARK_ROWS, _LANDMARK_COLUMNS = 32, 1 << 16
"""Rows that are tried from either end, and elements of each that are looked at."""


@dataclass(frozen=True)
class Line:
    """A line through most pairs of (value that was read, value of the answer)."""

    slope: float
    shift: float
    fits: torch.Tensor
    """Bool, for each place."""

    def like(self, other: Line, spread: float) -> bool:
        """Whether it is the same line, as far as `spread` shows."""
        return (
            abs(self.slope - other.slope) < _SAME_LINE * abs(self.slope)
            and abs(self.shift - other.shift) < _SAME_LINE * spread
        )


@dataclass(frozen=True)
class Landmark:
    """A few elements of one row, by which the row is recognised wherever it lies."""

    row: int
    columns: torch.Tensor
    values: torch.Tensor


@dataclass(frozen=True)
class Places:
    """Elements of an answer that say something."""

    shape: torch.Size
    count: int
    """Elements of the answer."""
    index: torch.Tensor
    """Flat indices of the places."""
    values: torch.Tensor
    """float64, at the places."""
    tolerance: torch.Tensor
    """Difference up to which another value is the same, for each place."""
    spread: float
    labels: bool
    """Whether the answer has a few values only. Then zeros and frequent values are among the places."""
    landmarks: tuple[Landmark, ...]
    """Of the first and of the last row that have enough elements."""

    @classmethod
    def of(cls, answer: torch.Tensor) -> Places | None:
        """The places of an answer of any shape and dtype; None where no element says anything."""
        flat = answer.detach().reshape(-1)
        if flat.is_complex() or not flat.numel():
            return None
        looked_at = torch.arange(0, flat.numel(), -(-flat.numel() // _MOST_LOOKED_AT), device=flat.device)
        numbers = flat[looked_at].double()
        telling = numbers.isfinite() & (numbers != 0)
        if flat.numel() > 2 and bool(telling.any()):
            telling &= numbers != numbers[telling].mode().values
        index = _spread_out(looked_at[telling])
        chosen = flat[index]
        kinds = len((chosen.double() if chosen.is_floating_point() else chosen).unique())  # not defined for fp8
        labels = kinds < FEW and flat.numel() >= (FEW * FEW if kinds > 1 else 4 * FEW)
        if labels:
            index = _spread_out(looked_at[numbers.isfinite()])
        if not index.numel() or (kinds == 1 and not labels and flat.numel() >= FEW):
            return None  # one value says nothing: memory that is full of it holds no answer
        values = flat[index].double()
        spread = _spread(values)
        if flat.numel() < FEW:
            tolerance = values.abs() * _EXACT.get(answer.dtype, _CLOSE_ALONE)
        elif answer.is_floating_point():
            tolerance = torch.full_like(values, spread * exactness(answer.dtype))
        else:
            tolerance = torch.zeros_like(values)
        landmarks = () if labels or flat.numel() < FEW else _landmarks(answer.shape, flat)
        return cls(answer.shape, flat.numel(), index, values, tolerance, spread, labels, landmarks)

    def sample(self) -> Places:
        """A sixteenth of the places, for a first look."""
        few = slice(None, None, 16)
        return replace(self, index=self.index[few], values=self.values[few], tolerance=self.tolerance[few])

    def transformed(self, answer: torch.Tensor) -> list[Places]:
        """The same places of what a kernel of one step turns into the answer: logarithms, reciprocals, sums, ...; of whole
        numbers, their differences and sums."""
        flat, columns = answer.detach().reshape(-1), answer.shape[-1] if answer.dim() else 1
        values = self.values
        found: list[torch.Tensor] = []
        if answer.is_floating_point():
            found.append(1 / values)
            if bool((values > 0).all()):
                found.append(values.log())
            if float(values.abs().max()) < _LARGEST_EXPONENT:
                found.append(values.exp())
        if columns > 1:
            before = flat[(self.index - 1).clamp(min=0)].double()
            found.append(values - torch.where(self.index % columns == 0, 0.0, before))
            if flat.numel() <= _LARGEST_RUNNING:
                running = flat.double().view(-1, columns).cumsum(1).view(-1)[self.index]
                found += [running, running - values]  # with the element itself, and up to it
        return [self._with(new, exactness(answer.dtype)) for new in found if bool(new.isfinite().all())]

    def _with(self, values: torch.Tensor, close: float) -> Places:
        spread = _spread(values)
        return replace(
            self, values=values, spread=spread, tolerance=torch.full_like(values, spread * close), landmarks=()
        )

    def is_broadcast(self, values: torch.Tensor) -> bool:
        """Whether values at the places depend on one coordinate only, as a bias for each column or channel does."""
        extents = [extent for extent in self.shape if extent > 1]
        if len(extents) < 2:
            return False
        return any(
            _is_even(values, at, extent)
            for at, extent in zip(torch.unravel_index(self.index, extents), extents, strict=True)
        )

    def held(self, values: torch.Tensor, rounding: float = 0.0) -> torch.Tensor | None:
        """Where `values`, read at the places, are the answer's; None where no more are than by chance.

        rounding: relative error of the dtype in which the values were read.
        """
        same = (values - self.values).abs() <= torch.maximum(self.tolerance, rounding * self.values.abs())
        if not self.labels:
            return same if int(same.sum()) >= max(1.0, _LEAST_AGREEMENT * int(values.isfinite().sum())) else None
        agreement = float(same.double().mean())
        kinds, counts = self.values.unique(return_counts=True)
        chance = sum(
            float(count) / len(self.values) * float((values == kind).double().mean())
            for kind, count in zip(kinds.tolist(), counts.tolist(), strict=True)
        )
        return same if chance < 1 and (agreement - chance) / (1 - chance) >= _LABELS_AGREEMENT else None

    def line(self, values: torch.Tensor, rounding: float = 0.0) -> Line | None:
        """The line through most of (values, answer); None where there is none, or the answer has a few values only."""
        usable = values.isfinite()
        x, y = values[usable], self.values[usable]
        if self.labels or x.numel() < min(4 * FEW, max(FEW, len(self.values) // 2)):
            return None
        if not abs(_correlation(x, y)) > _LEAST_CORRELATION or len(y.unique()) < FEW:
            return None
        order = x.argsort()
        half = x.numel() // 2
        low, high = order[:half], order[-half:]
        slopes = (y[high] - y[low]) / (x[high] - x[low])
        slope = slopes[slopes.isfinite()].median() if bool(slopes.isfinite().any()) else torch.zeros(())
        if not bool(slope.isfinite()) or float(slope) == 0.0:
            return None
        shift = (y - slope * x).median()
        close = torch.maximum(self.tolerance, rounding * self.values.abs())
        fits = (slope * values + shift - self.values).abs() <= close
        if int(fits.sum()) < _LEAST_FIT * x.numel():
            return None
        return Line(float(slope), float(shift), fits)


def _is_even(values: torch.Tensor, groups: torch.Tensor, count: int) -> bool:
    """Whether all values of a group are the same; groups of one value say nothing."""
    low, high = (torch.full((count,), sign * math.inf, dtype=values.dtype, device=values.device) for sign in (1, -1))
    low.scatter_reduce_(0, groups, values, "amin")
    high.scatter_reduce_(0, groups, values, "amax")
    return len(values) > 2 * count and bool((low[groups] == high[groups]).all())


def exactness(dtype: torch.dtype) -> float:
    """How closely values of this dtype are compared, relative to their spread."""
    return _EXACT.get(dtype, _CLOSE)


def _spread_out(index: torch.Tensor) -> torch.Tensor:
    """At most PLACES of them, the same for the same answer: nothing here is drawn."""
    if index.numel() <= PLACES:
        return index
    steps = torch.arange(PLACES, device=index.device, dtype=torch.float64) * (index.numel() / PLACES)
    return index[steps.long()]


def _spread(values: torch.Tensor) -> float:
    """Half of the range of the middle two thirds, where a few large values hide nothing; the deviation where it is 0."""
    if values.numel() < 2:
        return float(values.abs().mean())
    ordered = values.sort().values
    low, high = int(0.16 * (len(ordered) - 1)), int(0.84 * (len(ordered) - 1))
    return float(ordered[high] - ordered[low]) / 2 or float(values.std())


def _landmarks(shape: torch.Size, flat: torch.Tensor) -> tuple[Landmark, ...]:
    columns = shape[-1] if len(shape) > 1 and shape[-1] >= FEW else flat.numel()
    rows = flat.numel() // columns
    found: dict[int, Landmark] = {}
    for tried in (range(min(rows, _LANDMARK_ROWS)), range(rows - 1, max(0, rows - _LANDMARK_ROWS) - 1, -1)):
        of_rows = (_landmark(row, flat[row * columns :][: min(columns, _LANDMARK_COLUMNS)]) for row in tried)
        if (landmark := next((one for one in of_rows if one is not None), None)) is not None:
            found[landmark.row] = landmark
    return tuple(found.values())


def _landmark(row: int, elements: torch.Tensor) -> Landmark | None:
    """Of one row; None where its elements are not different numbers."""
    numbers = elements.double()
    places = (numbers.isfinite() & (numbers != 0)).nonzero().reshape(-1)
    if len(places) < _LANDMARK_SIZE:
        return None
    columns = places[torch.linspace(0, len(places) - 1, _LANDMARK_SIZE, device=places.device).long()]
    values = numbers[columns]
    return Landmark(row, columns, values) if len(values.unique()) == _LANDMARK_SIZE else None


def _correlation(x: torch.Tensor, y: torch.Tensor) -> float:
    x, y = x - x.mean(), y - y.mean()
    return float((x @ y) / (x.norm() * y.norm()))  # NaN where all values are alike
