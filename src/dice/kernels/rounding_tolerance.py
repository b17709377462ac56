"""How far an output may be from the reference's: as far as rounding alone takes the reference. Pure functions.

The tolerance of the `robust` protocol. It is measured, not chosen by dtype: the reference's outputs are compared with its
own in fp64, and with its outputs where inputs and weights differ by one rounding. An element may be off by `FACTOR`
times the larger of the two (its own, or the median of its tensor), and by a floor for another order of summation. So a
long sum, a difference of large numbers or a steep function each have the tolerance that they need, whatever their scale.
One move may leave an element near by luck: `farther` takes the largest of several.

Compared is what the reference defines: where it gives NaN, or fp32 and fp64 disagree on whether there is a number, any
value is right. Inf is right where both give it. Integers and booleans are exact. Where some of them change by rounding
(an argmax between two equal numbers), twice as many may be others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.utils._pytree import tree_map, tree_structure

FACTOR = 32.0
"""Times the reference's own error: another right program rounds at other places."""
_FLOORS = {
    torch.float64: (1e-12, 1e-14),
    torch.float32: (5e-5, 1e-6),
    torch.float16: (4e-3, 1e-4),
    torch.bfloat16: (3e-2, 1e-3),
}
"""Of each dtype: the share of the element, or of its tensor's rms where that is larger; and an absolute distance. Narrower
types have bfloat16's."""
_BY_LUCK = 10
"""Times as many elements as are wrong must be known to be lost to rounding, for all of them to be."""
KNOWN = 2.0**-6
"""Relative error of the reference above which its fp64 run is another computation: it draws numbers, say."""


@dataclass(frozen=True)
class Truth:
    """What the reference gives for one call. All three have one structure.

    expected: as it is. exact: in fp64, or `expected` where it cannot run so. moved: `exact` with inputs and weights moved by
    one rounding. plain: None, or `exact` for inputs without Inf. Where an element of the two differs, NaN is no failure:
    `a + t (b - a)` and `b - (1 - t) (b - a)` give other numbers at Inf, and both are right.
    """

    expected: Any
    exact: Any
    moved: Any
    plain: Any = None


@dataclass(frozen=True)
class Disagreement:
    """The first tensor of an output that is wrong, and how. `defined`: elements that were compared in all tensors."""

    message: str
    defined: int


def unit(dtype: torch.dtype) -> float:
    """Largest relative error of one rounding to a floating-point type."""
    return torch.finfo(dtype).eps / 2


def disagreement(
    truth: Truth, actual: Any, compares: Callable[[torch.dtype], bool] = lambda dtype: True
) -> Disagreement:
    """Compare outputs of the reference's structure, shapes and dtypes (`compare_outputs` on their outlines) element by
    element. An empty message: nothing is wrong. `compares`: which tensors, by dtype."""
    defined = 0
    plain = truth.exact if truth.plain is None else truth.plain
    values = [truth.expected, truth.exact, truth.moved, plain, actual]
    for where, expected, exact, moved, before, got in _parts(values, "output"):
        if not compares(expected.dtype):
            continue
        wrong, compared = _wrong(expected, exact, moved, before, got.to(expected.device))
        defined += compared
        if bool(wrong.any()):
            return Disagreement(_message(where, expected, got, wrong), defined)
    return Disagreement("", defined)


def farther(truth: Truth, moved: Any) -> Truth:
    """The truth with, for each element, the farther of its own moved output and this one."""

    def pick(exact: Any, one: Any, other: Any) -> Any:
        if not torch.is_tensor(one) or one.shape != other.shape:
            return one
        if not (one.is_floating_point() or one.is_complex()):
            return other.where(one == exact, one)
        stays = ~one.isfinite() | ((other - exact).abs() <= (one - exact).abs())
        return one.where(stays, other)

    same = len({str(tree_structure(value)) for value in (truth.exact, truth.moved, moved)}) == 1
    return replace(truth, moved=tree_map(pick, truth.exact, truth.moved, moved)) if same else truth


