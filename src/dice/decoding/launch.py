"""Kernels that are set up before the kernel in front of them has ended (programmatic dependent launch, from Hopper on).

Every kernel of the chain waits for the whole of its predecessor before it touches what that wrote, so none overtakes the
one before. A short kernel lets the next one start at once. A kernel that fills the GPU does so when its loads are under
way or done: measured on an H200, programs of later kernels that came to lie beside it halved its speed (the likely reason:
they take registers, and shared memory that they ask for is taken from the L1 cache, through which its loads went).
"""

from __future__ import annotations

from torch import Tensor

from dice.decoding import cuda_kernel


def overlap(x: Tensor) -> dict[str, bool]:
    """Launch options of a Triton kernel that works on `x`; where OVERLAP is set it has to wait by itself."""
    overlaps = x.is_cuda and cuda_kernel.has_dependent_launch(x.device.index or 0)
    return {"OVERLAP": True, "launch_pdl": True} if overlaps else {"OVERLAP": False}
