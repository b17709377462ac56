"""Conditions on values: other magnitudes, signs, special numbers, repeated and skewed ids, masks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_structure, tree_unflatten

from dice.kernels.conditions.condition import Condition, Source, changed, has

_MANY = 3
"""Draws of the problem that show what values its ids take."""
_DENORMAL = 1e-40
_SPARSE = 2.0**-8
"""Smallest share of zeros, and of other values."""
_WHOLE = 3
"""Largest number under `whole`."""
_SPREAD = 3.0
"""Powers of ten by which `spread` makes elements larger or smaller."""


def is_real(tensor: torch.Tensor) -> bool:
    """Floating-point tensors."""
    return tensor.is_floating_point()


def is_mask(tensor: torch.Tensor) -> bool:
    """Tensors of booleans."""
    return tensor.dtype is torch.bool


def _reals(change: Callable[[torch.Tensor, torch.Generator], torch.Tensor]) -> Callable[[Source], list[Any] | None]:
    """A change of every floating-point tensor; results keep its dtype, shape and device."""

    def made(source: Source) -> list[Any] | None:
        return changed(source.inputs, is_real, lambda tensor: change(tensor, source.generator).to(tensor.dtype))

    return made


def _random(tensor: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Uniform in [0, 1), in the tensor's shape."""
    return torch.rand(tensor.shape, generator=draw).to(tensor.device)


