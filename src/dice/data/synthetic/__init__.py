"""Synthetic pairs: PyTorch programs and the CUDA programs that compute the same, drawn from a seed.

    from dice.data.synthetic import NANO, generate
    pair = generate(NANO, seed=7, index=12)

docs/guides/synthetic-pairs.md explains families, styles, scales, flaws and what is held out.
"""

from dice.data.synthetic.config import NANO, TINY, SyntheticConfig, with_changes
from dice.data.synthetic.families import HELDOUT, Family, families
from dice.data.synthetic.flaws import FLAWS, Expected, flawed_pair
from dice.data.synthetic.generator import generate, pairs

__all__ = [
    "FLAWS",
    "HELDOUT",
    "NANO",
    "TINY",
    "Expected",
    "Family",
    "SyntheticConfig",
    "families",
    "flawed_pair",
    "generate",
    "pairs",
    "with_changes",
]
