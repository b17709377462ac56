"""Pair number `index` of a seed: a PyTorch program and a CUDA answer. Text only; torch is not needed."""

from __future__ import annotations

from collections.abc import Iterator

from dice.data.pair import Pair
from dice.data.synthetic.config import SyntheticConfig
from dice.data.synthetic.draw import Draw
from dice.data.synthetic.flaws import flawed_pair
from dice.data.synthetic.sketch import Leaks, make_pair, pair_id, sketch


def generate(config: SyntheticConfig, seed: int, index: int, leaks: Leaks | None = None) -> Pair:
    """Pair `index`, a pure function of the arguments. Programs that leak, or whose answer is too long, are redrawn."""
    if config.flawed_share and Draw(config, seed, index, 255).chance(config.flawed_share):
        return flawed_pair(config, seed, index, leaks=leaks)
    first = 0
    while True:
        drawn = sketch(config, seed, index, first=first)
        pair = make_pair(drawn, pair_id(config, seed, index), *drawn.texts())
        too_long = drawn.program.level < 3 and len(pair.cuda_code) > config.longest_answer
        if not too_long and not (leaks and leaks(pair.pytorch_code)):
            return pair
        first = drawn.attempt + 1


def pairs(config: SyntheticConfig, seed: int, count: int, start: int = 0, leaks: Leaks | None = None) -> Iterator[Pair]:
    """Pairs `start` to `start + count - 1`."""
    for index in range(start, start + count):
        yield generate(config, seed, index, leaks)