def is_known(expected: Any, exact: Any) -> bool:
    """Whether the run in fp64 is the same computation as the one in the reference's own dtypes."""
    for _, mine, wide in _parts([expected, exact], "output"):
        if not mine.is_floating_point():
            continue
        a, b = mine.double(), wide.double()
        both = a.isfinite() & b.isfinite()
        count = max(1, int(both.sum()))
        most = KNOWN * float(b.abs().where(both, 0.0).sum()) / count + _floors(mine.dtype)[1]
        if 2 * int((both & ((a - b).abs() > most)).sum()) > count:
            return False
    return True


def _parts(values: list[Any], where: str) -> Iterator[tuple[Any, ...]]:
    """(place, tensors and numbers at equal places of `values` as tensors); complex ones as pairs."""
    first = values[0]
    if isinstance(first, torch.Tensor) or (isinstance(first, int | float) and not isinstance(first, bool)):
        tensors = [_as_tensor(value, like=first) for value in values]
        if tensors[0].is_complex():
            tensors = [torch.view_as_real(_complex(tensor).resolve_conj()) for tensor in tensors]
        if len({tensor.shape for tensor in tensors}) == 1 and tensors[0].numel():
            yield where, *tensors
    elif isinstance(first, list | tuple):
        for index, parts in enumerate(zip(*values, strict=False)):
            yield from _parts(list(parts), f"{where}[{index}]")
    elif isinstance(first, dict):
        for key in first:
            if all(key in value for value in values):
                yield from _parts([value[key] for value in values], f"{where}[{key!r}]")


def _as_tensor(value: Any, like: Any) -> torch.Tensor:
    """A tensor of one element stands for a number where `like` is one; an integer of over 64 bits becomes a float."""
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return torch.tensor(float(value), dtype=torch.float64)
    tensor = torch.as_tensor(value)
    return tensor if isinstance(like, torch.Tensor) or tensor.numel() != 1 else tensor.reshape(())


def _complex(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor itself, or a real number, which may stand for a complex one."""
    return tensor if tensor.is_complex() else tensor.to(torch.promote_types(tensor.dtype, torch.complex64))


def _floors(dtype: torch.dtype) -> tuple[float, float]:
    return _FLOORS.get(dtype, _FLOORS[torch.bfloat16])


def _wrong(
    expected: torch.Tensor, exact: torch.Tensor, moved: torch.Tensor, plain: torch.Tensor, got: torch.Tensor
) -> tuple[torch.Tensor, int]:
    """(True where an element is wrong, number of elements that were compared)."""
    if not expected.is_floating_point():
        firm = (expected == exact) & (expected == moved)
        wrong = firm & (got != expected)
        # Of two equal numbers a rounding makes either the first one: as many stay the same by luck.
        if int(wrong.sum()) <= 2 * int((~firm).sum()):
            wrong = torch.zeros_like(wrong)
        return wrong, int(firm.sum())
    share, least = _floors(expected.dtype)
    own, true, other, mine = (tensor.double() for tensor in (expected, exact, moved, got))
    closed = ~(mine.isnan() & (true != plain))
    infinite = own.isinf() & (own == true) & closed
    defined = own.isfinite() & true.isfinite() & other.isfinite() & closed
    wrong = infinite & (mine != own)
    off = (mine - true).abs()
    far = defined & ~(off <= share * true.abs() + least)
    if bool(far.any()):  # more than the floors alone allow
        error, shift = (own - true).abs(), (other - true).abs()
        usual = max(float(error[defined].median()), float(shift[defined].median()))
        rms = float(true[defined].square().mean().sqrt())
        scale = true.abs().clamp_min(rms)
        far &= ~(off <= FACTOR * torch.maximum(error, shift).clamp_min(usual) + share * scale + least)
        # Where a rounding changes everything (a cosine of 1e30 behind a ReLU), some elements stay the same by luck.
        if _BY_LUCK * int(far.sum()) > int((defined & (shift > KNOWN * scale)).sum()):
            wrong |= far
    return wrong, int((defined | infinite).sum())


def _message(where: str, expected: torch.Tensor, got: torch.Tensor, wrong: torch.Tensor) -> str:
    flat = wrong.reshape(-1)
    first, count = int(flat.to(torch.uint8).argmax()), int(flat.sum())
    index = [int(place) for place in torch.unravel_index(torch.tensor(first), expected.shape)]
    right, theirs = expected.reshape(-1)[first].item(), got.reshape(-1)[first].item()
    return f"{where}: {count} of {flat.numel()} elements differ; first at {index}: expected {right}, got {theirs}"
