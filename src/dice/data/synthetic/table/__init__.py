"""PyTorch's operators by table: an entry names an operator's spellings, the shapes and inputs that suit it, and its kernel.

`known` gives the families that programs are drawn from. The first families alone are what the embedded checkpoints have
read; a configuration with `table` draws from all, and holds out what `dice.data.leakage` holds out.
"""

from __future__ import annotations

import dataclasses
from functools import cache

from dice.data.synthetic.families import Family
from dice.data.synthetic.families import families as first_families
from dice.data.synthetic.table import moves, norm, product, row, scalar, window

HELD = frozenset(
    [
        "softplus", "mish", "logsigmoid", "soft_margin_loss", "bce_with_logits_loss", "logaddexp", "gelu_tanh", "relu6",
        "hardsigmoid", "hardswish", "argmax", "log_softmax", "cross_entropy", "kl_div", "cosine_similarity", "smooth_l1_loss",
        "huber_loss", "avg_pool1d", "avg_pool2d", "avg_pooling1d", "avg_pooling2d", "avg_pooling3d", "tril",
        "lower_triangular_matmul", "group_norm", "gru_gates",
    ]
)  # fmt: skip
"""Families that apply an operator of `dice/data/leakage/heldout.yaml`: by its name, or as a part of what they compute."""
_MODULES = (scalar, moves, row, window, norm, product)


@cache
def known(table: bool) -> dict[str, Family]:
    """Name to family, in a fixed order: the first families, with `table` also the table's."""
    first = first_families()
    if not table:
        return first
    entries = {name: dataclasses.replace(family, heldout=name in HELD) for name, family in first.items()}
    added = {family.name: family for module in _MODULES for family in module.families(HELD)}
    return entries | added
