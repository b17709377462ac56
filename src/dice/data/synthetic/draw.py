"""Random choices of one pair: shapes, numbers, and the names and habits of its imagined author.

Everything comes from one `random.Random` seeded by (seed, index, attempt), so a pair depends on nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from random import Random
from typing import TypeVar

from dice.data.synthetic.config import SyntheticConfig

Item = TypeVar("Item")

# In each of these pools: for large shapes, for small ones.
FEATURES = (
    (64, 96, 100, 128, 192, 200, 256, 257, 320, 384, 500, 512, 640, 768, 1000, 1024, 1536, 2048, 4096),
    tuple(range(8, 129)),
)
"""Sizes of a last dimension."""
_BATCH = (1, 2, 3, 4, 6, 8, 10, 12, 16, 24, 32, 48, 64, 96, 100, 128, 192, 256, 384, 512, 768, 1024, 1500, 2048, 4096)
BATCHES = ((*_BATCH, 8192, 10000, 16384, 32768, 65536), _BATCH)
"""Sizes of a first dimension."""
ELEMENTS = ((2e5, 1e7), (256.0, 6000.0))
"""Fewest and most elements of a main tensor."""
CHANNELS = ((4, 8, 16, 24, 32, 48, 64, 96, 128), (2, 3, 4, 5, 6, 8, 12))
SIDES = ((16, 20, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128), (5, 6, 7, 8, 9, 10, 12, 14, 16))
LENGTHS = ((64, 100, 128, 196, 256, 512), (8, 10, 12, 15, 16, 20, 24, 32))

_OF_KIND = {
    "ConvTranspose": ("conv_transpose", "conv_t", "tconv", "up", "upsample", "decoder"),
    "Conv": ("conv_layer", "conv_op", "convolution", "stem", "encoder", "down"),
    "Linear": ("gemm", "matmul", "fc1", "linear1", "affine", "head", "out_proj", "mlp"),
    "BatchNorm": ("bn", "bn1", "batch_norm", "batchnorm"),
    "GroupNorm": ("gn", "group_norm", "groupnorm"),
    "InstanceNorm": ("instance_norm", "instancenorm", "inorm"),
    "LayerNorm": ("ln", "layer_norm", "layernorm"),
}
_OF_ANY = ("layer", "layer1", "op", "block", "net", "first", "main", "module", "stage", "body")
"""Names of layers, by the beginning of their class, and of any; those of a kind are drawn more often."""


def nearest(pool: Sequence[int], target: float) -> int:
    """The member of `pool` that is nearest to `target` in ratio."""
    return min(pool, key=lambda size: abs(math.log(size / max(target, 1.0))))


class Draw:
    """Random choices for pair number `index` of `seed`."""

    def __init__(self, config: SyntheticConfig, seed: int, index: int, attempt: int = 0) -> None:
        # disjoint ranges of bits keep (seed, index, attempt) apart
        self.rng = Random((seed << 72) ^ (index << 8) ^ attempt)
        self.config = config
        self.small = config.small
        self.tiny = config.scale == "tiny"
        self.plain = config.plain_style
        self.pick = self.rng.choice

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

    def size(self, usual: Sequence[int], most: int) -> int:
        """One of the usual sizes; with `varied_sizes` every second one is any number up to `most`, often a power of two."""
        if self.small or not self.config.varied_sizes or self.chance(0.5):
            return self.pick(usual)
        size = math.exp(self.rng.uniform(math.log(3), math.log(most)))
        return 1 << round(math.log2(size)) if self.chance(0.5) else round(size)

    def layer_name(self, usual: str, made: str) -> str:
        """Name of the layer that `made` makes; with `varied_names` every second one is another than the `usual`."""
        if not self.config.varied_names or self.chance(0.5):
            return usual
        kind = next((names for begin, names in _OF_KIND.items() if made.startswith(f"nn.{begin}")), ())
        return self.pick((*kind * 3, *_OF_ANY))

    def features(self) -> int:
        """Size of a last dimension of independent features."""
        return self.size(FEATURES[self.small], 8192)

    def batch(self, per_item: int) -> int:
        """A batch size with which the tensor has about the target number of elements."""
        return nearest(BATCHES[self.small], self.elements() / per_item)

    def channels(self) -> int:
        """Number of channels of an image or a sequence."""
        return self.size(CHANNELS[self.small], 128)

    def side(self) -> int:
        """Height or width of an image."""
        return self.pick(SIDES[self.small])

    def length(self) -> int:
        """Length of a sequence."""
        return self.pick(LENGTHS[self.small])

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


def _habit(plain: Item, *drawn: Item) -> Item:
    """A habit: what it is in the plain style, and what it is drawn from for other authors."""
    return field(default=plain, metadata={"draw": lambda d: d.pick(drawn)})


def _share(share: float, plain: bool = False) -> bool:
    """A habit that this share of the authors has."""
    return field(default=plain, metadata={"draw": lambda d: d.chance(share)})


@dataclass(frozen=True, slots=True)
class Words:
    """How the author of one CUDA program writes. The defaults are the plain style of the tiny scale."""

    short: bool = True
    """Shortest text: `n / 64 + 1` blocks, the block size as a number, no const, declarations in the call."""
    launch: tuple[str, str] = _habit(
        ("", "grid"),
        ("", "grid"),
        ("block_size", "grid_size"),
        ("threads", "blocks"),
        ("block_size", "num_blocks"),
        ("threads_per_block", "blocks_per_grid"),
        ("kBlock", "grid"),
        ("num_threads", "num_blocks"),
    )
    """Names of the variables of the block size and of the grid's; where the first is empty, numbers in the launch."""
    index: str = _habit("i", "i", "idx", "index", "tid", "gid", "pos")
    value: str = _habit("v", "v", "val", "value", "acc_v", "elem", "cur")
    out: str = _habit("out", "out", "output", "y_out", "result", "dst", "res")
    size: str = _habit("n", "n", "size", "numel", "total", "num_elements", "count")
    column: str = _habit("j", "j", "c", "col", "e", "d")
    row: str = _habit("row", "row", "r_idx", "line", "sample", "row_idx")
    block: int = _habit(64, 64, 128, 128, 256, 256, 256, 512, 512, 1024)
    """Threads of a block."""
    dim3: bool = _share(0.15)
    kernel: str = _habit(
        "kernel{}", "{}_kernel", "{}_kernel", "{}_cuda_kernel", "{}_forward_kernel", "k_{}", "{}_device_kernel"
    )
    """`{}` is the label of the operators; in the plain style labels are empty."""
    function: str = _habit(
        "run{}", "{}_cuda", "{}_cuda", "{}_forward_cuda", "launch_{}", "run_{}", "custom_{}", "{}_op"
    )
    fused: str = _habit("{}", "{}", "fused_{}")
    restrict: bool = _share(0.5)
    comments: bool = _share(0.4)
    checks: bool = _share(0.25)
    contiguous: bool = _share(0.3)
    early_return: bool = _share(0.35)
    merge_store: bool = _share(0.5)
    constants: str = _habit("int", "int", "const int")
    floating: str = _habit("double", "double", "float")
    helpers: bool = _share(0.6, plain=True)
    synonyms: int = _habit(0, 0, 1, 2, 3)
    includes: tuple[str, ...] = _habit(
        (), (), (), ("cuda_runtime.h",), ("cuda.h", "cuda_runtime.h"), ("cmath",), ("math.h",)
    )
    declarations: str = _habit("cpp_src", "cpp_src", "cpp_src", "cpp_source", "declarations", "cpp_decl", "header")
    extension: str = _habit(
        "ops", "ops", "fused_ops", "custom_ops", "ext", "module", "cuda_ops", "kernels", "{}_ext", "{}_module"
    )
    docstring: bool = _share(0.3)
    verbose: str = _habit("", "", "", "True", "False")
    functions_as_dict: bool = _share(0.08)
    lone_string: bool = _share(0.4, plain=True)
    """Declarations as a one-line string rather than a triple-quoted one."""
    old_super: bool = _share(0.25)
    """`super(Model, self).__init__()`."""
    one_call: bool = _share(0.3)
    """One C++ function runs the whole program, instead of one call from Python for each kernel."""
    negative_infinity: str = _habit("-INFINITY", "-INFINITY", "-INFINITY", "-1e30f", "-3.402823466e+38f")

    @property
    def reserved(self) -> set[str]:
        """Names that no argument may take."""
        return {self.index, self.value, self.out, self.size, self.column, self.row, *self.launch} | _RESERVED


_RESERVED = {
    "block", "grid", "threads", "lane", "warp", "base", "best", "t", "o", "k", "a", "b", "r", "tx", "ty", "buf",
    "cache", "carry", "tile", "As", "Bs", "part", "src", "mask", "pack", "shared", "at", "int", "float", "max",
}  # fmt: skip


def draw_words(d: Draw) -> Words:
    """Draw the author's habits in their order, unless all have the plain style."""
    if d.plain:
        return Words()
    return Words(short=False, **{habit.name: habit.metadata["draw"](d) for habit in fields(Words) if habit.metadata})


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
