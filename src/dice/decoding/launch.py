"""Kernels that are set up before the kernel in front of them has ended (programmatic dependent launch, from Hopper on).

Every kernel of the chain waits for the end of its predecessor before it touches what that one wrote. A short kernel lets
the next one start at once. A kernel that fills the GPU lets it start only when its own loads are in flight or done:
measured on an H200, programs of later kernels beside it halved its speed (probably because they take registers, and
their shared memory is taken from the L1 cache that the loads go through).
"""

from __future__ import annotations

from torch import Tensor

from dice.decoding import cuda_kernel


def overlap(x: Tensor) -> dict[str, bool]:
    """Launch options of a Triton kernel that works on `x`; with OVERLAP set, the kernel must wait by itself."""
    overlaps = x.is_cuda and cuda_kernel.has_dependent_launch(x.device.index or 0)
    return {"OVERLAP": True, "launch_pdl": True} if overlaps else {"OVERLAP": False}
