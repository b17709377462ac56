"""Small architectures (level 3): each builds a whole program from inputs to result."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from dice.data.synthetic.builder import Builder, Refused
from dice.data.synthetic.graph import NORMAL, Element, Map, Operand, Value
from dice.data.synthetic.table.activations import ACTIVATIONS
from dice.data.synthetic.table.convolution import same_size
from dice.data.synthetic.table.entry import Entry, named
from dice.data.synthetic.table.layout import layout
from dice.data.synthetic.table.norm import LAYERS, SMALL_PROBES, SOFTMAX
from dice.data.synthetic.table.product import batched, linear

_USUAL = ("relu", "gelu", "silu", "tanh", "leaky_relu", "elu", "sigmoid", "selu")


def activate(b: Builder, x: Value, name: str = "") -> Value:
    """A usual activation; another one is drawn where one does not suit."""
    for choice in [name] if name else b.draw.rng.sample(_USUAL, len(_USUAL)):
        out = b.attempt(named(choice, ACTIVATIONS[choice]).apply, x)
        if out is not None:
            return out
    raise Refused("activation")


def add(b: Builder, x: Value, y: Value) -> Value:
    """The sum of two results."""
    return b.map("add", "{0} + {1}", Map("{v} + {y}", {"y": Operand(y, "same")}), [x, y])


def widths(b: Builder, count: int) -> list[int]:
    """Layer widths."""
    pool = (8, 12, 16, 20, 24, 32) if b.draw.small else (64, 128, 192, 256, 384, 512)
    return [b.draw.pick(pool) for _ in range(count)]


def rows_input(b: Builder, features: int, *names: str) -> Value:
    """A batch of feature vectors."""
    batch = b.draw.pick((2, 4, 5, 8, 12, 16) if b.draw.small else (128, 256, 500, 512, 1024, 2048))
    return b.input((batch, features), *names)


def sequences(b: Builder, features: int) -> Value:
    """A batch of sequences of feature vectors."""
    d = b.draw
    batch, length = d.pick((1, 2, 3) if d.small else (4, 8, 16)), d.length()
    return b.input((batch, length, features))


def _images(b: Builder, channels: int) -> Value:
    d = b.draw
    side = d.pick((6, 7, 8, 10) if d.small else (28, 32, 48, 56))
    return b.input((d.pick((1, 2) if d.small else (4, 8, 16)), channels, side, side))


def mlp(b: Builder) -> None:
    """Linear layers with one activation between them."""
    sizes, name = widths(b, b.draw.pick((3, 3, 4))), b.draw.pick(_USUAL)
    h = rows_input(b, sizes[0])
    for number, size in enumerate(sizes[1:], 1):
        h = linear(b, h, size, f"fc{number}", bias=True)
        if number + 1 < len(sizes):
            h = activate(b, h, name)


def gated_ffn(b: Builder) -> None:
    """W3 (silu(W1 x) * W2 x), or with another gate."""
    width, hidden = widths(b, 2)
    x = sequences(b, width) if b.draw.chance(0.5) else rows_input(b, width)
    gate = linear(b, x, hidden, "gate", bias=False)
    up = linear(b, x, hidden, "up", bias=False)
    h = activate(b, gate, b.draw.pick(("silu", "gelu", "relu", "sigmoid", "tanh")))
    h = b.map("mul", "{0} * {1}", Map("{v} * {y}", {"y": Operand(up, "same")}), [h, up])
    linear(b, h, width, "down", bias=False)


def attention(b: Builder) -> None:
    """Single-head self-attention with an optional causal mask and residual."""
    width = min(*widths(b, 1), 128)
    x = sequences(b, width)
    q, k, v = (linear(b, x, width, f"{name}_proj", bias=True) for name in "qkv")
    scores = batched(b, q, "attention_scores", k)
    # a sharp softmax, so that the choice of the keys shows in the result
    factor = round(b.draw.pick((2.0, 3.0, 4.0)) / math.sqrt(width) * 3, 4)
    scores = b.step("scale", f"{{0}} * {factor!r}", Map(f"{{v}} * {factor!r}f"), [scores], None, NORMAL)
    if b.draw.chance(0.4):
        scores = causal_mask(b, scores)
    body = SOFTMAX["softmax"].body(*layout(scores.shape, (2,)))
    weights = b.step("softmax", "torch.softmax({0}, dim=-1)", body, [scores], None, SMALL_PROBES)
    h = batched(b, weights, "bmm", v)
    if b.draw.chance(0.7):
        h = linear(b, h, width, "out_proj", bias=True)
    if b.draw.chance(0.5):
        add(b, h, x)


def causal_mask(b: Builder, scores: Value) -> Value:
    """Scores of later keys set to minus infinity."""
    lines = (
        "int row = ({i} / {T}) % {T};",
        "int col = {i} % {T};",
        "float {v} = col <= row ? {x}[{i}] : -INFINITY;",
    )
    length = scores.shape[2]
    mask = f"torch.ones({length}, {length}, dtype=torch.bool, device={{0}}.device).triu(1)"
    code = f'{{0}}.masked_fill({mask}, float("-inf"))'
    body = Element(lines, {"T": "{x}.size(2)"}, ("{x}.size(0)", "{T}", "{T}"))
    return b.step("causal_mask", code, body, [scores], None, scores.probes)


def residual_conv(b: Builder) -> None:
    """Two convolutions with batch normalisation and a residual connection."""
    channels = b.draw.pick((2, 3, 4, 6) if b.draw.small else (8, 16, 24, 32))
    x = _images(b, channels)
    norm = named("batch_norm_layer", LAYERS["batch_norm_layer"])
    h = norm.apply(b, same_size(b, x, channels, 3, bias=False))
    h = same_size(b, activate(b, h, "relu"), channels, 3, bias=False)
    h = add(b, norm.apply(b, h), x)
    if b.draw.chance(0.7):
        activate(b, h, "relu")


@dataclass
class Architecture(Entry, group="architecture"):
    """A program of its own, which a function builds."""

    build: Callable[[Builder], None]

    def first(self, b: Builder) -> Value:
        self.build(b)
        return b.steps[-1].out


ARCHITECTURES = {build.__name__: Architecture(build) for build in (mlp, gated_ffn, attention, residual_conv)}
