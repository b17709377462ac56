"""Pair number `index` of a seed: a PyTorch program and a CUDA answer. Text only; torch is not needed."""

from __future__ import annotations

from collections.abc import Iterator

from dice.data.pair import Pair
from dice.data.synthetic.config import SyntheticConfig
from dice.data.synthetic.draw import Draw
from dice.data.synthetic.flaws import flawed_pair
from dice.data.synthetic.sketch import pair_id, sketch, write_pair


def generate(config: SyntheticConfig, seed: int, index: int) -> Pair:
    """The pair. A pure function of its arguments."""
    if config.flawed_share and Draw(config, seed, index, 255).random() < config.flawed_share:
        return flawed_pair(config, seed, index)
    return write_pair(sketch(config, seed, index), pair_id(config, seed, index))


def pairs(config: SyntheticConfig, seed: int, count: int, start: int = 0) -> Iterator[Pair]:
    """Pairs `start` to `start + count - 1`."""
    for index in range(start, start + count):
        yield generate(config, seed, index)
