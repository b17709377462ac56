"""What kernels of a built object use of a GPU, as cuobjdump says, and how many of their threads fit onto a multiprocessor.

cuobjdump reads what a candidate wrote, so it runs in the jail of compilers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from dice.kernels.builder.compiler import Workbench
from dice.kernels.builder.device_image import readable_names
from dice.kernels.records.explanation import KernelUse

BLOCK_SIZES = (64, 128, 256, 512, 1024)
_WARP, _REGISTERS_TOGETHER, _SHARED_TOGETHER = 32, 256, 128
_FUNCTION = re.compile(r"^\s*Function ([^\s:]+):\s*\n((?:\s+[A-Z]+(?:\[\d+\])?:\d+)+)", re.MULTILINE)
_VALUE = re.compile(r"([A-Z]+(?:\[\d+\])?):(\d+)")


@dataclass(frozen=True)
class Multiprocessor:
    """Limits of one multiprocessor."""

    threads: int
    blocks: int
    registers: int
    shared_bytes: int
    reserved_bytes: int
    """Shared memory that the system takes of each block."""


def blocks_at_once(capability: tuple[int, int]) -> int:
    """Most resident blocks (CUDA programming guide, technical specifications by compute capability)."""
    return {(7, 5): 16, (8, 6): 16, (8, 7): 16, (8, 9): 24, (12, 0): 24, (12, 1): 24}.get(capability, 32)


def kernel_uses(bench: Workbench, shared_object: Path, cuobjdump: str, processor: Multiprocessor) -> list[KernelUse]:
    """The kernels of a shared object in the folder of `bench`, by name. Raises what `Workbench.capture` raises."""
    found = read_usage(bench.capture([cuobjdump, "--dump-resource-usage", shared_object], "dice_usage"), processor)
    names = readable_names(bench, (use.kernel for use in found))
    return [use.model_copy(update={"kernel": name}) for use, name in zip(found, names, strict=True)]


def read_usage(output: str, processor: Multiprocessor) -> list[KernelUse]:
    """`cuobjdump --dump-resource-usage` by mangled name; of several architectures the last one that is listed."""
    uses: dict[str, KernelUse] = {}
    for name, values in _FUNCTION.findall(output):
        used = {key: int(value) for key, value in _VALUE.findall(values)}
        registers, shared = used.get("REG", 0), used.get("SHARED", 0)
        uses[name] = KernelUse(
            kernel=name,
            registers=registers,
            shared_bytes=shared,
            local_bytes=used.get("STACK", 0) + used.get("LOCAL", 0),
            occupancy={threads: occupancy(registers, shared, threads, processor) for threads in BLOCK_SIZES},
        )
    return [uses[name] for name in sorted(uses)]


def occupancy(registers: int, shared_bytes: int, threads: int, processor: Multiprocessor) -> float:
    """Share of a multiprocessor's threads that are resident with blocks of `threads` (NVIDIA's occupancy calculator:
    registers are given to warps 256 at a time, shared memory to blocks 128 bytes at a time)."""
    warps = -(-threads // _WARP)
    fitting = [processor.blocks, processor.threads // (warps * _WARP)]
    if registers:
        by_warp = -(-registers * _WARP // _REGISTERS_TOGETHER) * _REGISTERS_TOGETHER
        fitting.append(processor.registers // by_warp // warps)
    taken = -(-(shared_bytes + processor.reserved_bytes) // _SHARED_TOGETHER) * _SHARED_TOGETHER
    if taken:
        fitting.append(processor.shared_bytes // taken)
    return min(fitting) * warps * _WARP / processor.threads
