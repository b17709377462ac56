"""What forward leads its kernels to while no kernel runs, and whether the answer is there.

If it is, it was made without the kernels, even if no operator count shows it: by NumPy, by a loop over numbers, by a
library, in an operator of the candidate's own, or by other operators than the reference's. `dice.kernels.likeness` says
which forms of the answer are recognised.

Looked through are the tensors that extensions are given, what the arguments of launches point to (CPU back end), and all
memory of PyTorch's allocator, freed or not (GPU).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from dice.kernels.candidate.probes import storage_address
from dice.kernels.cpu.runtime import CpuRuntime
from dice.kernels.likeness import Form, find_answer

MOST_BYTES = 512 << 20
"""Most bytes of copies kept of one forward; what comes later is not looked through."""
MOST_PIECES = 512


class AnswerTraces:
    """Copies of memory that one forward leads to.

    answer_bytes: size of the outputs that are expected. on_gpu: whether PyTorch's allocator of a GPU is looked through.
    """

    def __init__(self, answer_bytes: int, on_gpu: bool) -> None:
        self._on_gpu = on_gpu
        self._most_piece = 4 * answer_bytes + (1 << 16)
        self._least_piece = answer_bytes // 64
        self._left = MOST_BYTES
        self._pieces: list[torch.Tensor] = []

    def begin(self) -> None:
        """Before the forward."""
        if (runtime := CpuRuntime.loaded()) is not None:
            runtime.keep_arguments(self._most_piece, MOST_BYTES)

    def note(self, function: str, arguments: tuple[Any, ...]) -> None:
        """Keep copies of the tensors that this call of an extension is given."""
        for leaf in tree_leaves(list(arguments)):
            if isinstance(leaf, torch.Tensor) and storage_address(leaf):
                self._keep(leaf.detach().contiguous().reshape(-1).view(torch.uint8))

    def end(self) -> None:
        """After the forward: copy what its kernels would have read and written."""
        if (runtime := CpuRuntime.loaded()) is not None:
            for piece in runtime.kept_arguments():
                self._keep(piece)
            runtime.keep_arguments(0, 0)
        if self._on_gpu:
            for address, size in _blocks():
                if self._least_piece <= size <= self._most_piece:
                    self._keep(_device_memory(address, size))

    def _keep(self, piece: torch.Tensor) -> None:
        if piece.numel() <= self._left and len(self._pieces) < MOST_PIECES:
            self._left -= piece.numel()
            self._pieces.append(torch.empty(piece.shape, dtype=torch.uint8).copy_(piece))

    def shares(self, outputs: Any) -> dict[Form, float]:
        """Share of `outputs` that was there, by form; outputs count by their number of elements."""
        leaves = [leaf.detach().cpu() for leaf in tree_leaves(outputs) if isinstance(leaf, torch.Tensor)]
        whole = sum(leaf.numel() for leaf in leaves)
        found: dict[Form, float] = {}
        for leaf in leaves:
            for form, share in find_answer(leaf, self._pieces).items():
                found[form] = found.get(form, 0.0) + share * leaf.numel() / whole
        return found


class _DeviceMemory:
    """Bytes on the GPU, as others hand them to PyTorch."""

    def __init__(self, address: int, size: int) -> None:
        self.__cuda_array_interface__ = {"shape": (size,), "typestr": "|u1", "data": (address, False), "version": 3}


def _device_memory(address: int, size: int) -> torch.Tensor:
    return torch.as_tensor(_DeviceMemory(address, size), device="cuda")


def _blocks() -> Iterator[tuple[int, int]]:
    """Address and size in bytes of all blocks of PyTorch's allocator, in use or freed."""
    for segment in torch.cuda.memory_snapshot():
        for block in segment["blocks"]:
            yield block["address"], block["size"]
