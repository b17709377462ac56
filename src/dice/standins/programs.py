"""The programs that all stand-ins are made of: problems to be judged on, and pairs to train on."""

from __future__ import annotations

from dataclasses import dataclass

from dice.data.pair import Pair
from dice.data.synthetic.config import SyntheticConfig
from dice.data.synthetic.generator import pairs
from dice.kernels.api import load_mini

_OF_LEVEL = {
    level: SyntheticConfig(
        scale="tiny" if level < 3 else "nano",  # the tiny scale has no programs of level 3
        shapes="small",
        level_weights=(float(level == 1), float(level == 2), float(level == 3)),
    )
    for level in (1, 2, 3)
}


@dataclass(frozen=True)
class Solved:
    """A problem of the benchmark, and a kernel that solves it."""

    level: int
    number: int
    name: str
    code: str
    solution: str | None
    """None for a problem of the mini benchmark, which comes without one."""


def benchmark(synthetic: int, seed: int) -> list[Solved]:
    """The first mini problem of each level, and `synthetic` of the generator's behind it."""
    found: list[Solved] = []
    for level, config in _OF_LEVEL.items():
        mini = next(problem for problem in load_mini("cpu") if problem.level == level)
        found.append(Solved(level, 1, mini.name, mini.code, None))
        for number, pair in enumerate(pairs(config, seed, synthetic), 2):
            found.append(Solved(level, number, f"Synthetic{number}", pair.pytorch_code, pair.cuda_code))
    return found


def training_pairs(count: int, seed: int) -> list[Pair]:
    """Pairs of levels 1 and 2, small enough to be compiled and run by a CPU in seconds."""
    return list(pairs(SyntheticConfig(scale="tiny"), seed, count))
