# pyright: reportMissingImports=false
"""Products of few rows: the fused Triton kernel or cuBLAS with separate kernels around it, whichever is faster here.

The choice is measured once per kind and size on the weights themselves, with the L2 cache flushed between runs, and
kept in `Products.choices` for the record.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import functional as F

from dice.decoding.kernels import SMALL_ROWS, SMALL_SHAPES, add_rms_norm, gate, small_product

Shape = tuple[int, int, int, int]


@dataclass
class Products:
    """Chooses and applies. `measure=False` takes the first shape of the fused kernel unmeasured."""

    eps: float
    measure: bool = True
    choices: dict[str, str] = field(default_factory=dict)
    """What was chosen, with microseconds of every alternative."""
    _chosen: dict[tuple, Shape | None] = field(default_factory=dict)

    def __call__(
        self,
        x: Tensor,
        w: Tensor,
        *,
        norm: Tensor | None = None,
        gated: bool = False,
        residual: Tensor | None = None,
    ) -> Tensor:
        """rms_norm(x) @ w.T (+ residual), or silu(gate) * up of it; as `kernels.small_product`, for any rows."""
        rows = x.shape[0]
        shape = None
        if rows <= SMALL_ROWS:
            padded = max(16, 1 << (rows - 1).bit_length())
            key = (padded, tuple(w.shape), norm is not None, gated, residual is not None)
            if key not in self._chosen:
                self._chosen[key] = self._choose(key, x, w, norm, gated, residual)
            shape = self._chosen[key]
        if shape is None:
            return self._separate(x, w, norm, gated, residual)
        return small_product(x, w, norm=norm, eps=self.eps, gated=gated, residual=residual, shape=shape)

    def _separate(self, x: Tensor, w: Tensor, norm: Tensor | None, gated: bool, residual: Tensor | None) -> Tensor:
        if norm is not None:
            _, x = add_rms_norm(x, None, norm, self.eps)
        if residual is not None:
            return torch.addmm(residual, x, w.T)
        out = F.linear(x, w)
        return gate(out) if gated else out

    def _choose(
        self, key: tuple, x: Tensor, w: Tensor, norm: Tensor | None, gated: bool, residual: Tensor | None
    ) -> Shape | None:
        if not self.measure:
            return SMALL_SHAPES[0]
        from triton.runtime.errors import OutOfResources
        from triton.testing import do_bench

        def run(shape: Shape | None) -> Tensor:
            if shape is None:
                return self._separate(x, w, norm, gated, residual)
            return small_product(x, w, norm=norm, eps=self.eps, gated=gated, residual=residual, shape=shape)

        times: dict[Shape | None, float] = {}
        for shape in (None, *SMALL_SHAPES):
            try:
                time_ms = do_bench(lambda shape=shape: run(shape), warmup=3, rep=15, return_mode="median")
                assert isinstance(time_ms, float)
                times[shape] = time_ms
            except OutOfResources:  # this shape needs more shared memory than the GPU has
                continue
        best = min(times, key=lambda shape: times[shape])
        name = f"{key[0]} rows x {key[1][0]}x{key[1][1]}{' gated' if gated else ''}{' +residual' if key[4] else ''}"
        self.choices[name] = f"{best or 'cublas'}: " + ", ".join(
            f"{shape or 'cublas'} {1000 * time:.1f}" for shape, time in times.items()
        )
        return best
