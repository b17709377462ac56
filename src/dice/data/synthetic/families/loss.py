"""Losses and other reductions of a whole tensor to one number.

The first input is scaled by a random number, so that the result differs from call to call: otherwise the mean over many
independent elements would be a constant, which a kernel could return without reading its inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from dice.data.synthetic.builder import Builder, Refused
from dice.data.synthetic.families.registry import HELDOUT, Family
from dice.data.synthetic.graph import NORMAL, Operand, Pass, Rows, Scalar, Total, Value

SCALED = "torch.randn({s}) * (0.5 + 2.0 * torch.rand(1))"
_SIGNS = "torch.randint(0, 2, ({s})).float() * 2 - 1"
_RESULT = (0.4, 0.7, 1.1, 1.6, 2.3, 3.2, 4.5, 6.5)


@dataclass(frozen=True, slots=True)
class Loss:
    """`term` in {v} (prediction), {y} (target) and {a}; forms in {x}, {y}, {a}; `target`: how the target is drawn."""

    term: str
    forms: tuple[str, ...]
    target: str = "torch.randn({s})"
    finish: str = "{s} / {n}"
    scalar: tuple[str, float, float, float] | None = None
    tiny: bool = True


_MARGIN = ("margin", 0.5, 1.5, 0.25)

TABLE: dict[str, Loss] = {
    "mse_loss": Loss("({v} - {y}) * ({v} - {y})", ("F.mse_loss({x}, {y})", "torch.mean(({x} - {y}) ** 2)")),
    "rmse": Loss(
        "({v} - {y}) * ({v} - {y})", ("torch.sqrt(F.mse_loss({x}, {y}))", "torch.mean(({x} - {y}) ** 2).sqrt()"),
        finish="sqrtf({s} / {n})",
    ),
    "l1_loss": Loss(
        "fabsf({v} - {y})", ("F.l1_loss({x}, {y})", "torch.mean(torch.abs({x} - {y}))", "({x} - {y}).abs().mean()")
    ),
    "smooth_l1_loss": Loss(
        "fabsf({v} - {y}) < {a} ? 0.5f * ({v} - {y}) * ({v} - {y}) / {a} : fabsf({v} - {y}) - 0.5f * {a}",
        ("F.smooth_l1_loss({x}, {y}, beta={a})",),
        scalar=("beta", 0.5, 2.0, 0.25),
    ),
    "huber_loss": Loss(
        "fabsf({v} - {y}) < {a} ? 0.5f * ({v} - {y}) * ({v} - {y}) : {a} * (fabsf({v} - {y}) - 0.5f * {a})",
        ("F.huber_loss({x}, {y}, delta={a})",),
        scalar=("delta", 0.5, 2.0, 0.25),
    ),
    "hinge_loss": Loss(
        "fmaxf({a} - {v} * {y}, 0.0f)",
        ("torch.mean(torch.clamp({a} - {x} * {y}, min=0.0))", "torch.clamp({a} - {x} * {y}, min=0).mean()"),
        _SIGNS,
        scalar=_MARGIN,
    ),
    "squared_hinge_loss": Loss(
        "fmaxf({a} - {v} * {y}, 0.0f) * fmaxf({a} - {v} * {y}, 0.0f)",
        ("torch.mean(torch.clamp({a} - {x} * {y}, min=0.0) ** 2)",),
        _SIGNS,
        scalar=_MARGIN,
        tiny=False,
    ),
    "soft_margin_loss": Loss(
        "log1pf(expf(-{v} * {y}))",
        ("F.soft_margin_loss({x}, {y})", "torch.mean(torch.log1p(torch.exp(-{x} * {y})))"),
        _SIGNS,
    ),
    "bce_with_logits_loss": Loss(
        "fmaxf({v}, 0.0f) - {v} * {y} + log1pf(expf(-fabsf({v})))",
        ("F.binary_cross_entropy_with_logits({x}, {y})",),
        "torch.rand({s})",
        tiny=False,
    ),
    "poisson_nll_loss": Loss(
        "expf({v}) - {y} * {v}",
        ("F.poisson_nll_loss({x}, {y})", "torch.mean(torch.exp({x}) - {y} * {x})"),
        "torch.rand({s}) * 3",
    ),
    "mean_product": Loss("{v} * {y}", ("torch.mean({x} * {y})", "({x} * {y}).mean()"), "torch.randn({s}) + 1.0"),
}  # fmt: skip


def loss(b: Builder, x: Value, name: str, spec: Loss | None = None) -> Value:
    """Append loss `name`, of TABLE unless `spec` gives it."""
    spec, d = spec or TABLE[name], b.draw
    if len(b.inputs) > 1:
        raise Refused(name)
    if name == "mean_product":
        b.inputs[0].text = b.inputs[0].text.replace("torch.randn({s})", "(torch.randn({s}) + 1.0)", 1)
    text = spec.target.replace("({s})).float", "({s},)).float") if len(x.shape) == 1 else spec.target
    y = b.input(x.shape, "y" if d.tiny else d.pick(("target", "targets", "y", "labels")), text=text)
    scalars: dict[str, Scalar] = {}
    if spec.scalar:
        argument, low, high, step = spec.scalar
        scalars["a"] = b.scalar(argument, d.number(low, high, step))
    code = d.pick(spec.forms).format(x="{0}", y="{1}", **{key: scalar.code for key, scalar in scalars.items()})
    body = Total(spec.term, spec.finish, spec.finish == "{s} / {n}", {"y": Operand(y, "same")}, scalars)
    return b.step(name, code, body, [x, y], (), _RESULT)


_WHOLE = {
    "mean_square_all": (
        "{v} * {v}",
        "{s} / {n}",
        ("torch.mean({x} * {x})", "{x}.pow(2).mean()", "torch.mean({x} ** 2)"),
    ),
    "frobenius_norm": ("{v} * {v}", "sqrtf({s})", ("torch.norm({x})", "torch.linalg.norm({x})", "{x}.norm()")),
    "mean_abs_all": ("fabsf({v})", "{s} / {n}", ("torch.mean(torch.abs({x}))", "{x}.abs().mean()")),
}


def whole(b: Builder, x: Value, name: str) -> Value:
    """Append a reduction of the whole tensor."""
    term, finish, forms = _WHOLE[name]
    body = Total(term, finish, finish == "{s} / {n}")
    probes = tuple(x.numel**0.5 * value for value in _RESULT) if name == "frobenius_norm" else _RESULT
    return b.step(name, b.draw.pick(forms).format(x="{0}"), body, [x], (), probes)


def cross_entropy(b: Builder, x: Value) -> Value:
    """Mean cross-entropy of rows of scores against integer labels."""
    if len(b.inputs) > 1 or len(x.shape) != 2:
        raise Refused("cross_entropy")
    rows, classes = x.shape
    d = b.draw
    text = f"torch.randint(0, {classes}, ({{s}},))"
    y = b.input((rows,), "y" if d.tiny else d.pick(("target", "labels", "y")), dtype="int64", text=text)
    passes = (Pass("peak", "max"), Pass("sum", "sum", "expf({v} - {peak})"))
    sizes = {"rows": "{x}.size(0)", "R": "{x}.size(1)"}
    value = "{peak} + logf({sum}) - {x}[base + {y}[{row}]]"
    if d.chance(0.7) or d.tiny:
        body = Rows(passes, value, "total", sizes, classes, rows, (), {"y": y})
        return b.step("cross_entropy", "F.cross_entropy({0}, {1})", body, [x, y], (), _RESULT)
    body = Rows(passes, value, "row", sizes, classes, rows, ("{rows}",), {"y": y})
    probes = tuple(math.log(classes) + 1.0 + probe for probe in NORMAL)
    return b.step("cross_entropy", 'F.cross_entropy({0}, {1}, reduction="none")', body, [x, y], (rows,), probes)


def kl_div(b: Builder, x: Value) -> Value:
    """Kullback-Leibler divergence of rows of log-probabilities from rows of probabilities."""
    if len(b.inputs) > 1 or len(x.shape) != 2:
        raise Refused("kl_div")
    rows, length = x.shape
    b.inputs[0].text = "torch.log_softmax(torch.randn({s}) * (0.5 + 2.0 * torch.rand(1)), dim=-1)"
    y = b.input(x.shape, "target", text="torch.softmax(torch.randn({s}), dim=-1)")
    passes = (Pass("sum", "sum", "{y}[{i}] * (logf({y}[{i}]) - {v})"),)
    sizes = {"rows": "{x}.size(0)", "R": "{x}.size(1)"}
    body = Rows(passes, "{sum}", "total", sizes, length, rows, (), {"y": y})
    return b.step("kl_div", 'F.kl_div({0}, {1}, reduction="batchmean")', body, [x, y], (), _RESULT)


_COSINE = (
    Pass("sum", "sum", "{v} * {y}[{i}]"),
    Pass("other", "sum", "{v} * {v}"),
    Pass("third", "sum", "{y}[{i}] * {y}[{i}]"),
)


def cosine_similarity(b: Builder, x: Value) -> Value:
    """Cosine of the angle between rows of two matrices."""
    if len(b.inputs) > 1 or len(x.shape) != 2:
        raise Refused("cosine_similarity")
    text = "torch.randn({s}) + torch.randn({s1})"
    b.inputs[0].text, b.inputs[0].statistics = text, (x.shape[0], 1)
    y = b.input(x.shape, "y", text=text, statistics=(x.shape[0], 1))
    sizes = {"rows": "{x}.size(0)", "R": "{x}.size(1)"}
    value = "{sum} / fmaxf(sqrtf({other}) * sqrtf({third}), 1e-8f)"
    body = Rows(_COSINE, value, "row", sizes, x.shape[1], x.shape[0], ("{rows}",), {"y": y})
    code = b.draw.pick(("F.cosine_similarity({0}, {1}, dim=1)", "F.cosine_similarity({0}, {1}, dim=-1)"))
    probes = (-0.8, -0.5, -0.2, 0.0, 0.1, 0.3, 0.6, 0.9)
    return b.step("cosine_similarity", code, body, [x, y], (x.shape[0],), probes)


def triplet_margin_loss(b: Builder, x: Value) -> Value:
    """Mean, over rows, of max(0, distance to the positive - distance to the negative + margin)."""
    if len(b.inputs) > 1 or len(x.shape) != 2:
        raise Refused("triplet_margin_loss")
    b.inputs[0].text = SCALED
    positive = b.input(x.shape, "positive", text=SCALED)
    negative = b.input(x.shape, "negative")
    margin = b.scalar("margin", b.draw.number(0.5, 2.0, 0.25))
    near = "({v} - {y}[{i}] + 1e-6f) * ({v} - {y}[{i}] + 1e-6f)"
    passes = (Pass("sum", "sum", near), Pass("other", "sum", near.replace("{y}", "{z}")))
    sizes = {"rows": "{x}.size(0)", "R": "{x}.size(1)"}
    value = "fmaxf(sqrtf({sum}) - sqrtf({other}) + {a}, 0.0f)"
    operands = {"y": positive, "z": negative}
    body = Rows(passes, value, "total", sizes, x.shape[1], x.shape[0], (), operands, {"a": margin})
    code = f"F.triplet_margin_loss({{0}}, {{1}}, {{2}}, margin={margin.code})"
    return b.step("triplet_margin_loss", code, body, [x, positive, negative], (), _RESULT)


def families() -> list[Family]:
    """All losses as families."""

    def scaled(b: Builder) -> Value:
        rank = 2 if b.draw.tiny else b.draw.pick((1, 2, 2, 2, 3))
        return b.input(
            b.draw.shape(rank),
            *(("x",) if b.draw.tiny else (b.draw.pick(("pred", "predictions", "x", "output")),)),
            text=SCALED,
        )

    def matrix(b: Builder) -> Value:
        return b.input(b.draw.shape(2), text=SCALED)

    def scores(b: Builder) -> Value:
        text = "torch.randn({s}) * (1.0 + 2.0 * torch.rand(1))"
        return b.input(
            b.draw.shape(2), *(("x",) if b.draw.tiny else (b.draw.pick(("logits", "x", "scores")),)), text=text
        )

    def named(function: Callable[[Builder, Value, str], Value], name: str) -> Callable[[Builder, Value], Value]:
        return lambda b, x: function(b, x, name)

    return [
        *(
            Family(name, "loss", named(loss, name), scaled, spec.tiny, name in HELDOUT, ranks=(1, 2, 3), weak=True)
            for name, spec in TABLE.items()
        ),
        *(Family(name, "loss", named(whole, name), scaled, True, ranks=(1, 2, 3), weak=True) for name in _WHOLE),
        Family("cross_entropy", "loss", cross_entropy, scores, tiny=True, ranks=(2,), weak=True),
        Family("kl_div", "loss", kl_div, matrix, ranks=(2,), weak=True),
        Family("cosine_similarity", "loss", cosine_similarity, matrix, ranks=(2,), weak=True),
        Family("triplet_margin_loss", "loss", triplet_margin_loss, matrix, ranks=(2,), weak=True),
    ]
