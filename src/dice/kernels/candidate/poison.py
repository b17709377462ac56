"""Poison in the memory that a GPU's allocator hands out next: outputs that were never written are not zero by luck."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch

from dice.kernels.sandbox import values
from dice.kernels.sandbox.cuda_runtime import CudaRuntime

_SMALL_BLOCK, _LARGE_POISON = 1 << 20, 256 << 20
_GRANULE = 2 << 20
"""Bytes; PyTorch's allocator asks the driver for multiples of it, where it asks for more than 10 MiB."""
_WHOLE_BLOCKS = 2
"""Segments that copies show whole."""
_COMMON_POOL = (0, 0)
"""Of segments that belong to no CUDA graph, which may replay into its own freed memory."""


class Poison:
    """For one device."""

    def __init__(self, cuda: CudaRuntime, device: torch.device) -> None:
        self._cuda, self._device = cuda, device
        self._free_bytes: int | None = None

    def spread(self, inputs: Any, fill: int, piece_bytes: int = 0) -> None:
        """Fill what would be handed out next with a byte: a few small blocks, and one of at least twice the inputs' size.

        piece_bytes: how much is copied behind each pointer of a launch; 0: nothing. A copy ends with its segment of the
        allocator: of a tensor in the large segment it would show no end, so that more may lie behind it. Then there are two
        shorter segments too. The allocator prefers them, because it takes the smallest free block that is enough.
        """
        large = max(_LARGE_POISON, 2 * values.lay_out(list(inputs))[2])
        if self._free_bytes is None or large > _LARGE_POISON:  # rarely: the driver may be making another's context
            self._free_bytes = torch.cuda.mem_get_info(self._device)[0]
        large = min(large, self._free_bytes // 4)
        blocks = [torch.empty(_SMALL_BLOCK, dtype=torch.uint8, device=self._device) for _ in range(8)]
        blocks.append(torch.empty(large, dtype=torch.uint8, device=self._device))
        if 0 < (whole := whole_block(piece_bytes)) < min(large, _LARGE_POISON):
            blocks += [torch.empty(whole, dtype=torch.uint8, device=self._device) for _ in range(_WHOLE_BLOCKS)]
        for block in blocks:  # not by a kernel of PyTorch's: loading one costs each candidate a turn with the driver
            self._cuda.fill(block.data_ptr(), fill, block.numel())
        self._cuda.synchronize()

    def overwrite_freed(self, fill: int) -> None:
        """Fill all memory of PyTorch's allocator that nothing uses. It holds inputs and outputs of earlier calls, and copies
        of what kernels are led to reach past their tensors into it."""
        for address, size in freed_blocks(torch.cuda.memory_snapshot()):
            self._cuda.fill(address, fill, size)
        self._cuda.synchronize()


def whole_block(piece_bytes: int) -> int:
    """Size in bytes of the longest segment that a copy of at most `piece_bytes` shows whole, with a byte to spare."""
    return max(0, piece_bytes - 1) // _GRANULE * _GRANULE


def freed_blocks(segments: Iterable[Mapping[str, Any]]) -> Iterator[tuple[int, int]]:
    """Address and size in bytes of each block that nothing uses. segments: of `torch.cuda.memory_snapshot`."""
    for segment in segments:
        if tuple(segment.get("segment_pool_id", _COMMON_POOL)) == _COMMON_POOL:
            yield from (
                (block["address"], block["size"]) for block in segment["blocks"] if block["state"] == "inactive"
            )
