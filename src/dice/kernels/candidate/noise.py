"""Finite numbers in the memory that is handed out next, as a program finds them there whose memory nobody has filled.

Fresh memory that is NaN all over would tell a candidate that it is judged.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

import torch

from dice.kernels.sandbox.leaves import tensors_of

_USUAL = tuple(1 << power for power in range(6, 22))
"""Sizes in bytes of what a program may ask for besides."""
_BLOCKS = 4
"""Of each size."""
_LARGEST = 1 << 26
"""Bytes; larger memory is left as it is, so that no candidate runs out of it."""
_DRAWN = 1 << 16
"""Numbers that are drawn; longer memory repeats them."""


def sizes_of(values: Iterable[object]) -> list[int]:
    """Sizes in bytes of the tensors among nested values."""
    return [tensor.nbytes for tensor in tensors_of(list(values)) if tensor.layout is torch.strided]


def leave_noise(sizes: Sequence[int], device: torch.device) -> None:
    """Free memory of these sizes, and of usual ones, with noise in it. Whether a call gets it, the allocator decides."""
    noisy_blocks(sizes, device)


def noisy_blocks(sizes: Sequence[int], device: torch.device) -> list[torch.Tensor]:
    """Tensors fp32 of these sizes in bytes, and of usual ones, with normal numbers, other ones each time.

    The default generator is left as it was; a device's memory is written by copies from the host's.
    """
    generator = torch.Generator().manual_seed(int.from_bytes(os.urandom(6), "little"))
    scale = 2.0 ** int(torch.randint(-6, 4, (), generator=generator))
    noise = torch.randn(_DRAWN, generator=generator) * scale
    blocks = [torch.empty(-(-size // 4), dtype=torch.float32, device=device) for size in sizes if 0 < size <= _LARGEST]
    blocks += [torch.empty(size // 4, dtype=torch.float32, device=device) for size in _USUAL for _ in range(_BLOCKS)]
    for block in blocks:
        for part in block.split(_DRAWN):
            part.copy_(noise[: part.numel()])
    return blocks
