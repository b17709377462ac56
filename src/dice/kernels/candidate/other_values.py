"""Other values for tensors that are the same everywhere at first, so that it shows whether anybody reads them."""

from __future__ import annotations

import contextlib
import itertools
import secrets
from collections.abc import Iterator
from typing import Any

import torch


def varied(value: torch.Tensor, seed: int) -> torch.Tensor:
    """Other values of the same kind: none negative where all were positive, 0 and 1 for counts and masks."""
    draw = torch.Generator(value.device).manual_seed(seed)
    random = torch.rand(value.shape, generator=draw, device=value.device)
    if value.dtype == torch.bool:
        return random < 0.75
    if not value.is_floating_point():
        return (random < 0.5).to(value.dtype)
    factors = (0.5 + random).to(value.dtype)
    return value * factors if bool(value.any()) else factors - 1


def balanced(value: torch.Tensor, seed: int) -> torch.Tensor:
    """Other values of the same kind that change none of the few numbers which may stand for all: the first, the last, and
    for floating-point values the sum. A tensor of fewer than four elements stays as it is."""
    other = value.clone().reshape(-1)
    inner = other[1:-1]
    pairs = inner[: inner.numel() // 2 * 2].view(-1, 2)
    if not value.is_floating_point():
        inner.copy_(varied(inner, seed))
    elif pairs.numel():
        draw = torch.Generator(value.device).manual_seed(seed)
        step = 0.25 + 0.5 * torch.rand(pairs.shape[0], generator=draw, device=value.device).to(value.dtype)
        step *= inner.abs().max() or 1.0
        pairs[:, 0] += step
        pairs[:, 1] -= step
    return other.view(value.shape)


def punched(value: torch.Tensor, seed: int) -> torch.Tensor:
    """Zeros among the values, for a mask that is compared with 0."""
    draw = torch.Generator(value.device).manual_seed(seed)
    return value * (torch.rand(value.shape, generator=draw, device=value.device) < 0.75).to(value.dtype)


def bounded(value: torch.Tensor, seed: int) -> torch.Tensor:
    """As `balanced`, with the largest value kept instead of the sum."""
    other = value.clone().reshape(-1)
    if value.is_floating_point() and other.numel() > 2:
        draw = torch.Generator(value.device).manual_seed(seed)
        share = 0.25 + 0.5 * torch.rand(other.numel() - 2, generator=draw, device=value.device).to(value.dtype)
        other[1:-1] -= share * (other.abs().max() or 1.0)
    return other.view(value.shape)


def shuffled(value: torch.Tensor, seed: int) -> torch.Tensor:
    """The same rows in another order: what is valid stays so, as positions in a table do."""
    draw = torch.Generator().manual_seed(seed)
    return value[torch.randperm(len(value), generator=draw).to(value.device)]


@contextlib.contextmanager
def odd_weights_of_norms() -> Iterator[None]:
    """PyTorch's norms that are made in the block have random weights, running means and variances. Draws nothing from the
    default generator, so that all other weights are as without."""
    kinds: tuple[Any, ...] = (
        torch.nn.modules.batchnorm._NormBase,
        torch.nn.LayerNorm,
        torch.nn.GroupNorm,
        torch.nn.RMSNorm,
    )
    originals = {kind: kind.reset_parameters for kind in kinds}

    def odd(original: Any) -> Any:
        def reset_parameters(self: torch.nn.Module) -> None:
            original(self)
            with torch.no_grad():
                for tensor in [*self.parameters(), *self.buffers()]:
                    if tensor.is_floating_point():
                        tensor.copy_(varied(tensor, next(seeds)))

        return reset_parameters

    seeds = itertools.count(secrets.randbits(48))
    for kind, original in originals.items():
        kind.reset_parameters = odd(original)
    try:
        yield
    finally:
        for kind, original in originals.items():
            kind.reset_parameters = original
