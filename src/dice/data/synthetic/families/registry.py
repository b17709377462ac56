"""The type of an operator family, and the families that are held out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dice.data.synthetic.builder import Builder
from dice.data.synthetic.graph import Value

Make = Callable[[Builder, Value], Value]
"""Appends the operator to a value and returns the result; raises Refused where it does not suit."""
Start = Callable[[Builder], Value]
"""Makes the inputs that suit the operator and returns the first one."""


@dataclass(frozen=True, slots=True)
class Family:
    """One kind of operator.

    group: pointwise, binary, reduce, norm, scan, contract, window, move, loss, gate, architecture.
    make / start: see Make and Start. An architecture does everything in `start` and has no `make`.
    tiny: whether the tiny scale has it.
    heldout: kept out of training, for evaluation.
    ranks: ranks of the primary value that `make` takes.
    weak: the result hardly varies unless the input was made for it, so it only starts programs.
    layer: a layer with weights, a convolution or a linear layer.
    """

    name: str
    group: str
    make: Make | None
    start: Start
    tiny: bool = False
    heldout: bool = False
    ranks: tuple[int, ...] = (2, 3, 4, 5)
    weak: bool = False
    layer: bool = False


HELDOUT = (
    "mish",
    "celu",
    "log_cosh",
    "softmin",
    "instance_norm",
    "std",
    "reverse_cumsum",
    "huber_loss",
    "poisson_nll_loss",
    "avg_pool1d",
    "pixel_shuffle",
    "flip",
    "geglu",
    "lower_triangular_matmul",
    "gru_gates",
    "squeeze_excite",
)
"""Families that are never generated for training."""
