"""Which memory of PyTorch's allocator may be overwritten before a call, and where a call's tensors then lie."""

from __future__ import annotations

from typing import Any, cast

import pytest
import torch

from dice.kernels.candidate.answer_traces import AnswerTraces
from dice.kernels.candidate.poison import Poison, freed_blocks, whole_block
from dice.kernels.sandbox.cuda_runtime import CudaRuntime

MIB = 1 << 20


def test_only_blocks_that_nothing_uses_and_no_graph_replays_into() -> None:
    in_use = {"address": 0, "size": 512, "state": "active_allocated"}
    in_flight = {"address": 512, "size": 512, "state": "active_awaiting_free"}
    free = {"address": 1024, "size": 1024, "state": "inactive"}
    common = {"segment_pool_id": (0, 0), "blocks": [in_use, in_flight, free]}
    of_a_graph = {"segment_pool_id": (0, 1), "blocks": [free | {"address": 4096}]}
    assert list(freed_blocks([common, of_a_graph])) == [(1024, 1024)]


@pytest.mark.parametrize(
    ("piece_bytes", "whole"), [(0, 0), (2 * MIB, 0), (2 * MIB + 1, 2 * MIB), (32 * MIB + (1 << 16), 32 * MIB)]
)
def test_a_segment_is_shorter_than_the_copy_that_shows_it(piece_bytes: int, whole: int) -> None:
    assert whole_block(piece_bytes) == whole


class Fills:
    """In the place of the CUDA runtime: the sizes that it is told to fill."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def fill(self, address: int, byte: int, size: int) -> None:
        self.sizes.append(size)

    def synchronize(self) -> None:
        pass


@pytest.mark.parametrize(
    ("piece_bytes", "between"),
    [
        (0, []),  # nothing is copied
        (AnswerTraces(8 * MIB, on_gpu=True).most_piece, [32 * MIB] * 2),
        (256 * MIB + 1, []),  # the large segment is short enough itself
        (1024 * MIB, []),
    ],
)
def test_segments_that_copies_show_whole(monkeypatch: pytest.MonkeyPatch, piece_bytes: int, between: list[int]) -> None:
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (4096 * MIB, 4096 * MIB))
    fills = Fills()
    Poison(cast(CudaRuntime, fills), torch.device("cpu")).spread([torch.zeros(4)], 255, piece_bytes)
    assert fills.sizes == [MIB] * 8 + [256 * MIB, *between]


def segment_bytes(tensor: torch.Tensor) -> int:
    """Size of the segment of PyTorch's allocator in which a tensor of a GPU lies."""
    segments: list[dict[str, Any]] = torch.cuda.memory_snapshot()
    address = tensor.data_ptr()
    return next(each["total_size"] for each in segments if 0 <= address - each["address"] < each["total_size"])


@pytest.mark.gpu
@pytest.mark.parametrize(("size", "copied", "is_whole"), [(3, False, False), (3, True, True), (60, True, True)])
def test_where_a_workspace_lies(size: int, copied: bool, is_whole: bool) -> None:
    """The allocator's choice, which no test without a GPU can show. size: in units of half a MiB."""
    torch.cuda.empty_cache()
    held = [  # noqa: F841 - what other tests of this process left free would be preferred
        torch.empty(size_bytes, dtype=torch.uint8, device="cuda")
        for _, size_bytes in sorted(freed_blocks(torch.cuda.memory_snapshot()), key=lambda block: -block[1])
    ]
    piece_bytes = AnswerTraces(8 * MIB, on_gpu=True).most_piece
    Poison(CudaRuntime(), torch.device("cuda")).spread([], 255, piece_bytes if copied else 0)
    workspace = torch.empty(size * MIB // 2, dtype=torch.uint8, device="cuda")
    assert (segment_bytes(workspace) < piece_bytes) is is_whole
