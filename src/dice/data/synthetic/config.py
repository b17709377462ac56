"""Settings of the generator."""

from __future__ import annotations

import dataclasses
from typing import Literal

from dice.config import stage_config
from dice.errors import DiceError

Scale = Literal["nano", "tiny"]
Shapes = Literal["auto", "small", "large"]


@stage_config
class SyntheticConfig:
    """Which pairs are drawn. Equal configs, seeds and indices give equal pairs."""

    scale: Scale = "nano"
    """`nano`: every operator of the table, style and wording. `tiny`: the operators that the embedded checkpoints have read,
    one plain style, short answers."""
    plain: bool = False
    """Write all answers in the plain style of the tiny scale, whatever the operators."""
    shapes: Shapes = "auto"
    """Elements of a program's main tensor. `large`: about 2e5 to 1e7, for timing on a GPU; `small`: about 256 to 6,000, for
    execution on a CPU; `auto`: small at tiny scale, large otherwise."""
    level_weights: tuple[float, float, float] | None = None
    """Weights of levels 1, 2, 3; None: (4, 5, 2) at nano scale and (5, 4, 0) at tiny scale."""
    max_answer_chars: int | None = None
    """Longest answer of levels 1 and 2, in characters; None: no limit at nano scale, 1750 at tiny scale
    (under 600 tokens of a small BPE, 274 in the median)."""
    families: tuple[str, ...] | None = None
    """Names of the operators around which programs are drawn, held-out ones too; None: all that the scale has."""
    depth: tuple[int, int] | None = None
    """Fewest and most operators of a program of level 2; None: two to five, at tiny scale about two."""
    varied_sizes: bool = False
    """Draw every second size of a layer, a matrix or a row from all numbers up to 8192, and of channels up to 128, instead
    of from a list: a reader of a list's sizes learns these, and not to copy a number. Large shapes only."""
    varied_names: bool = False
    """Draw every second name of a layer from many that people give layers, for the same reason: `self.gemm`, `self.up`."""
    layer_share: float = 0.0
    """Share of the programs of level 2 that begin with a layer with weights, a convolution or a linear layer, as
    KernelBench's do (0 to 1). 0: no more than other operators."""
    layer_weights: dict[str, float] | None = dataclasses.field(default=None, hash=False)
    """Layer -> its weight among those that `layer_share` draws from, in the place of its usual weight."""
    flawed_share: float = 0.0
    """Share of pairs whose CUDA program has a known flaw (0 to 1)."""
    flaw_weights: dict[str, float] | None = dataclasses.field(default=None, hash=False)
    """Flaw -> its weight when flaws are drawn; flaws that are not named have weight 1."""
    varied_programs: bool = False
    """Write the PyTorch programs in more ways: docstrings, no constructor where none is needed, hyper-parameters and
    dimensions as named constants, `torch.nn.functional` in full. The answers' style does not change."""

    def __post_init__(self) -> None:
        for name in ("layer_share", "flawed_share"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise DiceError(f"{name}: {getattr(self, name)} is not a share between 0 and 1.")
        if self.depth is not None and not 2 <= self.depth[0] <= self.depth[1]:
            raise DiceError(f"depth: {self.depth} are not the fewest and most operators of a chain (at least 2).")
        for name in ("flaw_weights", "layer_weights"):
            if min((getattr(self, name) or {"": 0.0}).values()) < 0:
                raise DiceError(f"{name}: {getattr(self, name)} has a negative weight.")
        if self.level_weights is not None and (min(self.level_weights) < 0 or sum(self.level_weights) <= 0):
            raise DiceError(f"level_weights: {self.level_weights} are not weights (none negative, some positive).")

    @property
    def plain_style(self) -> bool:
        """Whether all answers have one author with one style."""
        return self.plain or self.scale == "tiny"

    @property
    def small(self) -> bool:
        """Whether shapes are for execution on a CPU."""
        return self.shapes == "small" or (self.shapes == "auto" and self.scale == "tiny")

    @property
    def longest_answer(self) -> int:
        """Characters that an answer of level 1 or 2 may have."""
        return self.max_answer_chars or (1750 if self.scale == "tiny" else 1 << 30)

    @property
    def levels(self) -> tuple[float, float, float]:
        """Weights of levels 1, 2, 3."""
        return self.level_weights or ((5, 4, 0) if self.scale == "tiny" else (4, 5, 2))


TINY = SyntheticConfig(scale="tiny")
NANO = SyntheticConfig(scale="nano")


def with_changes(config: SyntheticConfig, **changes: object) -> SyntheticConfig:
    """A copy of `config` with some fields changed."""
    return dataclasses.replace(config, **changes)
