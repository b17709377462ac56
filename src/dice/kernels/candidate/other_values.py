"""Other values for tensors that are the same everywhere at first, so that it shows whether anybody reads them."""

from __future__ import annotations

import contextlib
import itertools
import secrets
from collections.abc import Callable, Iterator
from typing import Any

import torch

from dice.kernels.candidate.moved_constants import FILLING_MODULES

Other = Callable[[Any, int], Any]
"""Makes other values of a tensor, or another number, after a seed."""
_FACTOR = 1.25
"""Of a whole tensor: it shows, and neither a deep model nor a bare exponential raises it to infinity."""


def has_fractions(value: torch.Tensor) -> bool:
    """Whether its elements are real or complex numbers, neither integers nor truth values."""
    return value.is_floating_point() or value.is_complex()


def _drawn(value: torch.Tensor, seed: int) -> torch.Tensor:
    """A number from 0 to 1 for each element."""
    return torch.rand(value.shape, generator=torch.Generator(value.device).manual_seed(seed), device=value.device)


def _long_axis(value: torch.Tensor) -> int | None:
    """The first axis of more than one slice."""
    return next((axis for axis, extent in enumerate(value.shape) if extent > 1), None)


def varied(value: torch.Tensor, seed: int) -> torch.Tensor:
    """Other values of the same kind: none negative where all were positive, 0 and 1 for masks, and from 1 to the largest for
    other integers, as lengths, which are valid where the largest was."""
    random = _drawn(value, seed)
    if value.dtype == torch.bool:
        return random < 0.75
    if not has_fractions(value):
        largest = int(value.max()) if value.numel() else 0
        return ((random * largest).floor() + 1 if largest > 1 else random < 0.5).to(value.dtype)
    factors = (0.5 + random).to(value.dtype)
    return value * factors if bool(value.any()) else factors - 1


def grown(value: torch.Tensor, seed: int) -> torch.Tensor:
    """As `varied`, with a size of about 1: a branch that is multiplied by a millionth at first shows."""
    return varied(value.sgn() if has_fractions(value) else value, seed)


def rescaled(value: torch.Tensor, seed: int) -> torch.Tensor:
    """As `varied`, and all of it by one more factor: no norm is what it was, whatever the number of elements."""
    larger = bool(torch.randint(2, (), generator=torch.Generator().manual_seed(seed)))
    return varied(value, seed) * (_FACTOR if larger else 1 / _FACTOR)


def resigned(value: torch.Tensor, seed: int) -> torch.Tensor:
    """As `rescaled`, with about half of the signs turned."""
    other = rescaled(value, seed)
    return torch.where(_drawn(value, seed + 1) < 0.5, -other, other)


def coarse(value: torch.Tensor) -> torch.Tensor:
    """fp32 values cut to eight significant bits, the numbers of bfloat16."""
    return (value.contiguous().view(torch.int32) & -(1 << 16)).view(torch.float32)


def refined(value: torch.Tensor, seed: int) -> torch.Tensor:
    """`coarse` values that are larger by a part of 2**-14 to 2**-13: the nearest number of bfloat16, half precision and TF32
    stays the same. What is coarse already (labels, masks) stays, so that no value leaves its range."""
    step = (1 + _drawn(value, seed)) * 2.0**-14
    cut = coarse(value)
    return torch.where(cut == value, value, cut * (1 + step))


def filled(value: torch.Tensor, seed: int) -> torch.Tensor:
    """Zeros become as large as the other values are."""
    others = value[value != 0]
    size = others.abs().mean() if others.numel() else 1.0
    return torch.where(value == 0, (0.5 + _drawn(value, seed).to(value.dtype)) * size, value)


