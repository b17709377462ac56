"""Small architectures (level 3): each builds a whole program from inputs to result."""

from __future__ import annotations

import math
from collections.abc import Callable

from dice.data.synthetic.builder import Builder, Refused
from dice.data.synthetic.families import binary, contraction, movement, norm, pointwise, reduction, window
from dice.data.synthetic.families.layout import layout, reduced
from dice.data.synthetic.families.registry import HELDOUT, Family
from dice.data.synthetic.graph import NORMAL, Element, Map, Operand, Pass, Rows, Value

ACTIVATIONS = (
    "relu",
    "gelu",
    "silu",
    "tanh",
    "leaky_relu",
    "elu",
    "softplus",
    "gelu_tanh",
    "hardswish",
    "sigmoid",
    "selu",
)


def activate(b: Builder, x: Value, name: str = "") -> Value:
    """A usual activation; another one is drawn where one does not suit."""
    for choice in [name] if name else b.draw.rng.sample(ACTIVATIONS, len(ACTIVATIONS)):
        out = b.attempt(lambda b, x, choice=choice: pointwise.unary(b, x, choice), x)
        if out is not None:
            return out
    raise Refused("activation")


def add(b: Builder, x: Value, y: Value) -> Value:
    """The sum of two results."""
    return binary.binary(b, x, "add", (y, Operand(y, "same")))


def widths(b: Builder, count: int) -> list[int]:
    """Layer widths."""
    pool = (8, 12, 16, 20, 24, 32) if b.draw.small else (64, 128, 192, 256, 384, 512)
    return [b.draw.pick(pool) for _ in range(count)]


def rows_input(b: Builder, features: int, name: str = "") -> Value:
    """A batch of feature vectors."""
    batch = b.draw.pick((2, 4, 5, 8, 12, 16)) if b.draw.small else b.draw.pick((128, 256, 500, 512, 1024, 2048))
    return b.input((batch, features), *((name,) if name else ()))


def sequences(b: Builder, features: int) -> Value:
    """A batch of sequences of feature vectors."""
    d = b.draw
    batch = d.pick((1, 2, 3) if d.small else (4, 8, 16))
    length = d.pick((6, 8, 10, 12) if d.small else (64, 100, 128, 196, 256))
    return b.input((batch, length, features))


def mlp(b: Builder) -> None:
    """Linear layers with one activation between them."""
    sizes = widths(b, 2 if b.draw.tiny else b.draw.pick((3, 3, 4)))
    name = b.draw.pick(ACTIVATIONS)
    h = rows_input(b, sizes[0])
    for number, size in enumerate(sizes[1:], 1):
        h = contraction.linear(b, h, size, f"fc{number}", bias=True)
        if number + 1 < len(sizes) or b.draw.tiny:
            h = activate(b, h, name)
    if b.draw.tiny:
        activate(b, contraction.linear(b, h, sizes[0], "fc2", bias=True), name)


def residual_mlp(b: Builder) -> None:
    """x + W2 act(W1 x)."""
    width, hidden = widths(b, 2)
    x = rows_input(b, width)
    h = activate(b, contraction.linear(b, x, hidden, "fc1", bias=True))
    add(b, contraction.linear(b, h, width, "fc2", bias=True), x)


def prenorm_ffn(b: Builder) -> None:
    """The feed-forward half of a transformer layer."""
    width, hidden = widths(b, 2)
    x = sequences(b, width)
    h = norm.layer_norm(b, x) if b.draw.chance(0.6) else norm.rms_norm(b, x)
    h = activate(b, contraction.linear(b, h, hidden, "up", bias=True))
    add(b, contraction.linear(b, h, width, "down", bias=True), x)


def gated_ffn(b: Builder) -> None:
    """W3 (silu(W1 x) * W2 x), or with another gate."""
    width, hidden = widths(b, 2)
    x = sequences(b, width) if b.draw.chance(0.5) else rows_input(b, width)
    gate = contraction.linear(b, x, hidden, "gate", bias=False)
    up = contraction.linear(b, x, hidden, "up", bias=False)
    h = activate(b, gate, b.draw.pick(("silu", "gelu", "relu", "sigmoid", "tanh")))
    h = binary.binary(b, h, "mul", (up, Operand(up, "same")))
    contraction.linear(b, h, width, "down", bias=False)


