"""Weights on their way to the L2 cache before the product that reads them can start.

Between two products the memory idles: attention, norms, gates and the ends and beginnings of kernels leave it nothing to
do. What can be asked for then is known, since weights depend on nothing. A kernel asks (`cp.async.bulk.prefetch.L2`, from
Hopper on) for a piece of every row of a matrix, and nobody waits for it; pieces of all rows, since the blocks of a product
each take some rows and should all be served alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from dice.decoding import cuda_kernel

Name = Literal["qkv", "o", "gate_up", "down"]
MIB = 2**20
MOST_ROWS = 64
"""Rows up to which weights are fetched ahead: beyond, products are not bound by reading them."""
KEYS = 0
"""Keys that a program of attention asks for while it waits; 0, or at least 128."""
_UNIT = 128
"""Bytes of a piece are a multiple of this: a line of the L2 cache."""
_PROGRAMS = 128
"""Programs that do nothing but ask, behind those of a short Triton kernel: about one for each processor."""


@dataclass(frozen=True)
class Amounts:
    """Bytes that one product of a layer brings into the L2 cache."""

    own: int = 0
    """Of its own weights, before it starts. Of a product by cuBLAS: while the norm or attention in front of it runs."""
    early: int = 0
    """Of the weights behind it, while the product waits."""
    late: int = 0
    """Of the weights behind it, once all loads of the product are under way. By cuBLAS: while the gate runs."""


FEW_ROWS: dict[Name, Amounts] = {
    "qkv": Amounts(),
    "o": Amounts(),
    "gate_up": Amounts(),
    "down": Amounts(),
}
"""With the kernel for few rows."""
MORE_ROWS: dict[Name, Amounts] = {
    "qkv": Amounts(),
    "o": Amounts(),
    "gate_up": Amounts(),
    "down": Amounts(),
}
"""With cuBLAS."""


@dataclass(frozen=True)
class Piece:
    """The first `size` bytes of every row of a matrix; 0: nothing."""

    weights: Tensor
    size: int = 0

    @property
    def rows(self) -> int:
        """Rows of the matrix."""
        return self.weights.shape[0]

    @property
    def stride(self) -> int:
        """Bytes from row to row."""
        return self.weights.stride(0) * self.weights.element_size()

    @property
    def programs(self) -> int:
        """Programs that ask for it behind those of a short kernel."""
        return _PROGRAMS if self.size else 0


def piece(weights: Tensor, amount: int, skipped: int = 0) -> Piece:
    """`amount` bytes of a matrix, shared by its rows; `skipped` bytes of each row come by another way."""
    rows, row_bytes = weights.shape[0], weights.shape[1] * weights.element_size()
    if weights.data_ptr() % 16 or row_bytes % 16 or not weights.is_contiguous():
        return Piece(weights)
    return Piece(weights, max(0, min(amount // rows // _UNIT * _UNIT, row_bytes - skipped)))


@dataclass(frozen=True)
class Ahead:
    """What a product asks for besides its work: for itself, and of the weights `following` it."""

    amounts: Amounts
    following: Tensor | None


def amounts_of(rows: int, few: int, x: Tensor) -> Mapping[Name, Amounts]:
    """For a step of so many rows, of which `few` are the kernel for few rows; nothing where kernels do not overlap."""
    if rows > MOST_ROWS or not x.is_cuda or not cuda_kernel.has_dependent_launch(x.device.index or 0):
        return {}
    return FEW_ROWS if rows <= few else MORE_ROWS