def balanced(value: torch.Tensor, seed: int) -> torch.Tensor:
    """Other values of the same kind that change none of the few numbers which may stand for all: the first, the last, and
    for floating-point values the sum. A tensor of fewer than four elements stays as it is."""
    other = value.clone().reshape(-1)
    inner = other[1:-1]
    pairs = inner[: inner.numel() // 2 * 2].view(-1, 2)
    if not has_fractions(value):
        inner.copy_(varied(inner, seed))
    elif pairs.numel():
        step = 0.25 + 0.5 * _drawn(pairs[:, 0], seed).to(value.dtype)
        step *= inner.abs().max() or 1.0
        pairs[:, 0] += step
        pairs[:, 1] -= step
    return other.view(value.shape)


def touched(value: torch.Tensor, seed: int) -> torch.Tensor:
    """One element, drawn by the seed, is another one: large where all were zero, zero where they were not. Whoever looks at
    some of the elements misses it."""
    other = value.clone().reshape(-1)
    if other.numel():
        draw = torch.Generator().manual_seed(seed)
        place = int(torch.randint(other.numel(), (), generator=draw))
        if value.dtype == torch.bool:
            other[place] = ~other[place]
        elif has_fractions(value):
            other[place] = 0.0 if bool(other[place]) else 3.0
        else:
            other[place] = 1 if int(other[place]) > 1 else 1 - other[place]
    return other.view(value.shape)


def swapped(value: torch.Tensor, seed: int) -> torch.Tensor:
    """Two neighbouring slices along the first axis of several, drawn by the seed, change places."""
    axis = _long_axis(value)
    if axis is None:
        return value
    draw = torch.Generator().manual_seed(seed)
    place = int(torch.randint(value.shape[axis] - 1, (), generator=draw))
    order = torch.arange(value.shape[axis])
    order[[place, place + 1]] = order[[place + 1, place]]
    return value.index_select(axis, order.to(value.device))


def punched(value: torch.Tensor, seed: int) -> torch.Tensor:
    """Zeros among the values, for a mask that is compared with 0."""
    return value * (_drawn(value, seed) < 0.75).to(value.dtype)


def emptied(value: torch.Tensor, seed: int) -> torch.Tensor:
    """Zeros. The seed is not used."""
    return torch.zeros_like(value)


def partly(other: Other, axis: int) -> Other:
    """`other` for a quarter of the slices along an axis, which the seed draws: whoever reads other slices alone sees nothing
    of it."""

    def changed(value: torch.Tensor, seed: int) -> torch.Tensor:
        extent = value.shape[axis]
        order = torch.randperm(extent, generator=torch.Generator().manual_seed(seed)).to(value.device)
        chosen = order[: max(1, extent // 4)]
        return value.index_copy(axis, chosen, other(value, seed).index_select(axis, chosen))

    return changed


def bounded(value: torch.Tensor, seed: int) -> torch.Tensor:
    """As `balanced`, with the largest value kept instead of the sum."""
    other = value.clone().reshape(-1)
    if has_fractions(value) and other.numel() > 2:
        share = 0.25 + 0.5 * _drawn(other[1:-1], seed).to(value.dtype)
        other[1:-1] -= share * (other.abs().max() or 1.0)
    return other.view(value.shape)


def shuffled(value: torch.Tensor, seed: int) -> torch.Tensor:
    """The same rows in another order: what is valid stays so, as positions in a table do. Rows are along the first axis
    that has several."""
    draw = torch.Generator().manual_seed(seed)
    axis = _long_axis(value) or 0
    return value.index_select(axis, torch.randperm(value.shape[axis], generator=draw).to(value.device))


def mixed(value: torch.Tensor, seed: int, rarer: bool) -> torch.Tensor:
    """Of the two values that occur most, a quarter of the elements with one (the rarer one, or the other) get the other
    value. Whoever reads a mask only where it is open, or only where it is closed, does not see one of both changes. Where no
    value occurs twice, as in positions, a quarter of the inner elements get each other's values."""
    kinds, counts = value.unique(return_counts=True)
    if kinds.numel() < 2:
        return value
    if int(counts.max()) == 1:
        return _exchanged(value, seed)
    common, second = kinds[counts.topk(2).indices]
    mine, other = (second, common) if rarer else (common, second)
    return torch.where((value == mine) & (_drawn(value, seed) < 0.25), other, value)


def _exchanged(value: torch.Tensor, seed: int) -> torch.Tensor:
    """At least two of the elements that are neither the first nor the last get each other's values, if there are two."""
    other = value.clone().reshape(-1)
    inner = other[1:-1]
    draw = torch.Generator().manual_seed(seed)
    chosen = torch.randperm(inner.numel(), generator=draw)[: max(2, inner.numel() // 4)].to(value.device)
    inner[chosen] = inner[chosen.roll(1)]
    return other.view(value.shape)


@contextlib.contextmanager
def odd_weights() -> Iterator[None]:
    """Weights that are the same everywhere have other values when a module is made in the block: those of PyTorch's norms,
    with their running means and variances, and any `nn.Parameter` that has its values when it is registered; buffers of the
    state too, where all elements are equal. Draws nothing from the default generator."""
    originals = {kind: kind.reset_parameters for kind in FILLING_MODULES}
    register = torch.nn.Module.register_parameter
    register_as_buffer = torch.nn.Module.register_buffer

    def vary(tensor: torch.Tensor) -> None:
        with torch.no_grad():
            other = varied(tensor, next(seeds))
            tensor.copy_(filled(other, next(seeds)) if has_fractions(tensor) and bool(other.any()) else other)

    def register_buffer(self: torch.nn.Module, name: str, tensor: torch.Tensor | None, persistent: bool = True) -> None:
        if persistent and tensor is not None and tensor.numel() > 1 and bool((tensor == tensor.reshape(-1)[0]).all()):
            tensor = tensor.clone()  # it may be the row of a table that others read
            vary(tensor)
        register_as_buffer(self, name, tensor, persistent)

    def register_parameter(self: torch.nn.Module, name: str, param: torch.nn.Parameter | None) -> None:
        if param is not None and has_fractions(param):
            vary(param)  # those that are drawn afterwards, as `torch.nn` does, are as without
        register(self, name, param)

    def odd(original: Any) -> Any:
        def reset_parameters(self: torch.nn.Module) -> None:
            original(self)
            for tensor in [*self.parameters(), *self.buffers()]:
                if has_fractions(tensor):
                    vary(tensor)

        return reset_parameters

    seeds = itertools.count(secrets.randbits(48))
    for kind, original in originals.items():
        kind.reset_parameters = odd(original)
    torch.nn.Module.register_parameter = register_parameter
    torch.nn.Module.register_buffer = register_buffer
    try:
        yield
    finally:
        torch.nn.Module.register_parameter = register
        torch.nn.Module.register_buffer = register_as_buffer
        for kind, original in originals.items():
            kind.reset_parameters = original