def _spread(tensor: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    return tensor * 10.0 ** ((2 * _random(tensor, draw) - 1) * _SPREAD)


def _sparse(tensor: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Zeros among the values: nearly all of the first, nearly none of the last, as rows of any length may need it."""
    flat = tensor.reshape(-1)
    shares = torch.linspace(_SPARSE, 1.0 - _SPARSE, len(flat)).to(tensor.device)
    return flat.where(_random(flat, draw) < shares, 0.0).reshape(tensor.shape)


def _whole(tensor: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    return torch.randint(-_WHOLE, _WHOLE + 1, tensor.shape, generator=draw).to(tensor.device)


def _in_order(descending: bool) -> Callable[[torch.Tensor, torch.Generator], torch.Tensor]:
    return lambda tensor, _: tensor.reshape(-1).sort(descending=descending).values.reshape(tensor.shape)


def _with_one(*specials: float) -> Callable[[torch.Tensor, torch.Generator], torch.Tensor]:
    """The tensor with each special number at one place; only where it has eight elements for each."""

    def change(tensor: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
        if tensor.numel() < 8 * len(specials):
            return tensor
        places = torch.randperm(tensor.numel(), generator=draw)[: len(specials)].to(tensor.device)
        flat = tensor.reshape(-1).clone()
        flat[places] = torch.tensor(specials, dtype=tensor.dtype, device=tensor.device)
        return flat.reshape(tensor.shape)

    return change


def _zipf(pool: torch.Tensor, size: torch.Size, draw: torch.Generator) -> torch.Tensor:
    """Few of the values nearly everywhere."""
    weights = 1.0 / torch.arange(1, len(pool) + 1, dtype=torch.float64) ** 2
    return pool[torch.multinomial(weights, math.prod(size), replacement=True, generator=draw)].reshape(size)


def _same(pool: torch.Tensor, size: torch.Size, draw: torch.Generator) -> torch.Tensor:
    """One of the values everywhere."""
    return pool[torch.randint(len(pool), (1,), generator=draw)].expand(size).clone()


def _edges(pool: torch.Tensor, size: torch.Size, draw: torch.Generator) -> torch.Tensor:
    """The smallest and the largest of the values alone."""
    return torch.stack([pool.min(), pool.max()])[torch.randint(2, size, generator=draw)]


def _ids(
    change: Callable[[torch.Tensor, torch.Size, torch.Generator], torch.Tensor],
) -> Callable[[Source], list[Any] | None]:
    """A change of every integer tensor whose values are free: they repeat and have no order in the problem's own draws.
    Only values that the problem draws are used."""

    def made(source: Source) -> list[Any] | None:
        if not has(source.inputs, _free):
            return None
        draws = [tree_leaves(source.inputs), *(tree_leaves(source.other(number)) for number in range(1, _MANY))]
        leaves, found = list(draws[0]), False
        for index, leaf in enumerate(leaves):
            same = [drawn[index] for drawn in draws if index < len(drawn)]
            if not all(torch.is_tensor(one) and _free(one) for one in same):
                continue
            pool = torch.cat([one.reshape(-1) for one in same]).unique().cpu()
            if len(pool) > 1:
                pool = pool[torch.randperm(len(pool), generator=source.generator)]
                leaves[index] = change(pool, leaf.shape, source.generator).to(leaf)
                found = True
        return tree_unflatten(leaves, tree_structure(source.inputs)) if found else None

    return made


def _free(tensor: torch.Tensor) -> bool:
    """Whether integers may be repeated: in the order of a table or all different, they have a meaning together."""
    if tensor.is_floating_point() or tensor.is_complex() or is_mask(tensor) or tensor.numel() < 4:
        return False
    flat = tensor.reshape(-1)
    in_order = bool((flat[1:] >= flat[:-1]).all())
    return not in_order and len(flat.unique()) < len(flat)


def _masks(value: bool) -> Callable[[Source], list[Any] | None]:
    return lambda source: changed(source.inputs, is_mask, lambda tensor: torch.full_like(tensor, value))


def _drawn(source: Source) -> list[Any] | None:
    return source.other(1) if has(source.inputs, lambda tensor: True) else None


def _far_from_zero(sign: int) -> Callable[[Source], list[Any] | None]:
    """Every sum of products of inputs and weights is far from 0: an extreme that begins at 0, 100 or -100 shows."""

    def made(source: Source) -> list[Any] | None:
        first = iter([lambda tensor: sign * 1000.0 * (1.0 + tensor.abs())])
        return changed(source.inputs, is_real, lambda tensor: next(first, torch.abs)(tensor).to(tensor.dtype))

    return made


def _floats(dtype: torch.dtype) -> bool:
    return dtype.is_floating_point


def _no_indices(dtype: torch.dtype) -> bool:
    return dtype.is_floating_point or dtype is torch.bool


DRAWN = Condition("drawn", "inputs and weights as the problem draws them")
VALUES = [
    Condition("other_weights", "weights of another seed in a second model", _drawn, weights="other_seed"),
    Condition("varied_weights", "weights of other magnitudes; no norm's weights are 1, no bias is 0", weights="varied"),
    Condition("small_buffers", "buffers, such as a norm's variances, times 1e-3", weights="small_buffers"),
    Condition("small", "floating-point inputs times 1e-3", _reals(lambda x, _: x * 1e-3)),
    Condition("large", "floating-point inputs times 1e3", _reals(lambda x, _: x * 1e3)),
    Condition("negative", "no floating-point input above 0", _reals(lambda x, _: -x.abs())),
    Condition("positive", "no floating-point input below 0", _reals(lambda x, _: x.abs())),
    Condition(
        "below_zero",
        "the first floating-point input below -1,000, other inputs and all weights positive",
        _far_from_zero(-1),
        weights="positive",
    ),
    Condition(
        "above_zero",
        "the first floating-point input above 1,000, other inputs and all weights positive",
        _far_from_zero(1),
        weights="positive",
    ),
    Condition(
        "weights_below_zero",
        "all parameters below -1,000, no floating-point input below 0",
        _reals(lambda x, _: x.abs()),
        weights="far_below_zero",
    ),
    Condition("rising", "the values of each floating-point input in rising order", _reals(_in_order(False))),
    Condition("falling", "the values of each floating-point input in falling order", _reals(_in_order(True))),
    Condition(
        "zeros",
        "all floating-point inputs 0",
        _reals(lambda x, _: torch.zeros_like(x)),
        compares=_no_indices,
        ties=True,
    ),
    Condition("constant", "all floating-point inputs 0.5", _reals(lambda x, _: torch.full_like(x, 0.5)), ties=True),
    Condition(
        "denormal",
        "floating-point inputs of about 1e-40",
        _reals(lambda x, _: x * _DENORMAL),
        compares=_no_indices,
        ties=True,
    ),
    Condition("spread", "floating-point inputs times 1e-3 to 1e3, drawn for each element", _reals(_spread)),
    Condition(
        "sparse",
        "zeros among the values, nearly all of the first and nearly none of the last",
        _reals(_sparse),
        ties=True,
    ),
    Condition("whole", "floating-point inputs are whole numbers from -3 to 3", _reals(_whole), ties=True),
    Condition(
        "one_nan",
        "one NaN in each floating-point input; compared is what it does not change",
        _reals(_with_one(math.nan)),
        compares=_floats,
        contained=True,
        ties=True,
    ),
    Condition(
        "infinities",
        "one Inf and one -Inf in each floating-point input; NaN is no failure where they reach",
        _reals(_with_one(math.inf, -math.inf)),
        nan_is_open=True,
    ),
    Condition("skewed_ids", "few ids nearly everywhere", _ids(_zipf), ties=True),
    Condition("one_id", "one id everywhere", _ids(_same), ties=True),
    Condition("first_and_last_id", "the smallest and the largest id alone", _ids(_edges), ties=True),
    Condition("mask_on", "masks true everywhere", _masks(True)),
    Condition("mask_off", "masks false everywhere", _masks(False)),
]
