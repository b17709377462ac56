"""The ways in which an answer may lie in a piece of memory: as numbers of which dtype, and which of them at which place."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from dice.kernels.likeness.places import FEW, Landmark, Places

_MOST_OFFSETS = 64
_FARTHEST_OFFSET = 1 << 22
_MOST_ALIGNMENTS = 8
_CHUNK = 1 << 16
"""Elements that are compared at once, so that what stands between stays in the processor's cache."""
_MOST_REST = 64
"""Elements by which a piece may be larger than the rows or columns of the answer that it holds."""
LARGEST = 1 << 21
"""Elements; in larger pieces the answer is looked for at no unusual offset and in no other order of the values."""
_RATIO = 1e-3
"""Relative difference up to which two ratios of differences are the same: 3 of them agree by chance once in 10^9."""


@dataclass(frozen=True)
class Reading:
    """A piece as numbers."""

    memory: torch.Tensor
    rounding: float = 0.0
    """Relative error of these numbers beyond the answer's own, where they have fewer bits."""
    shifted: bool = False
    """Begins inside a number of the aligned reading: looked through for rows at any offset only."""


def readings(piece: torch.Tensor, answer: torch.Tensor) -> Iterator[Reading]:
    """The piece as numbers of each dtype that may hold the answer."""
    if not answer.is_floating_point():
        for kind in dict.fromkeys((answer.dtype, torch.int32, torch.int64, torch.float32)):
            yield from _viewed(piece, kind if kind != torch.bool else torch.uint8)
        return
    yield from _viewed(piece, torch.float32)
    yield from _viewed(piece, torch.float64)
    wide = answer.dtype in (torch.float32, torch.float64)
    wide = wide and answer.numel() >= FEW
    yield from _viewed(piece, torch.float16, 2**-10 if wide else 0.0)
    yield from _viewed(piece, torch.bfloat16, 2**-7 if wide else 0.0)
    for kind in (torch.int32, torch.int64):
        for whole in _viewed(piece, kind):
            if answer.numel() <= whole.memory.numel() < 2 * answer.numel() + 64:
                yield whole
                if kind == torch.int32:  # as the upper words of doubles
                    yield Reading((whole.memory.long() << 32).view(torch.float64), 2**-19)
    if piece.numel() <= 4 * LARGEST:
        for begin in (1, 2, 3):
            yield from (Reading(r.memory, shifted=True) for r in _viewed(piece[begin:].clone(), torch.float32))


def _viewed(piece: torch.Tensor, kind: torch.dtype, rounding: float = 0.0) -> Iterator[Reading]:
    size = kind.itemsize
    if piece.numel() >= size and piece.data_ptr() % size == 0:
        yield Reading(piece[: piece.numel() // size * size].view(kind), rounding)


def layouts(reading: Reading, places: Places) -> Iterator[torch.Tensor]:
    """Where in the memory the places of the answer may lie, each way as indices; some may lie outside of it."""
    memory, n, size = reading.memory, places.count, reading.memory.numel()
    if n < FEW:
        if size <= 4 * FEW and not reading.shifted:
            yield from (places.index + offset for offset in range(size - n + 1))
        return
    if not reading.shifted:
        if size < n and not reading.rounding:
            yield from _parts(size, places)
        if size < n:
            return
        yield from orders(places)
        for step in (2, 4):
            if size >= step * n - step + 1:
                yield from (step * index + first for index in orders(places) for first in range(step))
        for rows, columns in _splits(places.shape):
            for pitch in _pitches(size, rows, columns):
                yield places.index // columns * pitch + places.index % columns
        yield from (places.index + offset for offset in _offsets(memory, places))
    if memory.is_floating_point() and n <= size <= LARGEST:
        yield from _aligned(memory, places)


def read(memory: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """float64 values; NaN outside of the memory."""
    inside = (index >= 0) & (index < memory.numel())
    values = memory[index.clamp(0, memory.numel() - 1)].double()
    return torch.where(inside, values, math.nan)


def orders(places: Places) -> Iterator[torch.Tensor]:
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


def _parts(size: int, places: Places) -> Iterator[torch.Tensor]:
    """For memory that is smaller than the answer: it may hold some of its rows, or of its columns."""
    n = places.count
    if size < max(FEW, n // _MOST_OFFSETS):
        return
    splits = _splits(places.shape)
    whole_rows = {size // columns * columns for _, columns in splits}
    for length in {length for length in whole_rows if size - length < _MOST_REST} or {size}:
        if length >= max(FEW, n // _MOST_OFFSETS):
            for start in range(0, n, length):
                inside = (places.index >= start) & (places.index < start + length)
                yield torch.where(inside, places.index - start, -1)
    for rows, columns in splits:
        width = size // rows
        if 0 < width < columns and size - rows * width < _MOST_REST:
            row, column = places.index // columns, places.index % columns
            for start in range(0, columns, width):
                inside = (column >= start) & (column < start + width)
                yield torch.where(inside, row * width + column - start, -1)


def _offsets(memory: torch.Tensor, places: Places) -> list[int]:
    """Where the answer may begin in a larger piece, from the places of its first telling value."""
    limit = min(memory.numel() - places.count, _FARTHEST_OFFSET)
    if not limit:
        return []
    first, value = int(places.index[0]), places.values[0]
    close = (memory[first : first + limit + 1].double() - value).abs() <= places.tolerance[0]
    return [offset for offset in close.nonzero().reshape(-1)[:_MOST_OFFSETS].tolist() if offset]


def _aligned(memory: torch.Tensor, places: Places) -> Iterator[torch.Tensor]:
    """Rows at an offset and of a pitch that two rows show, whatever their scale."""
    if not places.landmarks:
        return
    columns = places.shape[-1] if len(places.shape) > 1 and places.shape[-1] >= FEW else places.count
    first, last = places.landmarks[0], places.landmarks[-1]
    row, column = places.index // columns, places.index % columns
    begins, ends = _alignments(memory, first), _alignments(memory, last)
    for begin in begins:
        pitches = {columns}
        if last.row > first.row:
            steps = [(end - begin, last.row - first.row) for end in ends]
            pitches |= {step // rows for step, rows in steps if step % rows == 0 and abs(step // rows) >= columns}
        for pitch in pitches:
            yield begin + (row - first.row) * pitch + column


def _alignments(memory: torch.Tensor, landmark: Landmark) -> list[int]:
    """Where the landmark's row may begin: ratios of differences stay the same under any scale and shift."""
    length = memory.numel() - int(landmark.columns[-1])
    if length < 1:
        return []
    start, *others = landmark.columns.tolist()
    wanted = (landmark.values[1:] - landmark.values[0]).tolist()
    pivot = max(range(len(wanted)), key=lambda i: abs(wanted[i]))
    ratios = [(at, wanted[i] / wanted[pivot]) for i, at in enumerate(others) if i != pivot]

    def fits(where: slice | torch.Tensor, at: int, ratio: float) -> torch.Tensor:
        base = memory[start:][where].double()
        reference = memory[others[pivot] :][where].double() - base
        off = (memory[at:][where].double() - base - ratio * reference).abs()
        return (off <= _RATIO * reference.abs()) & (reference != 0)

    found = [
        fits(slice(i, min(i + _CHUNK, length)), *ratios[0]).nonzero().reshape(-1) + i for i in range(0, length, _CHUNK)
    ]
    where = torch.cat(found)
    for at, ratio in ratios[1:]:
        where = where[fits(where, at, ratio)]
    return where[:_MOST_ALIGNMENTS].tolist()
