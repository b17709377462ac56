"""The values of a tensor without their order: whether memory holds an answer rearranged."""

from __future__ import annotations

import functools

import torch

from dice.kernels.likeness.places import FEW, exactness

_LARGEST_SORT = 1 << 21
"""Elements; larger pieces are not looked through for rearranged values."""
_QUANTILES = 4096


class Distribution:
    """The values of a tensor that are finite and not zero, without their order, scale and shift."""

    def __init__(self, tensor: torch.Tensor) -> None:
        values = tensor.reshape(-1).double()
        values = values[values.isfinite() & (values != 0)]
        self.count = values.numel()
        distinct = values[:: max(1, self.count // 64)].unique().numel()
        self.tells = self.count >= FEW * FEW and distinct >= FEW
        self.values = (values - values.mean()) / values.std() if self.tells else values
        self._close = exactness(tensor.dtype)

    def is_like(self, other: Distribution) -> bool:
        """Whether both have the same values, up to scale and shift.

        Two samples of one distribution differ in their quantiles by about one over the root of their size; only the same
        values agree as closely as this asks.
        """
        close = self._close
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


def may_be_rearranged(answer: torch.Tensor, memory: torch.Tensor) -> bool:
    """Whether the memory is as large as one would be that holds the answer's values and little else."""
    n, size = answer.numel(), memory.numel()
    return answer.is_floating_point() and FEW * FEW <= n <= size <= min(2 * n + 512, _LARGEST_SORT)
