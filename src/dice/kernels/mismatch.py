"""Where the wrong elements of an output lie, and what they look like. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from dice.kernels.compare import computable, wrong_elements
from dice.kernels.records.explanation import Mismatch
from dice.kernels.records.verdict import Protocol

PICTURE_ROWS, PICTURE_COLUMNS = 16, 60
_NEAR = 1e-3
"""Relative distance up to which two numbers count as one in a remark."""


def locate(expected: Any, actual: Any, protocol: Protocol) -> Mismatch | None:
    """Describe the first tensor of nested outputs that has wrong elements; None where no tensor has any."""
    for where, right, got in _pairs(expected, actual, "output"):
        got = got.to(right.device)
        wrong = wrong_elements(right, got, protocol)
        if bool(wrong.any()):
            return _describe(where, right, got, wrong)
    return None


def _pairs(expected: Any, actual: Any, where: str) -> Iterator[tuple[str, torch.Tensor, torch.Tensor]]:
    """Tensors at equal places, of one shape and dtype."""
    if isinstance(expected, torch.Tensor):
        if isinstance(actual, torch.Tensor) and (expected.shape, expected.dtype) == (actual.shape, actual.dtype):
            yield where, expected, actual
    elif isinstance(expected, list | tuple) and isinstance(actual, list | tuple):
        for index, (left, right) in enumerate(zip(expected, actual, strict=False)):
            yield from _pairs(left, right, f"{where}[{index}]")
    elif isinstance(expected, dict) and isinstance(actual, dict):
        for key in (key for key in expected if key in actual):
            yield from _pairs(expected[key], actual[key], f"{where}[{key!r}]")


def _describe(where: str, right: torch.Tensor, got: torch.Tensor, wrong: torch.Tensor) -> Mismatch:
    places = wrong.nonzero()
    first = places[0].tolist()
    unwritten = wrong & poisoned(got)
    matrix, empty = as_matrix(wrong), as_matrix(unwritten)
    rows, columns = (math.ceil(matrix.shape[0] / PICTURE_ROWS), math.ceil(matrix.shape[1] / PICTURE_COLUMNS))
    return Mismatch(
        where=where,
        shape=list(right.shape),
        dtype=str(right.dtype).removeprefix("torch."),
        total=right.numel(),
        wrong=len(places),
        unwritten=int(unwritten.sum()),
        first=first,
        expected=_number(right[tuple(first)]),
        got=_number(got[tuple(first)]),
        lowest=places.amin(0).tolist(),
        highest=places.amax(0).tolist(),
        remarks=[*_places(wrong), *_values(right, got, wrong, unwritten)],
        rows_per_cell=rows,
        columns_per_cell=columns,
        picture=_picture(matrix, empty, wrong.numel(), rows, columns),
    )


def _number(element: torch.Tensor) -> str:
    value = element.item()
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def as_matrix(mask: torch.Tensor) -> torch.Tensor:
    """The mask as rows of the last dimension; of one dimension, lines of a power of two that fill the picture."""
    if mask.ndim > 1:
        return mask.reshape(-1, mask.shape[-1])
    flat = mask.reshape(-1)
    width = 1 << max(0, math.ceil(math.log2(max(1, flat.numel() / PICTURE_ROWS))))
    width = max(width, min(64, flat.numel()))
    return torch.nn.functional.pad(flat, (0, -flat.numel() % width)).reshape(-1, width)


def _picture(wrong: torch.Tensor, empty: torch.Tensor, total: int, rows: int, columns: int) -> list[str]:
    """A line for `rows` rows, a character for `columns` columns of them. `total`: elements before the last line ends."""
    there = (torch.arange(wrong.numel(), device=wrong.device) < total).reshape(wrong.shape)
    counts = zip(*(_cells(mask, rows, columns).tolist() for mask in (wrong, empty, there)), strict=True)
    return ["".join(_character(*cell) for cell in zip(*lines, strict=True)) for lines in counts]


def _cells(mask: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    """Number of True elements in each cell."""
    padded = torch.nn.functional.pad(mask, (0, -mask.shape[1] % columns, 0, -mask.shape[0] % rows))
    return padded.reshape(padded.shape[0] // rows, rows, -1, columns).sum((1, 3))


def _character(wrong: int, empty: int, there: int) -> str:
    if not there:
        return " "
    if not wrong:
        return "."
    return "?" if empty == wrong else "#" if wrong == there else "+"


def poisoned(got: torch.Tensor) -> torch.Tensor:
    """Elements with all bits set: what the verifier fills fresh memory with. False for types without NaN."""
    integer = {2: torch.int16, 4: torch.int32, 8: torch.int64}.get(got.element_size())
    if integer is None or not got.is_floating_point():
        return torch.zeros_like(got, dtype=torch.bool)
    return got.contiguous().view(integer) == -1


def _places(wrong: torch.Tensor) -> Iterator[str]:
    """What rows and columns of the last dimension say of the code that fills them."""
    n_wrong, total = int(wrong.sum()), wrong.numel()
    if n_wrong == total:
        yield "every element is wrong"
        return
    flat = wrong.reshape(-1)
    start = int(flat.to(torch.uint8).argmax())
    if n_wrong == total - start:
        last = f"the last {n_wrong} elements" if n_wrong > 1 else "the last element"
        yield f"{last} of {total}, and no other: a tail that no thread reaches"
        return
    if wrong.ndim < 2:
        yield from _stride(flat.nonzero().flatten(), "element")
        return
    matrix = wrong.reshape(-1, wrong.shape[-1])
    rows, columns = matrix.any(1).nonzero().flatten(), matrix.any(0).nonzero().flatten()
    if n_wrong == len(rows) * matrix.shape[1]:
        yield f"whole rows: {len(rows)} of {matrix.shape[0]}"
        yield from _stride(rows, "row")
    elif n_wrong == len(columns) * len(rows):
        tail = int(columns[-1]) == matrix.shape[1] - 1 and len(columns) == matrix.shape[1] - int(columns[0])
        which = f"the last {len(columns)} columns" if tail else f"the same {len(columns)} columns"
        yield f"{which} of {'every row' if len(rows) == matrix.shape[0] else f'{len(rows)} rows'}"
        yield from _stride(columns, "column")


def _stride(indices: torch.Tensor, what: str) -> Iterator[str]:
    """Whether indices are evenly spaced, further than 1 apart."""
    steps = set((indices[1:] - indices[:-1]).tolist()) if len(indices) > 2 else set()
    if len(steps) == 1 and (step := steps.pop()) > 1:
        yield f"one {what} in {step}, from {int(indices[0])} on"


def _values(right: torch.Tensor, got: torch.Tensor, wrong: torch.Tensor, unwritten: torch.Tensor) -> Iterator[str]:
    """What the wrong values are, if one rule gives them all."""
    if bool(unwritten.any()):
        share = "all" if bool((unwritten == wrong).all()) else str(int(unwritten.sum()))
        yield f"never written: {share} of them; they hold what the verifier fills fresh memory with"
    if right.ndim > 1 and right.dtype.is_floating_point and _is_transposed(right, got):
        yield "the values are the right ones with the last two dimensions swapped"
        return
    if not right.is_floating_point() or bool((unwritten == wrong).all()):
        return
    theirs, ours = got[wrong].double(), right[wrong].double()
    if bool((theirs == 0).all()):
        yield "all of them are 0"
        return
    fit = ours.isfinite() & theirs.isfinite() & (ours.abs() > 1e-6)
    if int(fit.sum()) < max(2, len(ours) // 2):
        return
    factors, offsets = (theirs / ours)[fit], (theirs - ours)[fit]
    if bool(((factors - factors.median()).abs() <= _NEAR * factors.median().abs()).all()):
        yield f"all of them are {float(factors.median()):.4g} times the right value"
    elif bool(((offsets - offsets.median()).abs() <= _NEAR * offsets.median().abs()).all()):
        yield f"all of them are off by {float(offsets.median()):.4g}"


def _is_transposed(right: torch.Tensor, got: torch.Tensor) -> bool:
    right, got = computable(right), computable(got)
    swapped = right.transpose(-1, -2).contiguous().reshape(right.shape)
    return bool(torch.allclose(swapped, got, rtol=_NEAR, atol=_NEAR)) and not bool(torch.equal(swapped, right))
