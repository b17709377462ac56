"""An operator of the table, what the tiny scale draws from, and what is held out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dice.data.synthetic.builder import Builder, Refused
from dice.data.synthetic.graph import Scalar, Value

Ints = tuple[int, ...]


class Entry:
    """One operator. Each kind of operator is a class of entries, whose fields say how it is computed.

    name: its key in the table, which `known` gives it.
    group: pointwise, binary, reduce, norm, scan, contract, window, move, loss, gate, architecture.
    ranks: ranks of the value that it is applied to.
    weak: the result hardly varies unless the input was made for it, so it only starts programs.
    layer: a layer with weights, a convolution or a linear layer.
    """

    name: str = ""
    group: str
    ranks: Ints = (2, 3, 4, 5)
    weak: bool = False
    layer: bool = False

    def __init_subclass__(cls, **common: object) -> None:
        """`common`: what the entries of a kind have in common; where they differ, it is a field or set by each."""
        for field, value in common.items():
            setattr(cls, field, value)

    def first(self, b: Builder) -> Value:
        """Make the inputs that suit the operator and return the first one. An architecture makes its whole program."""
        raise NotImplementedError

    def apply(self, b: Builder, x: Value) -> Value:
        """Append the operator to a value and return the result. Raises Refused where it does not suit."""
        raise NotImplementedError

    def refuse_if(self, unsuitable: object) -> None:
        """Raises Refused where the operator does not suit."""
        if unsuitable:
            raise Refused(self.name)

    @property
    def held_out(self) -> bool:
        """Whether nothing is trained on it."""
        return self.name in HELD_OUT


def spelled(form: str, scalars: Mapping[str, Scalar]) -> str:
    """A form in {x}, {y}, {z} and the keys of its scalars as the code of a step."""
    return form.format(x="{0}", y="{1}", z="{2}", **{key: scalar.code for key, scalar in scalars.items()})


def named(name: str, entry: Entry) -> Entry:
    """`entry` with its name."""
    entry.name = name
    return entry


@dataclass
class Special(Entry):
    """An operator with functions of its own: `make` appends it, `start` makes the inputs."""

    group: str
    make: Callable[[Builder, Value], Value]
    start: Callable[[Builder], Value]
    ranks: Ints = (2,)
    weak: bool = False
    layer: bool = False

    def first(self, b: Builder) -> Value:
        return self.start(b)

    def apply(self, b: Builder, x: Value) -> Value:
        return self.make(b, x)


HELD_OUT = frozenset(
    [
        "softplus", "mish", "logsigmoid", "soft_margin_loss", "bce_with_logits_loss", "logaddexp", "gelu_tanh", "relu6",
        "hardsigmoid", "hardswish", "argmax", "log_softmax", "cross_entropy", "kl_div", "cosine_similarity",
        "smooth_l1_loss", "huber_loss", "avg_pool2d", "avg_pooling1d", "avg_pooling2d", "avg_pooling3d", "tril",
        "group_norm",
    ]
)  # fmt: skip
"""Entries that apply an operator of `dice/data/leakage/heldout.yaml`: by its name, or as a part of what they compute. They
are drawn only where a configuration names them."""

TINY = (
    "relu", "leaky_relu", "elu", "selu", "gelu", "gelu_tanh", "quick_gelu", "silu", "softplus", "softsign", "tanh",
    "sigmoid", "hardswish", "hardsigmoid", "hardtanh", "relu6", "clamp_min", "clamp_max", "softshrink", "hardshrink",
    "threshold", "where_scale", "tanhshrink", "logsigmoid", "squareplus", "exp", "exp_neg_abs", "gaussian",
    "log1p_abs", "sqrt_abs", "abs", "neg", "square", "cube", "sin", "cos", "atan", "asinh", "erf",
    "inverse_quadratic", "rsqrt", "scale", "shift", "affine", "reversed_sub", "divide", "add", "sub", "mul", "div",
    "maximum", "minimum", "hypot", "squared_difference", "absolute_difference", "lerp", "scaled_add", "sigmoid_gate",
    "tanh_gate", "silu_mul", "masked_fill", "sum", "mean", "max", "min", "prod", "norm", "l1_norm", "mean_square",
    "var", "logsumexp", "argmax", "argmin", "cumsum", "softmax", "log_softmax", "layer_norm", "rms_norm", "matmul",
    "matmul_transposed_a", "matmul_transposed_b", "bmm", "linear", "matvec", "row_dot", "outer", "max_pool2d",
    "avg_pool2d", "max_pool1d", "transpose", "pad", "roll", "tril", "triu", "repeat_interleave", "concat",
    "embedding", "index_select", "gather", "glu", "swiglu", "reglu", "tanh_glu", "half_difference", "half_maximum",
    "mse_loss", "rmse", "l1_loss", "smooth_l1_loss", "hinge_loss", "soft_margin_loss", "mean_product",
    "mean_square_all", "frobenius_norm", "mean_abs_all", "cross_entropy",
)  # fmt: skip
"""What the tiny scale draws from: the embedded checkpoints have read programs of these entries, drawn in this order. Those
that are held out now are drawn too, and the check of leaks (`dice.data.leakage`) draws another program in their place."""
