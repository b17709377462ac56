"""Values that an input may have which is constant, or counts up, whenever it is drawn: what it may stand for, kind by kind.

A candidate that is right for one of the kinds may rely on it: ones may be a mask, zeros may be what a closed mask adds, and
what counts up may always be sorted or never have a value twice. One that is wrong for all of them takes the drawn values
for granted.
"""

from __future__ import annotations

from functools import partial

import torch

from dice.kernels.candidate.other_values import Other, has_fractions, rescaled

_CLOSED = -1e4
"""Added to scores, it leaves nothing of a share. Not infinite, which makes NaN of a row without any other value."""


def kinds_of_values(value: torch.Tensor) -> tuple[Other, ...]:
    """Other values for a tensor of floating-point zeros, ones or another number, or of integers that count up; none for any
    other tensor."""
    if (axis := counting_axis(value)) is not None:
        return partial(_reordered, axis=axis), partial(_repeated, axis=axis)
    if not value.is_floating_point() or not value.numel() or bool((value != value.reshape(-1)[0]).any()):
        return ()
    if not bool(value.any()):
        return _normal, partial(_opened, closed=_CLOSED, opened=0.0), partial(_opened, closed=0.0, opened=1.0)
    if bool((value == 1).all()):
        return rescaled, partial(_opened, closed=0.0, opened=1.0), _begun
    return (rescaled,)


def counting_axis(value: torch.Tensor) -> int | None:
    """The last axis of several places along which integers count up by one in every row, as positions do."""
    if has_fractions(value):
        return None
    for axis in reversed(range(value.dim())):
        if value.shape[axis] > 2 and value.numel() and bool((value.long().diff(dim=axis) == 1).all()):
            return axis
    return None


def _reordered(value: torch.Tensor, seed: int, axis: int) -> torch.Tensor:
    """The same values in another order along an axis, the same order in each row."""
    draw = torch.Generator().manual_seed(seed)
    order = torch.randperm(value.shape[axis], generator=draw)
    if bool((order.diff() == 1).all()):  # by chance, where there are few
        order = order.flip(0)
    return value.index_select(axis, order.to(value.device))


def _repeated(value: torch.Tensor, seed: int, axis: int) -> torch.Tensor:
    """Values that never fall along an axis, some of them several times, others left out; the first one stays."""
    draw = torch.Generator().manual_seed(seed)
    extent = value.shape[axis]
    order = torch.randint(extent, (extent,), generator=draw).sort().values
    order[0], order[1] = 0, 0
    return value.index_select(axis, order.to(value.device))


def _normal(value: torch.Tensor, seed: int) -> torch.Tensor:
    draw = torch.Generator(value.device).manual_seed(seed)
    return torch.randn(value.shape, generator=draw, device=value.device).to(value.dtype)


def _opened(value: torch.Tensor, seed: int, closed: float, opened: float) -> torch.Tensor:
    """A mask of two values, three quarters of it open."""
    draw = torch.Generator(value.device).manual_seed(seed)
    is_open = torch.rand(value.shape, generator=draw, device=value.device) < 0.75
    return torch.where(is_open, opened, closed).to(value.dtype)


def _begun(value: torch.Tensor, seed: int) -> torch.Tensor:
    """Ones up to a place of each row of the last axis, and zeros behind it, as where sequences are padded."""
    extent = value.shape[-1] if value.dim() else 1
    draw = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, extent + 1, (*value.shape[:-1], 1), generator=draw)
    return (torch.arange(extent) < lengths).to(value).reshape(value.shape)
