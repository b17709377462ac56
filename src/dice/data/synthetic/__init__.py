"""Synthetic pairs: PyTorch programs and the CUDA programs that compute the same, drawn from a seed.

    from dice.data.synthetic import NANO, generate
    pair = generate(NANO, seed=7, index=12)

docs/guides/synthetic-pairs.md explains operators, styles, scales, flaws and what is held out.
"""

from dice.data.synthetic.config import NANO, TINY, SyntheticConfig, with_changes
from dice.data.synthetic.flaws import FLAWS, Expected, flawed_pair
from dice.data.synthetic.generator import generate, pairs
from dice.data.synthetic.table import HELD_OUT, Entry, known

__all__ = [
    "FLAWS",
    "HELD_OUT",
    "NANO",
    "TINY",
    "Entry",
    "Expected",
    "SyntheticConfig",
    "flawed_pair",
    "generate",
    "known",
    "pairs",
    "with_changes",
]
