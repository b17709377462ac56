"""Random choices of one pair: shapes, numbers, and the names and habits of its imagined author.

Everything comes from one `random.Random` seeded by (seed, index, attempt), so a pair depends on nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from dice.data.synthetic.config import SyntheticConfig

Item = TypeVar("Item")

FEATURES = (
    (64, 96, 100, 128, 192, 200, 256, 257, 320, 384, 500, 512, 640, 768, 1000, 1024, 1536, 2048, 4096),
    tuple(range(8, 129)),
)
"""Sizes of a last dimension: large, small."""
_BATCH = (1, 2, 3, 4, 6, 8, 10, 12, 16, 24, 32, 48, 64, 96, 100, 128, 192, 256, 384, 512, 768, 1024, 1500, 2048, 4096)
BATCHES = ((*_BATCH, 8192, 10000, 16384, 32768, 65536), _BATCH)
"""Sizes of a first dimension: large, small."""
ELEMENTS = ((2e5, 1e7), (256.0, 6000.0))
"""Fewest and most elements of a main tensor: large, small."""
BLOCKS = (64, 128, 128, 256, 256, 256, 512, 512, 1024)
"""Threads of a block."""
_CHANNELS_LARGE = (4, 8, 16, 24, 32, 48, 64, 96, 128)
_CHANNELS_SMALL = (2, 3, 4, 5, 6, 8, 12)
_SIDES_LARGE = (16, 20, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128)
_SIDES_SMALL = (5, 6, 7, 8, 9, 10, 12, 14, 16)


def nearest(pool: Sequence[int], target: float) -> int:
    """The member of `pool` that is nearest to `target` in ratio."""
    return min(pool, key=lambda size: abs(math.log(size / max(target, 1.0))))


class Draw:
    """Random choices for pair number `index` of `seed`."""

    def __init__(self, config: SyntheticConfig, seed: int, index: int, attempt: int = 0) -> None:
        # an odd multiplier and disjoint bit ranges keep (seed, index, attempt) apart
        self.rng = Random((seed << 72) ^ (index << 8) ^ attempt)
        self.config = config
        self.small = config.small
        self.tiny = config.scale == "tiny"
        self.plain = config.plain_style
        self.pick = self.rng.choice
        self.random = self.rng.random

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self.rng.random() < probability

    def weighted(self, items: Sequence[Item], weights: Sequence[float]) -> Item:
        """One item, drawn by weight."""
        return self.rng.choices(items, weights)[0]

    def number(self, low: float, high: float, step: float = 0.05) -> float:
        """A short decimal number in [low, high], not zero."""
        return round(low + step * self.rng.randrange(int((high - low) / step + 1.5)), 4) or float(high)

    def elements(self) -> float:
        """Target number of elements of the main tensor."""
        low, high = ELEMENTS[self.small]
        return math.exp(self.rng.uniform(math.log(low), math.log(high)))

    def features(self) -> int:
        """Size of a last dimension of independent features."""
        return self.pick(FEATURES[self.small])

    def batch(self, per_item: int) -> int:
        """A batch size with which the tensor has about the target number of elements."""
        return nearest(BATCHES[self.small], self.elements() / per_item)

    def channels(self) -> int:
        """Number of channels of an image or a sequence."""
        return self.pick(_CHANNELS_SMALL if self.small else _CHANNELS_LARGE)

    def side(self) -> int:
        """Height or width of an image."""
        return self.pick(_SIDES_SMALL if self.small else _SIDES_LARGE)

    def length(self) -> int:
        """Length of a sequence."""
        return self.pick((8, 10, 12, 15, 16, 20, 24, 32)) if self.small else self.pick((64, 100, 128, 196, 256, 512))

    def shape(self, rank: int) -> tuple[int, ...]:
        """A plausible shape of this rank (1 to 4)."""
        if rank == 1:
            target = self.elements()
            unit = self.pick((8, 50, 1)) if self.small else self.pick((1024, 1000, 4096, 100_000, 1 << 16))
            return (max(1, round(target / unit)) * unit + self.pick((0, 0, 0, 1, 3)) * (unit > 8),)
        if rank == 2:
            features = self.features()
            return (self.batch(features), features)
        if rank == 3:
            length, features = self.length(), min(self.features(), 1024)
            return (max(1, self.batch(length * features)), length, features)
        channels, height = self.channels(), self.side()
        width = height if self.chance(0.6) else self.side()
        return (self.batch(channels * height * width), channels, height, width)

    def rank(self, ranks: Sequence[int]) -> int:
        """A rank; 2 is the most likely."""
        return self.weighted(ranks, [5 if rank == 2 else 3 if rank == 4 else 2 for rank in ranks])


@dataclass(frozen=True, slots=True)
class Words:
    """How the author of one CUDA program writes. The defaults are the plain style of the tiny scale."""

    index: str = "i"
    value: str = "v"
    out: str = "out"
    size: str = "n"
    column: str = "j"
    row: str = "row"
    block: int = 64
    short: bool = True
    """Shortest text: `n / 64 + 1` blocks, the block size as a number, no const, declarations in the call."""
    block_name: str = ""
    """Name of the variable of the block size; empty: numbers written in the launch."""
    grid_name: str = "grid"
    dim3: bool = False
    kernel: str = "{}_kernel"
    """`{}` is the label of the operators; at tiny scale labels are empty and the names `kernel` and `run`."""
    function: str = "{}_cuda"
    fused: str = "{}"
    restrict: bool = False
    comments: bool = False
    checks: bool = False
    contiguous: bool = False
    early_return: bool = False
    merge_store: bool = False
    constants: str = "int"
    floating: str = "double"
    helpers: bool = True
    synonyms: int = 0
    includes: tuple[str, ...] = ()
    declarations: str = "cpp_src"
    extension: str = "ops"
    docstring: bool = False
    verbose: str = ""
    functions_as_dict: bool = False
    lone_string: bool = True
    """Declarations as a one-line string rather than a triple-quoted one."""
    old_super: bool = False
    """`super(Model, self).__init__()`."""
    one_call: bool = False
    """One C++ function runs the whole program, instead of one call from Python for each kernel."""
    negative_infinity: str = "-INFINITY"

    @property
    def reserved(self) -> set[str]:
        """Names that no argument may take."""
        names = {self.index, self.value, self.out, self.size, self.column, self.row, self.block_name, self.grid_name}
        return names | _RESERVED


_RESERVED = {
    "block", "grid", "threads", "lane", "warp", "base", "best", "t", "o", "k", "a", "b", "r", "tx", "ty", "buf",
    "cache", "carry", "tile", "As", "Bs", "part", "src", "mask", "pack", "shared", "at", "int", "float", "max",
}  # fmt: skip


def draw_words(d: Draw) -> Words:
    """Draw the author's habits, unless all have the plain style."""
    if d.plain:
        return Words(kernel="kernel{}", function="run{}")
    pick, chance = d.pick, d.chance
    block_name, grid_name = pick(
        (
            ("", ""),
            ("block_size", "grid_size"),
            ("threads", "blocks"),
            ("block_size", "num_blocks"),
            ("threads_per_block", "blocks_per_grid"),
            ("kBlock", "grid"),
            ("num_threads", "num_blocks"),
        )
    )
    return Words(
        index=pick(("i", "idx", "index", "tid", "gid", "pos")),
        value=pick(("v", "val", "value", "acc_v", "elem", "cur")),
        out=pick(("out", "output", "y_out", "result", "dst", "res")),
        size=pick(("n", "size", "numel", "total", "num_elements", "count")),
        column=pick(("j", "c", "col", "e", "d")),
        row=pick(("row", "r_idx", "line", "sample", "row_idx")),
        short=False,
        block=pick(BLOCKS),
        block_name=block_name,
        grid_name=grid_name or "grid",
        dim3=chance(0.15),
        kernel=pick(("{}_kernel", "{}_kernel", "{}_cuda_kernel", "{}_forward_kernel", "k_{}", "{}_device_kernel")),
        function=pick(("{}_cuda", "{}_cuda", "{}_forward_cuda", "launch_{}", "run_{}", "custom_{}", "{}_op")),
        fused=pick(("{}", "fused_{}")),
        restrict=chance(0.5),
        comments=chance(0.4),
        checks=chance(0.25),
        contiguous=chance(0.3),
        early_return=chance(0.35),
        merge_store=chance(0.5),
        constants=pick(("int", "const int")),
        floating=pick(("double", "float")),
        helpers=chance(0.6),
        synonyms=d.rng.randrange(4),
        includes=pick(((), (), ("cuda_runtime.h",), ("cuda.h", "cuda_runtime.h"), ("cmath",), ("math.h",))),
        declarations=pick(("cpp_src", "cpp_src", "cpp_source", "declarations", "cpp_decl", "header")),
        extension=pick(
            ("ops", "fused_ops", "custom_ops", "ext", "module", "cuda_ops", "kernels", "{}_ext", "{}_module")
        ),
        docstring=chance(0.3),
        verbose=pick(("", "", "True", "False")),
        functions_as_dict=chance(0.08),
        lone_string=chance(0.4),
        old_super=chance(0.25),
        one_call=chance(0.3),
        negative_infinity=pick(("-INFINITY", "-INFINITY", "-1e30f", "-3.402823466e+38f")),
    )


LOCAL_NAMES = {
    "sum": ("sum", "total", "acc", "s"),
    "peak": ("peak", "max_val", "m", "row_max"),
    "low": ("low", "min_val", "mn", "row_min"),
    "mean": ("mean", "mu", "avg", "mean_val"),
    "var": ("var", "variance", "sq", "var_sum"),
    "scale": ("scale", "inv_std", "rstd", "inv"),
    "other": ("other", "acc2", "sum2", "second"),
    "third": ("third", "acc3", "sum3", "sq3"),
}
"""Local variable of a kernel -> its names among different authors."""
