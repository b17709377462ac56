"""Reductions over dimensions and of whole tensors, arg-max and running reductions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from dice.data.synthetic.builder import Builder, Source, centred, distinct, moments, rms
from dice.data.synthetic.graph import NORMAL, Arg, Pass, Rows, Scan, Value
from dice.data.synthetic.table.entry import Entry
from dice.data.synthetic.table.layout import (
    RANDOM_SCALE,
    ROW_STATISTICS,
    WHOLE_PROBES,
    axes_of,
    axis_text,
    layout,
    made_for,
    plain,
    reduced,
)
from dice.data.synthetic.table.sources import COUNTS, MISSING

Probes = Callable[[Value, int], tuple[float, ...]]
"""Typical results for an input and a length of its rows."""


@dataclass
class Reduction(Entry, group="reduce"):
    """A reduction. Forms are templates in {x}, {d} (dimension) and {k} (`, keepdim=True` or nothing).

    `text`: an input made for it (`dice.data.synthetic.table.layout.made_for`); `start`: one of any shape; without both, a
    standard normal one. `weak`: as in Entry. `jumps`: the result is not continuous, so it takes exact inputs only.
    `suits`: whether it can be applied to a value. `longest`: elements that a row may have.
    `takes`, `dtype`: types of the input and of the result.
    """

    passes: tuple[Pass, ...]
    value: str
    forms: tuple[str, ...]
    probes: Probes
    text: str = ""
    start: Source | None = None
    weak: bool = False
    suits: Callable[[Value], bool] = lambda x: True
    many_axes: bool = True
    longest: int = 100_000
    takes: tuple[str, ...] = ("float",)
    dtype: str = "float"
    jumps: bool = False

    def first(self, b: Builder) -> Value:
        if self.start:
            return self.start.input(b, b.draw.shape(b.draw.rank((2, 3, 4))))
        return made_for(b, self.text, self.longest) if self.text else plain(b)

    def apply(self, b: Builder, x: Value) -> Value:
        self.refuse_if(x.dtype not in self.takes or (self.jumps and not x.exact))
        axes = axes_of(b, len(x.shape))
        if not self.many_axes:
            axes = axes[-1:]
        sizes, length, n_rows = layout(x.shape, axes)
        self.refuse_if(length > self.longest or length < 2 or n_rows < 4 or not self.suits(x))
        keep = b.draw.chance(0.25) and not b.draw.tiny and "{k}" in self.forms[0]
        shape, alloc = reduced(x.shape, axes, keep)
        form = b.draw.pick(self.forms)
        code = form.format(x="{0}", d=axis_text(b, axes, len(x.shape)), k=", keepdim=True" if keep else "")
        body = Rows(self.passes, self.value, "row", sizes, length, n_rows, alloc)
        return b.step(self.name, code, body, [x], shape, self.probes(x, length), self.dtype, self.jumps)


def _spread(x: Value) -> bool:
    """Whether few elements share the largest or the smallest value, so that it differs from row to row."""
    ordered = sorted(x.probes)
    return ordered[1] - ordered[0] >= 0.02 and ordered[-1] - ordered[-2] >= 0.02


def _near_one(x: Value) -> bool:
    return min(x.probes) > 0.7 and max(x.probes) < 1.35


NEAR_ONE = "0.8 + 0.4 * torch.rand({s})"
_SUM = (Pass("sum", "sum"),)
_SQUARES = (Pass("sum", "sum", "{v} * {v}"),)
SPREAD = (
    Pass("sum", "sum", then=("float {mean} = {sum} / {R};",)),
    Pass("var", "sum", "({v} - {mean}) * ({v} - {mean})"),
)
"""The mean of a row, and the sum of squared distances from it."""
_ONE = "({v} != 0.0f ? 1.0f : 0.0f)"
_RARE = Source("(torch.rand({s}) > 0.9).float()", (0, 0, 0, 1, 0, 0, 0, 1), 0, 1)
_OFTEN = Source("(torch.rand({s}) > 0.1).float()", (1, 1, 1, 0, 1, 1, 1, 0), 0, 1)


def _sum_probes(x: Value, length: int) -> tuple[float, ...]:
    mean, width = moments(x.probes)
    return centred(mean * length, width * math.sqrt(length))


def _power(x: Value) -> float:
    """Mean square of the probes."""
    return sum(probe * probe for probe in x.probes) / len(x.probes)


def _about_norm(x: Value, length: int) -> tuple[float, ...]:
    size = math.sqrt(length) * rms(x)
    return centred(size, 0.3 * size)


def _test(term: str, value: str, name: str, start: Source) -> Reduction:
    """A question about all elements of a row."""
    return Reduction(
        (Pass("sum", "sum", term),),
        value,
        (f"torch.{name}({{x}}, dim={{d}}{{k}})", f"{{x}}.bool().{name}(dim={{d}}{{k}})"),
        lambda x, length: (1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0),
        start=start,
        takes=("float", "bool"),
        dtype="bool",
        jumps=True,
        many_axes=False,
        longest=64,
    )


REDUCTIONS: dict[str, Reduction] = {
    "sum": Reduction(
        _SUM, "{sum}", ("torch.sum({x}, dim={d}{k})", "{x}.sum(dim={d}{k})"), _sum_probes,
    ),
    "mean": Reduction(
        _SUM, "{sum} / {R}", ("torch.mean({x}, dim={d}{k})", "{x}.mean(dim={d}{k})"),
        lambda x, length: centred(*moments(x.probes)), text=ROW_STATISTICS, weak=True,
    ),
    "max": Reduction(
        (Pass("peak", "max"),), "{peak}",
        ("torch.max({x}, dim={d}{k})[0]", "{x}.max(dim={d}{k}).values", "torch.amax({x}, dim={d}{k})"),
        lambda x, length: centred(max(x.probes), 0.25 * moments(x.probes)[1]), suits=_spread, many_axes=False,
    ),
    "min": Reduction(
        (Pass("low", "min"),), "{low}",
        ("torch.min({x}, dim={d}{k})[0]", "{x}.min(dim={d}{k}).values", "torch.amin({x}, dim={d}{k})"),
        lambda x, length: centred(min(x.probes), 0.25 * moments(x.probes)[1]), suits=_spread, many_axes=False,
    ),
    "prod": Reduction(
        (Pass("sum", "prod"),), "{sum}", ("torch.prod({x}, dim={d}{k})", "{x}.prod(dim={d}{k})"),
        lambda x, length: centred(1.0, 0.4), text=NEAR_ONE, suits=_near_one, weak=True,
        many_axes=False, longest=100,
    ),
    "norm": Reduction(
        _SQUARES, "sqrtf({sum})",
        ("torch.norm({x}, dim={d}{k})", "torch.linalg.vector_norm({x}, dim={d}{k})", "{x}.norm(p=2, dim={d}{k})"),
        lambda x, length: centred(math.sqrt(length * _power(x)), 0.3 * math.sqrt(length * _power(x))), text=ROW_STATISTICS,
        weak=True,
    ),
    "l1_norm": Reduction(
        (Pass("sum", "sum", "fabsf({v})"),), "{sum}",
        ("torch.norm({x}, p=1, dim={d}{k})", "torch.sum(torch.abs({x}), dim={d}{k})", "{x}.abs().sum(dim={d}{k})"),
        lambda x, length: centred(length * math.sqrt(_power(x)) * 0.8, 0.25 * length * math.sqrt(_power(x))),
        text=ROW_STATISTICS, weak=True,
    ),
    "mean_square": Reduction(
        _SQUARES, "{sum} / {R}",
        ("torch.mean({x} * {x}, dim={d}{k})", "{x}.pow(2).mean(dim={d}{k})"),
        lambda x, length: centred(1.3 * _power(x), 0.5 * _power(x)), text=ROW_STATISTICS, weak=True,
    ),
    "var": Reduction(
        SPREAD,
        "{var} / ({R} - 1)",
        ("torch.var({x}, dim={d}{k})", "{x}.var(dim={d}{k})", "torch.var({x}, dim={d}, unbiased=True{k})"),
        lambda x, length: centred(1.1 * moments(x.probes)[1] ** 2, 0.4 * moments(x.probes)[1] ** 2), text=ROW_STATISTICS,
        weak=True,
    ),
    "std": Reduction(
        SPREAD,
        "sqrtf({var} / ({R} - 1))", ("torch.std({x}, dim={d}{k})", "{x}.std(dim={d}{k})"),
        lambda x, length: centred(moments(x.probes)[1], 0.25 * moments(x.probes)[1]), text=ROW_STATISTICS, weak=True,
    ),
    "logsumexp": Reduction(
        (Pass("peak", "max"), Pass("sum", "sum", "expf({v} - {peak})")), "{peak} + logf({sum})",
        ("torch.logsumexp({x}, dim={d}{k})", "{x}.logsumexp(dim={d}{k})"),
        lambda x, length: centred(math.log(length) + 0.6, 1.0), text=ROW_STATISTICS, weak=True,
    ),
    "any": _test(_ONE, "{sum} > 0.0f", "any", _RARE),
    "all": _test("({v} == 0.0f ? 1.0f : 0.0f)", "{sum} == 0.0f", "all", _OFTEN),
    "count_nonzero": Reduction(
        (Pass("sum", "sum", _ONE),), "{sum}", ("torch.count_nonzero({x}, dim={d})",),
        lambda x, length: tuple(float(round(0.75 * length + probe)) for probe in NORMAL), start=COUNTS,
        takes=("float", "bool"), dtype="int64", jumps=True, many_axes=False,
    ),
    "nansum": Reduction(
        (Pass("sum", "sum", "(isnan({v}) ? 0.0f : {v})"),), "{sum}",
        ("torch.nansum({x}, dim={d}{k})", "{x}.nansum(dim={d}{k})"),
        lambda x, length: centred(0.4 * length, 0.4 * math.sqrt(length)), start=MISSING, weak=True,
    ),
    "nanmean": Reduction(
        (Pass("sum", "sum", "(isnan({v}) ? 0.0f : {v})"), Pass("other", "sum", "(isnan({v}) ? 0.0f : 1.0f)")),
        "{sum} / {other}", ("torch.nanmean({x}, dim={d}{k})", "{x}.nanmean(dim={d}{k})"),
        lambda x, length: centred(0.8, 0.3), start=Source("torch.sqrt(torch.randn({s}) + 1.0)", MISSING.probes),
        weak=True,
    ),
    "norm_max": Reduction(
        (Pass("peak", "max", "fabsf({v})"),), "{peak}",
        ('torch.norm({x}, p=float("inf"), dim={d}{k})', "torch.linalg.vector_norm({x}, ord=float(\"inf\"), dim={d}{k})"),
        lambda x, length: centred(max(map(abs, x.probes)), 0.25 * moments(x.probes)[1]), text=ROW_STATISTICS,
        many_axes=False,
    ),
    "norm_of_order": Reduction(
        (Pass("sum", "sum", "powf(fabsf({v}), 3.0f)"),), "cbrtf({sum})",
        ("torch.norm({x}, p=3, dim={d}{k})", "torch.linalg.vector_norm({x}, ord=3, dim={d}{k})"), _about_norm,
        text=ROW_STATISTICS, weak=True,
    ),
}  # fmt: skip


@dataclass
class Whole(Entry, group="reduce", ranks=(1, 2, 3), weak=True):
    """A number of a whole tensor, computed as one long row: passes over it, the value, spellings.

    `varied`: different probes that the tensor must have.
    """

    passes: tuple[Pass, ...]
    value: str
    forms: tuple[str, ...]
    varied: int = 0

    def first(self, b: Builder) -> Value:
        return b.input(b.draw.shape(b.draw.pick((1, 2, 2, 3))), text=f"{RANDOM_SCALE} + torch.randn(1)")

    def apply(self, b: Builder, x: Value) -> Value:
        self.refuse_if(x.dtype != "float" or x.numel > 1 << 21 or distinct(x.probes) < self.varied)
        body = Rows(self.passes, self.value, "row", {"rows": "1", "R": "{x}.numel()"}, x.numel, 1)
        return b.step(self.name, b.draw.pick(self.forms), body, [x], (), WHOLE_PROBES)


WHOLE = {
    "max_all": Whole((Pass("peak", "max"),), "{peak}", ("torch.max({0})", "{0}.max()", "torch.amax({0})"), 7),
    "min_all": Whole((Pass("low", "min"),), "{low}", ("torch.min({0})", "{0}.min()", "torch.amin({0})"), 7),
    "mean_all": Whole(_SUM, "{sum} / {R}", ("torch.mean({0})", "{0}.mean()")),
    "total": Whole(_SUM, "{sum}", ("torch.sum({0})", "{0}.sum()")),
    "std_all": Whole(SPREAD, "sqrtf({var} / ({R} - 1))", ("torch.std({0})", "{0}.std()")),
    "var_all": Whole(SPREAD, "{var} / ({R} - 1)", ("torch.var({0})", "{0}.var()")),
}


@dataclass
class Place(Entry, group="reduce", weak=True):
    """The place of the best element of each row; only for exact values, where equals do not depend on rounding."""

    better: str

    def first(self, b: Builder) -> Value:
        return plain(b)

    def apply(self, b: Builder, x: Value) -> Value:
        self.refuse_if(not x.exact or x.probes is not NORMAL)
        axes = axes_of(b, len(x.shape))[-1:]
        sizes, length, n_rows = layout(x.shape, axes)
        self.refuse_if(length < 2 or n_rows < 2)
        shape, alloc = reduced(x.shape, axes, False)
        code = b.draw.pick((f"torch.{self.name}({{0}}, dim={axes[0]})", f"{{0}}.{self.name}(dim={axes[0]})"))
        return b.step(self.name, code, Arg(self.better, sizes, alloc), [x], shape, dtype="int64")


PLACES = {"argmax": Place(">"), "argmin": Place("<")}
_SHARES = (0.2, 0.9, 0.4, 0.6, 0.1, 0.8, 0.3, 1.0)
"""Positions in a row, as shares of its length, for the probes of a running sum."""


@dataclass
class Running(Entry, group="scan"):
    """A running reduction: what it collects, spellings. `reverse`: from the end."""

    how: str
    forms: tuple[str, ...]
    reverse: bool = False

    def __post_init__(self) -> None:
        self.weak = self.how == "prod"

    def first(self, b: Builder) -> Value:
        return made_for(b, NEAR_ONE, 100) if self.how == "prod" else plain(b)

    def apply(self, b: Builder, x: Value) -> Value:
        axes = axes_of(b, len(x.shape))[-1:]
        sizes, length, _ = layout(x.shape, axes)
        suits = _spread(x) if self.how in ("max", "min") else self.how == "sum" or (length <= 100 and _near_one(x))
        self.refuse_if(x.dtype != "float" or length < 2 or not suits)
        dim = axis_text(b, axes, len(x.shape))
        mean, width = moments(x.probes)
        probes = x.probes
        if self.how == "sum":
            roots = [math.sqrt(share * length) for share in _SHARES]
            probes = tuple(far * (mean * far + width * probe) for far, probe in zip(roots, NORMAL, strict=True))
        elif self.how != "prod":
            probes = centred((max if self.how == "max" else min)(x.probes), 0.3 * width)
        body = Scan(self.how, sizes, length, self.reverse)
        return b.step(self.name, b.draw.pick(self.forms).replace("{d}", dim), body, [x], None, probes)


SCANS = {
    "cumsum": Running("sum", ("torch.cumsum({0}, dim={d})", "{0}.cumsum(dim={d})")),
    "reverse_cumsum": Running(
        "sum", ("torch.flip(torch.cumsum(torch.flip({0}, [{d}]), dim={d}), [{d}])",), reverse=True
    ),
    "cumprod": Running("prod", ("torch.cumprod({0}, dim={d})", "{0}.cumprod(dim={d})")),
    "cummax": Running("max", ("torch.cummax({0}, dim={d})[0]", "torch.cummax({0}, dim={d}).values")),
    "cummin": Running("min", ("torch.cummin({0}, dim={d})[0]", "torch.cummin({0}, dim={d}).values")),
}
