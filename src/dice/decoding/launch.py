# pyright: reportArgumentType=false, reportMissingImports=false, reportCallIssue=false
"""What a Triton kernel does before the kernel in front of it has ended.

From Hopper on a kernel may be set up while its predecessor still runs (programmatic dependent launch). Every kernel of
the chain waits for the whole of its predecessor before it touches what that wrote, so none overtakes the one before. The
weights of the next product depend on nothing: programs behind a short kernel's own ask for them at once, and they are on
their way to the L2 cache while the short kernels between two products leave the memory idle.
"""

from __future__ import annotations

from typing import NamedTuple

import triton
import triton.language as tl
from torch import Tensor

from dice.decoding import cuda_kernel

FETCH_BYTES = 2**24
"""Weights that a kernel asks for: what memory brings in the time of a short kernel, and little of the L2 cache."""
FETCH_CHUNK = 512
"""Elements that a thread asks for."""


def overlap(x: Tensor) -> dict[str, bool]:
    """Launch options of a kernel that works on `x`; where OVERLAP is set it has to wait by itself."""
    overlaps = x.is_cuda and cuda_kernel.has_dependent_launch(x.device.index or 0)
    return {"OVERLAP": True, "launch_pdl": True} if overlaps else {"OVERLAP": False}


@triton.jit
def ask(address, size):
    """`size` bytes (a multiple of 16, or 0) from each address (a multiple of 16) to the L2 cache; nobody waits for it."""
    tl.inline_asm_elementwise(
        "{ .reg .pred some; setp.gt.s32 some, $2, 0; @some cp.async.bulk.prefetch.L2.global [$1], $2; mov.b32 $0, $2; }",
        "=r,l,r", [address, size], dtype=tl.int32, is_pure=False, pack=1,
    )  # fmt: skip


@triton.jit
def fetch_part(weights, size, part, LANES: tl.constexpr, CHUNK: tl.constexpr):
    """Program `part` of those that ask for the first `size` elements; LANES threads a program."""
    place = (part.to(tl.int64) * LANES + tl.arange(0, LANES)) * CHUNK
    elements = tl.minimum(tl.maximum(size - place, 0), CHUNK).to(tl.int32)
    ask((weights + place).to(tl.int64), elements * (weights.dtype.element_ty.primitive_bitwidth // 8))


class Fetching(NamedTuple):
    """What programs behind a kernel's own ask for: `size` elements of `weights`, shared by `programs`."""

    weights: Tensor
    size: int
    programs: int


def fetching(weights: Tensor | None, x: Tensor, warps: int) -> Fetching:
    """The beginning of `weights`, in programs of so many warps; nothing where kernels do not overlap."""
    if weights is None or not overlap(x)["OVERLAP"] or weights.data_ptr() % 16:
        return Fetching(x, 0, 0)
    size = min(weights.numel(), FETCH_BYTES // weights.element_size()) // 64 * 64
    return Fetching(weights, size, triton.cdiv(size, 32 * warps * FETCH_CHUNK))
