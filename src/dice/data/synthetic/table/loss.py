"""Losses and other sums of a whole tensor.

The first input is scaled by a random number, so that the result differs from call to call: otherwise the mean over many
independent elements would be a constant, which a kernel could return without reading its inputs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dice.data.synthetic.builder import Builder, Refused
from dice.data.synthetic.graph import NORMAL, Operand, Pass, Rows, Scalar, Total, Value
from dice.data.synthetic.table.entry import Entry, Special

SCALED = "torch.randn({s}) * (0.5 + 2.0 * torch.rand(1))"
_SIGNS = "torch.randint(0, 2, {t}).float() * 2 - 1"
_RESULT = (0.4, 0.7, 1.1, 1.6, 2.3, 3.2, 4.5, 6.5)


@dataclass
class Loss(Entry):
    """`term` in {v} (prediction), {y} (target) and {a}; forms in {x}, {y}, {a}; `target`: how the target is drawn, empty
    where there is none; `finish`: the result from the sum {s} of {n} terms; `scalar`: argument name, low, high, step."""

    term: str
    forms: tuple[str, ...]
    target: str = "torch.randn({s})"
    finish: str = "{s} / {n}"
    scalar: tuple[str, float, float, float] | None = None
    group: str = "loss"
    ranks: tuple[int, ...] = (1, 2, 3)
    weak: bool = True

    def first(self, b: Builder) -> Value:
        shape = b.draw.shape(2 if b.draw.tiny else b.draw.pick((1, 2, 2, 2, 3)))
        return b.input(shape, "x", "pred", "predictions", "output", text=SCALED)

    def apply(self, b: Builder, x: Value) -> Value:
        d = b.draw
        inputs, scalars = [x], dict[str, Scalar]()
        if self.target and len(b.inputs) > 1:
            raise Refused(self.name)
        if self.name == "mean_product":
            b.inputs[0].text = b.inputs[0].text.replace("torch.randn({s})", "(torch.randn({s}) + 1.0)", 1)
        if self.target:
            inputs.append(b.input(x.shape, "y", "target", "targets", "labels", text=self.target))
        if self.scalar:
            argument, low, high, step = self.scalar
            scalars["a"] = b.scalar(argument, d.number(low, high, step))
        code = d.pick(self.forms).format(x="{0}", y="{1}", **{key: scalar.code for key, scalar in scalars.items()})
        operands = {key: Operand(value, "same") for key, value in zip("y", inputs[1:], strict=False)}
        body = Total(self.term, self.finish, self.finish == "{s} / {n}", operands, scalars)
        probes = tuple(x.numel**0.5 * value for value in _RESULT) if self.name == "frobenius_norm" else _RESULT
        return b.step(self.name, code, body, inputs, (), probes)


_MARGIN = ("margin", 0.5, 1.5, 0.25)

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
        ("F.smooth_l1_loss({x}, {y}, beta={a})",), scalar=("beta", 0.5, 2.0, 0.25),
    ),
    "huber_loss": Loss(
        "fabsf({v} - {y}) < {a} ? 0.5f * ({v} - {y}) * ({v} - {y}) : {a} * (fabsf({v} - {y}) - 0.5f * {a})",
        ("F.huber_loss({x}, {y}, delta={a})",), scalar=("delta", 0.5, 2.0, 0.25),
    ),
    "hinge_loss": Loss(
        "fmaxf({a} - {v} * {y}, 0.0f)",
        ("torch.mean(torch.clamp({a} - {x} * {y}, min=0.0))", "torch.clamp({a} - {x} * {y}, min=0).mean()"), _SIGNS,
        scalar=_MARGIN,
    ),
    "squared_hinge_loss": Loss(
        "fmaxf({a} - {v} * {y}, 0.0f) * fmaxf({a} - {v} * {y}, 0.0f)",
        ("torch.mean(torch.clamp({a} - {x} * {y}, min=0.0) ** 2)",), _SIGNS, scalar=_MARGIN,
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
    "mean_product": Loss("{v} * {y}", ("torch.mean({x} * {y})", "({x} * {y}).mean()"), "torch.randn({s}) + 1.0"),
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
        _SIGNS, scalar=_MARGIN,
    ),
    "sum_all": Loss("{v} * {y}", ("torch.sum({x} * {y})", "({x} * {y}).sum()"), "torch.randn({s}) + 1.0", "{s}"),
    "mean_square_all": Loss(
        "{v} * {v}", ("torch.mean({x} * {x})", "{x}.pow(2).mean()", "torch.mean({x} ** 2)"), target="",
    ),
    "frobenius_norm": Loss(
        "{v} * {v}", ("torch.norm({x})", "torch.linalg.norm({x})", "{x}.norm()"), target="", finish="sqrtf({s})",
    ),
    "mean_abs_all": Loss("fabsf({v})", ("torch.mean(torch.abs({x}))", "{x}.abs().mean()"), target=""),
}  # fmt: skip


def cross_entropy(b: Builder, x: Value) -> Value:
    """Append the cross-entropy of rows of scores against integer labels."""
    if len(b.inputs) > 1 or len(x.shape) != 2:
        raise Refused("cross_entropy")
    rows, classes = x.shape
    text = f"torch.randint(0, {classes}, ({{s}},))"
    y = b.input((rows,), "y", "target", "labels", dtype="int64", text=text)
    passes = (Pass("peak", "max"), Pass("sum", "sum", "expf({v} - {peak})"))
    value = "{peak} + logf({sum}) - {x}[base + {y}[{row}]]"
    if b.draw.chance(0.7) or b.draw.tiny:
        body = Rows(passes, value, "total", _MATRIX, classes, rows, (), {"y": y})
        return b.step("cross_entropy", "F.cross_entropy({0}, {1})", body, [x, y], (), _RESULT)
    body = Rows(passes, value, "row", _MATRIX, classes, rows, ("{rows}",), {"y": y})
    probes = tuple(math.log(classes) + 1.0 + probe for probe in NORMAL)
    return b.step("cross_entropy", 'F.cross_entropy({0}, {1}, reduction="none")', body, [x, y], (rows,), probes)


_MATRIX = {"rows": "{x}.size(0)", "R": "{x}.size(1)"}


@dataclass
class RowLoss(Entry):
    """A loss of the rows of matrices: passes over a row, its value, and whether the result is the `total` or one for each
    `row`. `form` has {0}, {1}, ... and {a}; `texts`: what makes the inputs, by name, the first of which is {v}."""

    passes: tuple[Pass, ...]
    value: str
    mode: str
    form: str
    texts: dict[str, str]
    scalar: tuple[str, float, float, float] | None = None
    group: str = "loss"
    ranks: tuple[int, ...] = (2,)
    weak: bool = True

    def first(self, b: Builder) -> Value:
        return b.input(b.draw.shape(2), text=SCALED)

    def apply(self, b: Builder, x: Value) -> Value:
        if len(b.inputs) > 1 or len(x.shape) != 2:
            raise Refused(self.name)
        rows, length = x.shape
        (_, b.inputs[0].text), *others = self.texts.items()
        b.inputs[0].statistics = (rows, 1)
        more = [b.input(x.shape, title, text=text, statistics=(rows, 1)) for title, text in others]
        scalars = {"a": b.scalar(self.scalar[0], b.draw.number(*self.scalar[1:]))} if self.scalar else {}
        code = self.form.replace("{a}", scalars["a"].code if scalars else "")
        operands = dict(zip("yz", more, strict=False))
        each = self.mode == "row"
        alloc = ("{rows}",) if each else ()
        body = Rows(self.passes, self.value, self.mode, _MATRIX, length, rows, alloc, operands, scalars)
        probes = (-0.8, -0.5, -0.2, 0.0, 0.1, 0.3, 0.6, 0.9) if each else _RESULT
        return b.step(self.name, code, body, [x, *more], (rows,) if each else (), probes)


_ROWS = "torch.randn({s}) + torch.randn({s1})"
_NEAR = "({v} - {y}[{i}] + 1e-6f) * ({v} - {y}[{i}] + 1e-6f)"
ROW_LOSSES = {
    "kl_div": RowLoss(
        (Pass("sum", "sum", "{y}[{i}] * (logf({y}[{i}]) - {v})"),),
        "{sum}",
        "total",
        'F.kl_div({0}, {1}, reduction="batchmean")',
        {"x": f"torch.log_softmax({SCALED}, dim=-1)", "target": "torch.softmax(torch.randn({s}), dim=-1)"},
    ),
    "cosine_similarity": RowLoss(
        (
            Pass("sum", "sum", "{v} * {y}[{i}]"),
            Pass("other", "sum", "{v} * {v}"),
            Pass("third", "sum", "{y}[{i}] * {y}[{i}]"),
        ),
        "{sum} / fmaxf(sqrtf({other}) * sqrtf({third}), 1e-8f)",
        "row",
        "F.cosine_similarity({0}, {1}, dim=1)",
        {"x": _ROWS, "y": _ROWS},
    ),
    "triplet_margin_loss": RowLoss(
        (Pass("sum", "sum", _NEAR), Pass("other", "sum", _NEAR.replace("{y}", "{z}"))),
        "fmaxf(sqrtf({sum}) - sqrtf({other}) + {a}, 0.0f)",
        "total",
        "F.triplet_margin_loss({0}, {1}, {2}, margin={a})",
        {"x": SCALED, "positive": SCALED, "negative": "torch.randn({s})"},
        _MARGIN,
    ),
}


def _scores(b: Builder) -> Value:
    return b.input(b.draw.shape(2), "x", "logits", "scores", text="torch.randn({s}) * (1.0 + 2.0 * torch.rand(1))")


CROSS_ENTROPY = {"cross_entropy": Special("loss", cross_entropy, _scores, (2,), weak=True)}