def attention(b: Builder) -> None:
    """Single-head self-attention with an optional causal mask and residual."""
    (width,) = widths(b, 1)
    width = min(width, 128)
    x = sequences(b, width)
    q = contraction.linear(b, x, width, "q_proj", bias=True)
    k = contraction.linear(b, x, width, "k_proj", bias=True)
    v = contraction.linear(b, x, width, "v_proj", bias=True)
    scores = contraction.attention_scores(b, q, k)
    # a sharp softmax, so that the choice of the keys shows in the result
    factor = round(b.draw.pick((2.0, 3.0, 4.0)) / math.sqrt(width) * 3, 4)
    scores = b.step("scale", f"{{0}} * {factor!r}", Map(f"{{v}} * {factor!r}f"), [scores], None, NORMAL)
    if b.draw.chance(0.4):
        scores = causal_mask(b, scores)
    b.axis = (2,)
    sizes, length, n_rows, _ = layout(scores.shape, (2,))
    passes = (Pass("peak", "max"), Pass("sum", "sum", "expf({v} - {peak})"))
    body = Rows(passes, "expf({v} - {peak}) / {sum}", "element", sizes, length, n_rows)
    weights = b.step("softmax", "torch.softmax({0}, dim=-1)", body, [scores], None, norm.SMALL_PROBES)
    h = contraction.bmm(b, weights, v)
    if b.draw.chance(0.7):
        h = contraction.linear(b, h, width, "out_proj", bias=True)
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


def _images(b: Builder, channels: int) -> Value:
    d = b.draw
    size = d.pick((6, 7, 8, 10)) if d.small else d.pick((28, 32, 48, 56))
    return b.input((d.pick((1, 2)) if d.small else d.pick((4, 8, 16)), channels, size, size))


def residual_conv(b: Builder) -> None:
    """Two convolutions with batch normalisation and a residual connection."""
    channels = b.draw.pick((2, 3, 4, 6)) if b.draw.small else b.draw.pick((8, 16, 24, 32))
    x = _images(b, channels)
    h = window.conv2d(b, x, "conv2d", channels, 3, bias=False, stride=1)
    h = activate(b, binary.batch_norm(b, h), "relu")
    h = window.conv2d(b, h, "conv2d", channels, 3, bias=False, stride=1)
    h = add(b, binary.batch_norm(b, h), x)
    if b.draw.chance(0.7):
        activate(b, h, "relu")


def conv_classifier(b: Builder) -> None:
    """Convolutions, pooling, and a linear layer on the largest value of each channel."""
    d = b.draw
    channels = d.pick((1, 3, 4))
    x = _images(b, channels)
    for _ in range(d.pick((1, 2))):
        h = window.conv2d(
            b, x, "conv2d", d.pick((4, 6, 8)) if d.small else d.pick((16, 24, 32)), 3, bias=True, stride=1
        )
        h = activate(b, h, d.pick(("relu", "leaky_relu", "elu")))
        x = window.pool(b, h, "max_pool2d") if min(h.shape[2:]) >= 8 else h
    b.axis = (2, 3)
    h = reduction.reduction(b, x, "value_range") if d.chance(0.3) else _global_max(b, x)
    contraction.linear(b, h, d.pick((3, 5, 10)) if d.small else d.pick((10, 20, 100)), "fc", bias=True)


def _global_max(b: Builder, x: Value) -> Value:
    sizes, length, n_rows, _ = layout(x.shape, (2, 3))
    shape, alloc = reduced(x.shape, (2, 3), False)
    body = Rows((Pass("peak", "max"),), "{peak}", "row", sizes, length, n_rows, alloc)
    probes = tuple(max(x.probes) + 0.4 * probe for probe in NORMAL)
    return b.step("global_max", "torch.amax({0}, dim=(2, 3))", body, [x], shape, probes)


def separable_conv(b: Builder) -> None:
    """A depthwise convolution and a 1x1 convolution with activations."""
    channels = b.draw.pick((3, 4, 6)) if b.draw.small else b.draw.pick((16, 24, 32, 48))
    x = _images(b, channels)
    h = activate(b, window.conv2d(b, x, "depthwise_conv2d", None, 3, stride=1))
    h = window.conv2d(b, h, "conv1x1", channels, 1, stride=1)
    if b.draw.chance(0.5):
        h = binary.batch_norm(b, h)
    add(b, h, x) if b.draw.chance(0.5) else activate(b, h)


