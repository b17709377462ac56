"""Whether a piece of memory holds an answer, and in which form. Pure functions.

A candidate whose kernels are switched off still writes to memory. Where the answer stands there, somebody else than the
kernels has computed it, also when it stands there scaled, shifted, transposed, padded, cut into parts or as another
dtype, for a kernel to undo.

    find_answer(answer, [memory, ...])       # {"equal": 0.94}

equal       the same values, in order: at any offset, in rows of another pitch, in any order of the dimensions, in parts
scaled      the same, after one multiplication and one addition for all
rearranged  the same values in any order, scaled or not, in one piece of memory that holds nothing else

The values are compared at up to 4,096 places of the answer. Elements that are zero, not finite, or equal to the most
frequent value say nothing and do not count.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from dice.kernels.records.evidence import Form

PLACES = 4096
"""Elements of the answer that are compared."""
FEW = 16
"""Answers of fewer elements are looked for only at the beginning of small pieces: anything is in a large one by chance."""
_LARGEST_SORT = 1 << 21
"""Elements; larger pieces are not looked through for rearranged values."""
_MOST_LOOKED_AT = 1 << 18
"""Elements of the answer among which the places are chosen."""
_MOST_OFFSETS = 64
_FARTHEST_OFFSET = 1 << 22
_LEAST_AGREEMENT = 0.3
"""Least share of equal values among those that one way of reading a piece gives; fewer are chance."""
_LEAST_SHARE = 0.05
_LEAST_CORRELATION = 0.3
"""Below it no line fits most of the values."""
_EXACT = {torch.float16: 2e-3, torch.bfloat16: 1.6e-2}
_CLOSE = 1e-4
"""Difference, relative to the spread of the answer, up to which two values are the same; more for 16-bit numbers."""
_CLOSE_ALONE = 1e-5
"""The same for answers of fewer than `FEW` elements, relative to the value."""
_QUANTILES = 4096


def find_answer(answer: torch.Tensor, pieces: Sequence[torch.Tensor]) -> dict[Form, float]:
    """Largest share of `answer` in `pieces`, by form; forms of which nothing was found are left out.

    answer: numbers of any shape and dtype. pieces: contiguous uint8 memory of any length, on the answer's device. Several
    pieces together may hold the answer as `equal`; the other forms are looked for in each alone.
    """
    places = _Places.of(answer)
    if places is None:
        return {}
    found: dict[Form, float] = {}
    own: _Distribution | None = None
    covered = torch.zeros_like(places.values, dtype=torch.bool)
    for piece in pieces:
        for memory in _readings(piece, answer):
            for values in _layouts(memory, places):
                same = places.same(values)
                if int(same.sum()) >= _LEAST_AGREEMENT * int(values.isfinite().sum()):
                    covered |= same
                elif places.count >= FEW:
                    _keep(found, "scaled", places.scaled_share(values))
            if _may_be_rearranged(answer, memory):
                own = own or _Distribution(answer)
                if own.is_like(_Distribution(memory), _EXACT.get(answer.dtype, _CLOSE)):
                    found["rearranged"] = 1.0
    _keep(found, "equal", float(covered.double().mean()))
    return found


def _keep(found: dict[Form, float], form: Form, share: float) -> None:
    if share > max(found.get(form, 0.0), _LEAST_SHARE):
        found[form] = share


@dataclass(frozen=True)
class _Places:
    """Elements of an answer that say something: flat indices, their values, and how close the same value is."""

    shape: torch.Size
    count: int
    index: torch.Tensor
    values: torch.Tensor
    tolerance: torch.Tensor

    @classmethod
    def of(cls, answer: torch.Tensor) -> _Places | None:
        flat = answer.detach().reshape(-1)
        if flat.is_complex() or not flat.numel():
            return None
        looked_at = torch.arange(0, flat.numel(), -(-flat.numel() // _MOST_LOOKED_AT), device=flat.device)
        numbers = flat[looked_at].double()
        telling = numbers.isfinite() & (numbers != 0)
        if flat.numel() > 2 and bool(telling.any()):
            telling &= numbers != numbers[telling].mode().values
        index = looked_at[telling]
        if not index.numel():
            return None
        if index.numel() > PLACES:  # the same places for the same answer: nothing here is drawn
            steps = torch.arange(PLACES, device=index.device, dtype=torch.float64) * (index.numel() / PLACES)
            index = index[steps.long()]
        values = flat[index].double()
        if flat.numel() < FEW:
            tolerance = values.abs() * _EXACT.get(answer.dtype, _CLOSE_ALONE)
        elif answer.is_floating_point():
            spread = values.std() if values.numel() > 1 else values.abs().mean()
            tolerance = torch.full_like(values, float(spread)) * _EXACT.get(answer.dtype, _CLOSE)
        else:
            tolerance = torch.zeros_like(values)
        return cls(answer.shape, flat.numel(), index, values, tolerance)

    def same(self, values: torch.Tensor) -> torch.Tensor:
        """Where `values`, read at the places, are the answer's."""
        return (values - self.values).abs() <= self.tolerance

    def scaled_share(self, values: torch.Tensor) -> float:
        """Share of the places where a line through most of (values, answer) fits."""
        usable = values.isfinite()
        x, y = values[usable], self.values[usable]
        if x.numel() < max(FEW, len(self.values) // 2) or not abs(_correlation(x, y)) > _LEAST_CORRELATION:
            return 0.0
        if len(y.unique()) < FEW:
            return 0.0
        order = x.argsort()
        half = x.numel() // 2
        low, high = order[:half], order[-half:]
        slopes = (y[high] - y[low]) / (x[high] - x[low])
        slope = slopes[slopes.isfinite()].median() if bool(slopes.isfinite().any()) else torch.zeros(())
        if not bool(slope.isfinite()) or float(slope) == 0.0:
            return 0.0
        shift = (y - slope * x).median()
        fits = (slope * x + shift - y).abs() <= self.tolerance[usable]
        return float(fits.double().sum() / len(self.values))


def _correlation(x: torch.Tensor, y: torch.Tensor) -> float:
    x, y = x - x.mean(), y - y.mean()
    return float((x @ y) / (x.norm() * y.norm()))  # NaN where all values are alike


def _readings(piece: torch.Tensor, answer: torch.Tensor) -> Iterator[torch.Tensor]:
    """The piece as numbers of each dtype that may hold the answer."""
    kinds = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
    if not answer.is_floating_point():
        kinds = [answer.dtype, torch.int32, torch.int64, torch.float32]
    for kind in dict.fromkeys(kinds):
        size = kind.itemsize
        if piece.numel() >= size and piece.data_ptr() % size == 0:
            yield piece[: piece.numel() // size * size].view(kind if kind != torch.bool else torch.uint8)


def _layouts(memory: torch.Tensor, places: _Places) -> Iterator[torch.Tensor]:
    """Values of `memory` at the answer's places, for each way in which the answer may lie there; NaN outside of it."""
    n, size = places.count, memory.numel()
    if n < FEW:
        if size <= 4 * FEW:
            yield from (_read(memory, places.index + offset) for offset in range(size - n + 1))
        return
    if size < n:
        yield from _parts(memory, places)
        return
    yield from (_read(memory, index) for index in _orders(places))
    for rows, columns in _splits(places.shape):
        for pitch in _pitches(size, rows, columns):
            yield _read(memory, places.index // columns * pitch + places.index % columns)
    yield from (_read(memory, places.index + offset) for offset in _offsets(memory, places))


def _orders(places: _Places) -> Iterator[torch.Tensor]:
    """Places in memory where the dimensions are stored in another order."""
    shape = [extent for extent in places.shape if extent > 1]
    coordinates = torch.unravel_index(places.index, shape) if shape else ()
    dims = range(len(shape))
    orders = itertools.permutations(dims) if len(shape) <= 4 else [tuple(dims), tuple(reversed(dims))]
    for order in orders:
        index = torch.zeros_like(places.index)
        for dim in order:
            index = index * shape[dim] + coordinates[dim]
        yield index


def _splits(shape: torch.Size) -> set[tuple[int, int]]:
    """The shape as rows and columns, in all ways."""
    extents = list(shape)
    splits = {(math.prod(extents[:k]), math.prod(extents[k:])) for k in range(1, len(extents))}
    return {(rows, columns) for rows, columns in splits if rows > 1 and columns > 1}


def _pitches(size: int, rows: int, columns: int) -> set[int]:
    """Row lengths with padding that fit into `size` elements."""
    rounded = {-(-columns // unit) * unit for unit in (4, 8, 16, 32, 64, 128, 256)}
    pitches = {size // rows, columns + 1, columns + 2, *rounded, 1 << (columns - 1).bit_length()}
    return {pitch for pitch in pitches if columns < pitch and (rows - 1) * pitch + columns <= size}


def _parts(memory: torch.Tensor, places: _Places) -> Iterator[torch.Tensor]:
    """For memory that is smaller than the answer: it may hold some of its rows, or of its columns."""
    n, size = places.count, memory.numel()
    if size < max(FEW, n // _MOST_OFFSETS):
        return
    for start in range(0, n, size):
        yield _read(memory, places.index - start)
    for rows, columns in _splits(places.shape):
        width = size // rows
        if 0 < width < columns:
            row, column = places.index // columns, places.index % columns
            for start in range(0, columns, width):
                inside = (column >= start) & (column < start + width)
                yield _read(memory, torch.where(inside, row * width + column - start, -1))


def _offsets(memory: torch.Tensor, places: _Places) -> list[int]:
    """Where the answer may begin in a larger piece, from the places of its first telling value."""
    limit = min(memory.numel() - places.count, _FARTHEST_OFFSET)
    if not limit:
        return []
    first, value = int(places.index[0]), places.values[0]
    close = (memory[first : first + limit + 1].double() - value).abs() <= places.tolerance[0]
    return [offset for offset in close.nonzero().reshape(-1)[:_MOST_OFFSETS].tolist() if offset]


def _read(memory: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    inside = (index >= 0) & (index < memory.numel())
    values = memory[index.clamp(0, memory.numel() - 1)].double()
    return torch.where(inside, values, math.nan)


class _Distribution:
    """The values of a tensor that are finite and not zero, without their order, scale and shift."""

    def __init__(self, tensor: torch.Tensor) -> None:
        values = tensor.reshape(-1).double()
        values = values[values.isfinite() & (values != 0)]
        self.count = values.numel()
        distinct = values[:: max(1, self.count // 64)].unique().numel()
        self.tells = self.count >= FEW * FEW and distinct >= FEW
        self.values = (values - values.mean()) / values.std() if self.tells else values

    def is_like(self, other: _Distribution, close: float) -> bool:
        """Whether both have the same values, up to scale and shift.

        Two samples of one distribution differ in their quantiles by about one over the root of their size; only the same
        values agree as closely as this asks.
        """
        if not (self.tells and other.tells) or abs(self.count - other.count) > 0.01 * self.count:
            return False
        if abs(float(self.values.abs().mean() - other.values.abs().mean())) > 10 * close:  # before sorting
            return False
        agreement = ((self.quantiles - theirs).abs() <= close for theirs in (other.quantiles, other.negated_quantiles))
        return any(float(agrees.double().mean()) > 0.999 for agrees in agreement)

    @functools.cached_property
    def _sorted(self) -> torch.Tensor:
        return self.values.sort().values

    @functools.cached_property
    def _steps(self) -> torch.Tensor:
        steps = torch.arange(_QUANTILES, device=self.values.device, dtype=torch.float64)
        return (steps * (self.count / _QUANTILES)).long()

    @property
    def quantiles(self) -> torch.Tensor:
        """Of the values."""
        return self._sorted[self._steps]

    @property
    def negated_quantiles(self) -> torch.Tensor:
        """Of the negated values."""
        return -self._sorted[self.count - 1 - self._steps]


def _may_be_rearranged(answer: torch.Tensor, memory: torch.Tensor) -> bool:
    n, size = answer.numel(), memory.numel()
    return answer.is_floating_point() and FEW * FEW <= n <= size <= min(2 * n + 512, _LARGEST_SORT)
