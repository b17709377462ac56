"""What cuobjdump says of kernels, read; and NVIDIA's occupancy calculator, at points read off it."""

from __future__ import annotations

import pytest

from dice.kernels.builder.resource_usage import Multiprocessor, blocks_at_once, occupancy, read_usage

H100 = Multiprocessor(threads=2048, blocks=32, registers=65536, shared_bytes=233472, reserved_bytes=1024)
RTX_3090 = Multiprocessor(threads=1536, blocks=16, registers=65536, shared_bytes=102400, reserved_bytes=1024)

# In the form of `cuobjdump --dump-resource-usage` (NVIDIA, CUDA Binary Utilities), for an extension with two kernels.
SAID = """
Fatbin elf code:
================
arch = sm_90
code version = [1,7]
host = linux
compile_size = 64bit

Resource usage:
 Common:
  GLOBAL:0
 Function _Z9row_meansPKfPfi:
  REG:18 STACK:0 SHARED:512 LOCAL:0 CONSTANT[0]:548 TEXTURE:0 SURFACE:0 SAMPLER:0
 Function _Z5spillPf:
  REG:255 STACK:96 SHARED:0 LOCAL:8 CONSTANT[0]:536 TEXTURE:0 SURFACE:0 SAMPLER:0
"""


def test_usage_is_read() -> None:
    spill, means = read_usage(SAID, H100)
    assert (spill.kernel, spill.registers, spill.shared_bytes, spill.local_bytes) == ("_Z5spillPf", 255, 0, 104)
    assert (means.kernel, means.registers, means.shared_bytes, means.local_bytes) == ("_Z9row_meansPKfPfi", 18, 512, 0)
    assert means.occupancy[256] == 1.0
    assert spill.occupancy[1024] == 0.0  # it cannot be launched
    assert read_usage("no device code", H100) == []


@pytest.mark.parametrize(
    ("processor", "registers", "shared", "threads", "share"),
    [
        (H100, 32, 0, 256, 1.0),
        (H100, 64, 0, 256, 0.5),
        (H100, 65, 0, 256, 0.375),  # 72 registers, by 8 for each thread: 28 warps, 3 blocks of 8
        (H100, 128, 0, 256, 0.25),
        (H100, 32, 0, 32, 0.5),  # 32 blocks of one warp
        (H100, 32, 49152, 256, 0.5),  # 4 blocks of 48 KiB and 1 KiB
        (H100, 32, 0, 48, 1.0),  # a block takes whole warps
        (RTX_3090, 32, 0, 64, 2 / 3),  # 16 blocks
        (RTX_3090, 40, 0, 1024, 2 / 3),
    ],
)
def test_occupancy(processor: Multiprocessor, registers: int, shared: int, threads: int, share: float) -> None:
    assert occupancy(registers, shared, threads, processor) == pytest.approx(share)


def test_blocks_by_capability() -> None:
    assert [blocks_at_once(capability) for capability in ((7, 5), (8, 0), (8, 6), (8, 9), (9, 0))] == [
        16,
        32,
        16,
        24,
        32,
    ]
