"""Finite numbers in the memory that is handed out next, as a program finds them there whose memory nobody has filled.

Fresh memory that is NaN all over would tell a candidate that it is judged. And a program finds its last answer there: who
only looks whether it is still right computes nothing.
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
_ALL_OPERATORS = (
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.bool,
)  # fmt: skip
_LARGEST = 1 << 26
"""Bytes; larger memory is left as it is, so that no candidate runs out of it."""
_DRAWN = 1 << 16
"""Numbers that are drawn; longer memory repeats them."""
LEFT_OVER = -1
"""In the place of a byte: new memory holds what earlier calls and finite numbers have left there."""
LAST_ANSWER = -2
"""In the place of a byte that new memory is filled with: it holds the last answer, with a few wrong elements."""
_FEW = 64
"""One element of so many is wrong."""
_ROOM, _MOST_BLOCKS = 1 << 19, 32
"""Bytes of the free memory with one answer, and in how many pieces at most: small ones fit into many gaps."""
_SLACK = 128
"""Bytes by which a piece of glibc's heap must be larger to be given away again, since PyTorch asks for aligned memory."""


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


def nearly_right(outputs: object) -> list[torch.Tensor]:
    """Copies of an answer's tensors on the host, each with a few wrong elements, other ones each time. Not of those that are
    larger than what is left in memory, or have a type for which PyTorch has few operators."""
    generator = torch.Generator().manual_seed(int.from_bytes(os.urandom(6), "little"))
    answers = [leaf for leaf in tensors_of(outputs) if leaf.layout is torch.strided and 0 < leaf.nbytes <= _LARGEST]
    return [_spoilt(leaf.detach().cpu(), generator) for leaf in answers if leaf.dtype in _ALL_OPERATORS]


def _spoilt(answer: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    flat = answer.reshape(-1).clone()
    wrong = torch.randint(flat.numel(), (-(-flat.numel() // _FEW),), generator=generator)
    flat[wrong] = ~flat[wrong] if flat.dtype == torch.bool else flat[wrong] + 1 + flat[wrong].abs()
    return flat


def leave(answers: Sequence[torch.Tensor], device: torch.device) -> list[torch.Tensor]:
    """Free memory of the size of each answer [n] with it in it, several times. Whether a call gets it, the allocator decides.

    To be held meanwhile: what lies between, so that no pieces are joined, of which an allocator gives other places away.
    """
    between = []
    for answer in answers:
        size = answer.nbytes + (_SLACK if device.type == "cpu" else 0)
        torch.empty(size, dtype=torch.uint8, device=device)  # then such memory is the heap's, and no mapping of its own
        many = max(_BLOCKS, min(_ROOM // size, _MOST_BLOCKS))
        blocks = [torch.empty(size, dtype=torch.uint8, device=device) for _ in range(2 * many)]
        for block in blocks:
            block[: answer.nbytes].view(answer.dtype).copy_(answer)
        between += blocks[1::2]
    return between
