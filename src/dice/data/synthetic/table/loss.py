"""Losses and other sums of a whole tensor.

The first input is scaled by a random number, so that the result differs from call to call: otherwise the mean over many
independent elements would be a constant, which a kernel could return without reading its inputs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from dice.data.synthetic.builder import Builder, Refused
from dice.data.synthetic.graph import NORMAL, Operand, Pass, Total, Value
from dice.data.synthetic.table.entry import Entry, Special, spelled
from dice.data.synthetic.table.layout import RANDOM_SCALE, WHOLE_PROBES, of_rows

_SIGNS = "torch.randint(0, 2, {t}).float() * 2 - 1"


@dataclass
class Loss(Entry, group="loss", ranks=(1, 2, 3), weak=True):
    """`term` in {v} (prediction), {y} (target) and {a}; forms in {x}, {y}, {a}; `target`: how the target is drawn, empty
    where there is none; `finish`: the result from the sum {s} of {n} terms; `scalars`: as in Elementwise; `start`: how the
    prediction is drawn; `grows`: the result with the root of {n}."""

    term: str
    forms: tuple[str, ...]
    target: str = "torch.randn({s})"
    finish: str = "{s} / {n}"
    scalars: Mapping[str, tuple[str, float, float, float]] = field(default_factory=dict)
    start: str = RANDOM_SCALE
    grows: bool = False

    def first(self, b: Builder) -> Value:
        shape = b.draw.shape(2 if b.draw.tiny else b.draw.pick((1, 2, 2, 2, 3)))
        return b.input(shape, "x", "pred", "predictions", "output", text=self.start)

    def apply(self, b: Builder, x: Value) -> Value:
        self.refuse_if(self.target and len(b.inputs) > 1)
        others = [b.input(x.shape, "y", "target", "targets", "labels", text=self.target)] if self.target else []
        scalars = {key: b.drawn(*spec) for key, spec in self.scalars.items()}
        code = spelled(b.draw.pick(self.forms), scalars)
        operands = dict(zip("y", (Operand(other, "same") for other in others), strict=False))
        body = Total(self.term, self.finish, self.finish == "{s} / {n}", operands, scalars)
        probes = tuple((x.numel**0.5 if self.grows else 1) * value for value in WHOLE_PROBES)
        return b.step(self.name, code, body, [x, *others], (), probes)


_MARGIN = {"a": ("margin", 0.5, 1.5, 0.25)}

LOSSES = {
    "mse_loss": Loss("({v} - {y}) * ({v} - {y})", ("F.mse_loss({x}, {y})", "torch.mean(({x} - {y}) ** 2)")),
    "rmse": Loss(
        "({v} - {y}) * ({v} - {y})", ("torch.sqrt(F.mse_loss({x}, {y}))", "torch.mean(({x} - {y}) ** 2).sqrt()"),
        finish="sqrtf({s} / {n})",
    ),
    "l1_loss": Loss(
        "fabsf({v} - {y})", ("F.l1_loss({x}, {y})", "torch.mean(torch.abs({x} - {y}))", "({x} - {y}).abs().mean()"),
    ),
    "smooth_l1_loss": Loss(
        "fabsf({v} - {y}) < {a} ? 0.5f * ({v} - {y}) * ({v} - {y}) / {a} : fabsf({v} - {y}) - 0.5f * {a}",
        ("F.smooth_l1_loss({x}, {y}, beta={a})",), scalars={"a": ("beta", 0.5, 2.0, 0.25)},
    ),
    "huber_loss": Loss(
        "fabsf({v} - {y}) < {a} ? 0.5f * ({v} - {y}) * ({v} - {y}) : {a} * (fabsf({v} - {y}) - 0.5f * {a})",
        ("F.huber_loss({x}, {y}, delta={a})",), scalars={"a": ("delta", 0.5, 2.0, 0.25)},
    ),
    "hinge_loss": Loss(
        "fmaxf({a} - {v} * {y}, 0.0f)",
        ("torch.mean(torch.clamp({a} - {x} * {y}, min=0.0))", "torch.clamp({a} - {x} * {y}, min=0).mean()"), _SIGNS,
        scalars=_MARGIN,
    ),
    "squared_hinge_loss": Loss(
        "fmaxf({a} - {v} * {y}, 0.0f) * fmaxf({a} - {v} * {y}, 0.0f)",
        ("torch.mean(torch.clamp({a} - {x} * {y}, min=0.0) ** 2)",), _SIGNS, scalars=_MARGIN,
    ),
    "soft_margin_loss": Loss(
        "log1pf(expf(-{v} * {y}))", ("F.soft_margin_loss({x}, {y})", "torch.mean(torch.log1p(torch.exp(-{x} * {y})))"),
        _SIGNS,
    ),
    "bce_with_logits_loss": Loss(
        "fmaxf({v}, 0.0f) - {v} * {y} + log1pf(expf(-fabsf({v})))", ("F.binary_cross_entropy_with_logits({x}, {y})",),
        "torch.rand({s})",
    ),
    "poisson_nll_loss": Loss(
        "expf({v}) - {y} * {v}", ("F.poisson_nll_loss({x}, {y})", "torch.mean(torch.exp({x}) - {y} * {x})"),
        "torch.rand({s}) * 3",
    ),
    "mean_product": Loss(
        "{v} * {y}", ("torch.mean({x} * {y})", "({x} * {y}).mean()"), "torch.randn({s}) + 1.0",
        start=RANDOM_SCALE.replace("torch.randn({s})", "(torch.randn({s}) + 1.0)"),
    ),
    "dist": Loss(
        "({v} - {y}) * ({v} - {y})", ("torch.dist({x}, {y})", "torch.dist({x}, {y}, p=2)"), finish="sqrtf({s})",
    ),
    "squared_error_sum": Loss(
        "({v} - {y}) * ({v} - {y})", ('F.mse_loss({x}, {y}, reduction="sum")', "torch.sum(({x} - {y}) ** 2)"),
        finish="{s}",
    ),
    "absolute_error_sum": Loss(
        "fabsf({v} - {y})", ('F.l1_loss({x}, {y}, reduction="sum")', "torch.sum(torch.abs({x} - {y}))"), finish="{s}",
    ),
    "hinge_embedding_loss": Loss(
        "({y} > 0.0f ? {v} : fmaxf({a} - {v}, 0.0f))", ("F.hinge_embedding_loss({x}, {y}, margin={a})",),
        _SIGNS, scalars=_MARGIN,
    ),
    "sum_all": Loss("{v} * {y}", ("torch.sum({x} * {y})", "({x} * {y}).sum()"), "torch.randn({s}) + 1.0", "{s}"),
    "mean_square_all": Loss(
        "{v} * {v}", ("torch.mean({x} * {x})", "{x}.pow(2).mean()", "torch.mean({x} ** 2)"), target="",
    ),
    "frobenius_norm": Loss(
        "{v} * {v}", ("torch.norm({x})", "torch.linalg.norm({x})", "{x}.norm()"), target="", finish="sqrtf({s})",
        grows=True,
    ),
    "mean_abs_all": Loss("fabsf({v})", ("torch.mean(torch.abs({x}))", "{x}.abs().mean()"), target=""),
}  # fmt: skip


@dataclass
class RowLoss(Entry, group="loss", ranks=(2,), weak=True):
    """A loss of the rows of matrices: passes over a row, its value, and whether the result is the `total` or one for each
    `row`. `form` in {x}, {y}, {z} and {a}; `texts`: what makes the inputs, by name, the first of which is {v}."""

    passes: tuple[Pass, ...]
    value: str
    mode: str
    form: str
    texts: Mapping[str, str]
    scalars: Mapping[str, tuple[str, float, float, float]] = field(default_factory=dict)

    def first(self, b: Builder) -> Value:
        shape = b.draw.shape(2)
        return b.input(shape, text=next(iter(self.texts.values())), statistics=(shape[0], 1))

    def apply(self, b: Builder, x: Value) -> Value:
        self.refuse_if(len(b.inputs) > 1 or len(x.shape) != 2)
        texts = [*self.texts.items()][1:]
        more = [b.input(x.shape, title, text=text, statistics=(x.shape[0], 1)) for title, text in texts]
        scalars = {key: b.drawn(*spec) for key, spec in self.scalars.items()}
        body = of_rows(x, self.passes, self.value, self.mode, dict(zip("yz", more, strict=False)), scalars)
        each = self.mode == "row"
        probes = (-0.8, -0.5, -0.2, 0.0, 0.1, 0.3, 0.6, 0.9) if each else WHOLE_PROBES
        return b.step(self.name, spelled(self.form, scalars), body, [x, *more], x.shape[:each], probes)


_ROWS = "torch.randn({s}) + torch.randn({s1})"
_NEAR = "({v} - {y}[{i}] + 1e-6f) * ({v} - {y}[{i}] + 1e-6f)"
ROW_LOSSES = {
    "kl_div": RowLoss(
        (Pass("sum", "sum", "{y}[{i}] * (logf({y}[{i}]) - {v})"),),
        "{sum}",
        "total",
        'F.kl_div({x}, {y}, reduction="batchmean")',
        {"x": f"torch.log_softmax({RANDOM_SCALE}, dim=-1)", "target": "torch.softmax(torch.randn({s}), dim=-1)"},
    ),
    "cosine_similarity": RowLoss(
        (
            Pass("sum", "sum", "{v} * {y}[{i}]"),
            Pass("other", "sum", "{v} * {v}"),
            Pass("third", "sum", "{y}[{i}] * {y}[{i}]"),
        ),
        "{sum} / fmaxf(sqrtf({other}) * sqrtf({third}), 1e-8f)",
        "row",
        "F.cosine_similarity({x}, {y}, dim=1)",
        {"x": _ROWS, "y": _ROWS},
    ),
    "triplet_margin_loss": RowLoss(
        (Pass("sum", "sum", _NEAR), Pass("other", "sum", _NEAR.replace("{y}", "{z}"))),
        "fmaxf(sqrtf({sum}) - sqrtf({other}) + {a}, 0.0f)",
        "total",
        "F.triplet_margin_loss({x}, {y}, {z}, margin={a})",
        {"x": RANDOM_SCALE, "positive": RANDOM_SCALE, "negative": "torch.randn({s})"},
        _MARGIN,
    ),
}


def cross_entropy(b: Builder, x: Value) -> Value:
    """Append the cross-entropy of rows of scores against integer labels."""
    if len(b.inputs) > 1 or len(x.shape) != 2:
        raise Refused("cross_entropy")
    rows, classes = x.shape
    y = b.input((rows,), "y", "target", "labels", dtype="int64", text=f"torch.randint(0, {classes}, ({{s}},))")
    code, mode, probes = "F.cross_entropy({0}, {1})", "total", WHOLE_PROBES
    if not b.draw.chance(0.7) and not b.draw.tiny:
        code, mode = 'F.cross_entropy({0}, {1}, reduction="none")', "row"
        probes = tuple(math.log(classes) + 1.0 + probe for probe in NORMAL)
    passes = (Pass("peak", "max"), Pass("sum", "sum", "expf({v} - {peak})"))
    body = of_rows(x, passes, "{peak} + logf({sum}) - {x}[base + {y}[{row}]]", mode, {"y": y})
    return b.step("cross_entropy", code, body, [x, y], x.shape[: mode == "row"], probes)


def _scores(b: Builder) -> Value:
    return b.input(b.draw.shape(2), "x", "logits", "scores", text="torch.randn({s}) * (1.0 + 2.0 * torch.rand(1))")


CROSS_ENTROPY = {"cross_entropy": Special("loss", cross_entropy, _scores, (2,), weak=True)}