def squeeze_excite(b: Builder) -> None:
    """Channels scaled by the output of a small network on their means."""
    channels = b.draw.pick((4, 6, 8)) if b.draw.small else b.draw.pick((32, 48, 64))
    d = b.draw
    size = d.pick((5, 6, 8)) if d.small else d.pick((28, 32, 56))
    batch = d.pick((1, 2, 3)) if d.small else d.pick((8, 16, 32))
    statistics = (batch, channels, 1, 1)
    x = b.input((batch, channels, size, size), text="torch.randn({s}) + 2.0 * torch.randn({s1})", statistics=statistics)
    b.axis = (2, 3)
    h = reduction.reduction(b, x, "mean") if not b.draw.small else _mean(b, x)
    h = activate(b, contraction.linear(b, _as_rows(h), max(2, channels // 2), "squeeze", bias=True), "relu")
    h = contraction.linear(b, h, channels, "excite", bias=True)
    h = b.step("sigmoid", "torch.sigmoid({0})", Map(pointwise.TABLE["sigmoid"].cuda), [h])
    code = "{0} * {1}[:, :, None, None]"
    b.step("channel_scale", code, Map("{v} * {y}", {"y": Operand(h, "row")}), [x, h])


def _mean(b: Builder, x: Value) -> Value:
    sizes, length, n_rows, _ = layout(x.shape, (2, 3))
    shape, alloc = reduced(x.shape, (2, 3), False)
    body = Rows((Pass("sum", "sum"),), "{sum} / {R}", "row", sizes, length, n_rows, alloc)
    return b.step("mean", "torch.mean({0}, dim=(2, 3))", body, [x], shape)


def _as_rows(x: Value) -> Value:
    if len(x.shape) != 2:
        raise Refused("squeeze_excite")
    return x


def rnn_cell(b: Builder) -> None:
    """tanh(W x + U h)."""
    width, hidden = widths(b, 2)
    x = rows_input(b, width, "x")
    h = b.input((x.shape[0], hidden), "h0" if not b.draw.tiny else "y")
    first = contraction.linear(b, x, hidden, "i2h", bias=True)
    second = contraction.linear(b, h, hidden, "h2h", bias=True)
    activate(b, add(b, second, first), b.draw.pick(("tanh", "relu", "sigmoid")))


def lstm_gates(b: Builder) -> None:
    """One step of an LSTM: the new hidden state."""
    width, hidden = widths(b, 2)
    x = rows_input(b, width, "x")
    h = b.input((x.shape[0], hidden), "h0")
    c = b.input((x.shape[0], hidden), "c0")
    first = contraction.linear(b, x, 4 * hidden, "x2g", bias=True)
    second = contraction.linear(b, h, 4 * hidden, "h2g", bias=True)
    gates = add(b, second, first)
    lines = (
        "int p = {i} / {D} * 4 * {D} + {i} % {D};",
        "float a = 1.0f / (1.0f + expf(-{x}[p]));",
        "float b = 1.0f / (1.0f + expf(-{x}[p + {D}]));",
        "float r = tanhf({x}[p + 2 * {D}]);",
        "float o = 1.0f / (1.0f + expf(-{x}[p + 3 * {D}]));",
        "float {v} = o * tanhf(b * {c}[{i}] + a * r);",
    )
    body = Element(lines, {"D": "{c}.size(1)"}, ("{x}.size(0)", "{D}"), {"c": c})
    q = [f"{{0}}[:, {number * hidden}:{(number + 1) * hidden}]" for number in range(4)]
    cell = f"torch.sigmoid({q[1]}) * {{1}} + torch.sigmoid({q[0]}) * torch.tanh({q[2]})"
    code = f"torch.sigmoid({q[3]}) * torch.tanh({cell})"
    b.step("lstm_gates", code, body, [gates, c], (x.shape[0], hidden))


def gru_gates(b: Builder) -> None:
    """One step of a GRU: the new hidden state."""
    width, hidden = widths(b, 2)
    x = rows_input(b, width, "x")
    h = b.input((x.shape[0], hidden), "h0")
    gi = contraction.linear(b, x, 3 * hidden, "x2g", bias=True)
    gh = contraction.linear(b, h, 3 * hidden, "h2g", bias=True)
    lines = (
        "int p = {i} / {D} * 3 * {D} + {i} % {D};",
        "float r = 1.0f / (1.0f + expf(-{x}[p] - {g}[p]));",
        "float a = 1.0f / (1.0f + expf(-{x}[p + {D}] - {g}[p + {D}]));",
        "float b = tanhf({x}[p + 2 * {D}] + r * {g}[p + 2 * {D}]);",
        "float {v} = (1.0f - a) * b + a * {h}[{i}];",
    )
    body = Element(lines, {"D": "{h}.size(1)"}, ("{x}.size(0)", "{D}"), {"g": gh, "h": h})
    x_parts, h_parts = ([f"{{{k}}}[:, {n * hidden}:{(n + 1) * hidden}]" for n in range(3)] for k in (0, 1))
    z = f"torch.sigmoid({x_parts[1]} + {h_parts[1]})"
    new = f"torch.tanh({x_parts[2]} + torch.sigmoid({x_parts[0]} + {h_parts[0]}) * {h_parts[2]})"
    b.step("gru_gates", f"(1 - {z}) * {new} + {z} * {{2}}", body, [gi, gh, h], (x.shape[0], hidden))


def highway(b: Builder) -> None:
    """t * act(W x) + (1 - t) * x with t = sigmoid(U x)."""
    (width,) = widths(b, 1)
    x = rows_input(b, width)
    h = activate(b, contraction.linear(b, x, width, "transform", bias=True), b.draw.pick(("relu", "tanh", "gelu")))
    t = contraction.linear(b, x, width, "carry", bias=True)
    t = activate(b, t, "sigmoid")
    body = Map("{t} * {v} + (1.0f - {t}) * {x0}", {"t": Operand(t, "same"), "x0": Operand(x, "same")})
    b.step("highway", "{1} * {0} + (1 - {1}) * {2}", body, [h, t, x])


def token_mixer(b: Builder) -> None:
    """A small network across positions, with a residual connection."""
    (width,) = widths(b, 1)
    x = sequences(b, width)
    length = x.shape[1]
    h = movement.permute(b, x)
    h = activate(b, contraction.linear(b, h, widths(b, 1)[0], "mix1", bias=True))
    h = contraction.linear(b, h, length, "mix2", bias=True)
    add(b, movement.permute(b, h), x)


def dense_concat(b: Builder) -> None:
    """A layer whose input is the network's input joined with an earlier layer's output."""
    width, hidden, out = widths(b, 3)
    x = rows_input(b, width)
    h = activate(b, contraction.linear(b, x, hidden, "fc1", bias=True))
    lines = (
        "int row = {i} / ({A} + {B});",
        "int col = {i} % ({A} + {B});",
        "float {v} = col < {A} ? {x}[row * {A} + col] : {y}[row * {B} + col - {A}];",
    )
    body = Element(lines, {"A": "{x}.size(1)", "B": "{y}.size(1)"}, ("{x}.size(0)", "{A} + {B}"), {"y": h})
    h = b.step("concat", "torch.cat([{0}, {1}], dim=1)", body, [x, h], (x.shape[0], width + hidden))
    contraction.linear(b, h, out, "fc2", bias=True)


def embedding_classifier(b: Builder) -> None:
    """Largest embedding value over the tokens, then a linear layer."""
    d = b.draw
    shape = (d.pick((2, 3, 4)), d.pick((5, 8, 10))) if d.small else (d.pick((64, 128, 256)), d.pick((32, 64, 100)))
    tokens = b.input(shape, "tokens", dtype="int64", dims=("batch_size", "length"))
    h = movement.embedding(b, tokens)
    if h.shape[2] > 512:
        raise Refused("embedding_classifier")
    b.axis = (1,)
    h = reduction.reduction(b, h, d.pick(("max", "sum", "min")))
    contraction.linear(b, h, d.pick((3, 5, 10)) if d.small else d.pick((10, 50, 100)), "fc", bias=True)


def two_towers(b: Builder) -> None:
    """Dot products of two projected inputs."""
    width, hidden = widths(b, 2)
    x = rows_input(b, width, "x")
    y = b.input(x.shape, "y")
    first = activate(b, contraction.linear(b, x, hidden, "left", bias=True))
    second = activate(b, contraction.linear(b, y, hidden, "right", bias=True))
    sizes = {"rows": "{x}.size(0)", "R": "{x}.size(1)"}
    passes = (Pass("sum", "sum", "{v} * {y}[{i}]"),)
    body = Rows(passes, "{sum}", "row", sizes, hidden, x.shape[0], ("{rows}",), {"y": second})
    b.step("row_dot", "({0} * {1}).sum(dim=1)", body, [first, second], (x.shape[0],))


_ALL: dict[str, tuple[Callable[[Builder], None], bool]] = {
    "mlp": (mlp, True),
    "residual_mlp": (residual_mlp, False),
    "prenorm_ffn": (prenorm_ffn, False),
    "gated_ffn": (gated_ffn, False),
    "attention": (attention, False),
    "residual_conv": (residual_conv, False),
    "conv_classifier": (conv_classifier, False),
    "separable_conv": (separable_conv, False),
    "squeeze_excite": (squeeze_excite, False),
    "rnn_cell": (rnn_cell, False),
    "lstm_gates": (lstm_gates, False),
    "gru_gates": (gru_gates, False),
    "highway": (highway, False),
    "token_mixer": (token_mixer, False),
    "dense_concat": (dense_concat, False),
    "embedding_classifier": (embedding_classifier, False),
    "two_towers": (two_towers, False),
}


def families() -> list[Family]:
    """All architectures as families."""

    def entry(name: str, build: Callable[[Builder], None], tiny: bool) -> Family:
        def start(b: Builder) -> Value:
            build(b)
            return b.steps[-1].out

        return Family(name, "architecture", None, start, tiny, name in HELDOUT, ())

    return [entry(name, build, tiny) for name, (build, tiny) in _ALL.items()]
