"""Reductions over dimensions, arg-max and running reductions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from dice.data.synthetic.builder import Builder, Refused, Source, centred, moments
from dice.data.synthetic.families.layout import ROW_STATISTICS, axes_of, axis_text, layout, made_for, plain, reduced
from dice.data.synthetic.families.registry import HELDOUT, Family
from dice.data.synthetic.graph import NORMAL, Arg, Pass, Rows, Scan, Value


@dataclass(frozen=True, slots=True)
class Reduction:
    """A reduction. Forms are templates in {x}, {d} (dimension) and {k} (`, keepdim=True` or nothing)."""

    passes: tuple[Pass, ...]
    value: str
    forms: tuple[str, ...]
    probes: Callable[[Value, int], tuple[float, ...]]
    text: str = "torch.randn({s})"
    weak: bool = False
    many_axes: bool = True
    longest: int = 100_000
    tiny: bool = True
    start: Source | None = None
    takes: tuple[str, ...] = ("float",)
    dtype: str = "float"
    jumps: bool = False
    """The result is not continuous, so it takes exact inputs only."""


def _sum_probes(x: Value, length: int) -> tuple[float, ...]:
    mean, width = moments(x.probes)
    return centred(mean * length, width * math.sqrt(length))


def _power(x: Value) -> float:
    """Mean square of the probes."""
    return sum(probe * probe for probe in x.probes) / len(x.probes)


def _about(mean: float, width: float) -> Callable[[Value, int], tuple[float, ...]]:
    return lambda x, length: centred(mean, width)


REDUCTIONS: dict[str, Reduction] = {
    "sum": Reduction(
        (Pass("sum", "sum"),), "{sum}", ("torch.sum({x}, dim={d}{k})", "{x}.sum(dim={d}{k})"), _sum_probes
    ),
    "mean": Reduction(
        (Pass("sum", "sum"),),
        "{sum} / {R}",
        ("torch.mean({x}, dim={d}{k})", "{x}.mean(dim={d}{k})"),
        lambda x, length: centred(moments(x.probes)[0], moments(x.probes)[1]),
        ROW_STATISTICS,
        weak=True,
    ),
    "max": Reduction(
        (Pass("peak", "max"),),
        "{peak}",
        ("torch.max({x}, dim={d}{k})[0]", "{x}.max(dim={d}{k}).values", "torch.amax({x}, dim={d}{k})"),
        lambda x, length: centred(max(x.probes), 0.25 * moments(x.probes)[1]),
        many_axes=False,
    ),
    "min": Reduction(
        (Pass("low", "min"),),
        "{low}",
        ("torch.min({x}, dim={d}{k})[0]", "{x}.min(dim={d}{k}).values", "torch.amin({x}, dim={d}{k})"),
        lambda x, length: centred(min(x.probes), 0.25 * moments(x.probes)[1]),
        many_axes=False,
    ),
    "value_range": Reduction(
        (Pass("peak", "max"), Pass("low", "min")),
        "{peak} - {low}",
        ("torch.amax({x}, dim={d}{k}) - torch.amin({x}, dim={d}{k})",),
        lambda x, length: centred(max(x.probes) - min(x.probes), 0.3 * moments(x.probes)[1]),
        ROW_STATISTICS,
        tiny=False,
    ),
    "prod": Reduction(
        (Pass("sum", "prod"),),
        "{sum}",
        ("torch.prod({x}, dim={d}{k})", "{x}.prod(dim={d}{k})"),
        _about(1.0, 0.4),
        "0.8 + 0.4 * torch.rand({s})",
        weak=True,
        many_axes=False,
        longest=100,
    ),
    "norm": Reduction(
        (Pass("sum", "sum", "{v} * {v}"),),
        "sqrtf({sum})",
        ("torch.norm({x}, dim={d}{k})", "torch.linalg.vector_norm({x}, dim={d}{k})", "{x}.norm(p=2, dim={d}{k})"),
        lambda x, length: centred(math.sqrt(length * _power(x)), 0.3 * math.sqrt(length * _power(x))),
        ROW_STATISTICS,
        weak=True,
    ),
    "l1_norm": Reduction(
        (Pass("sum", "sum", "fabsf({v})"),),
        "{sum}",
        ("torch.norm({x}, p=1, dim={d}{k})", "torch.sum(torch.abs({x}), dim={d}{k})", "{x}.abs().sum(dim={d}{k})"),
        lambda x, length: centred(length * math.sqrt(_power(x)) * 0.8, 0.25 * length * math.sqrt(_power(x))),
        ROW_STATISTICS,
        weak=True,
    ),
    "mean_square": Reduction(
        (Pass("sum", "sum", "{v} * {v}"),),
        "{sum} / {R}",
        ("torch.mean({x} * {x}, dim={d}{k})", "{x}.pow(2).mean(dim={d}{k})"),
        lambda x, length: centred(1.3 * _power(x), 0.5 * _power(x)),
        ROW_STATISTICS,
        weak=True,
    ),
    "var": Reduction(
        (
            Pass("sum", "sum", then=("float {mean} = {sum} / {R};",)),
            Pass("var", "sum", "({v} - {mean}) * ({v} - {mean})"),
        ),
        "{var} / ({R} - 1)",
        ("torch.var({x}, dim={d}{k})", "{x}.var(dim={d}{k})", "torch.var({x}, dim={d}, unbiased=True{k})"),
        lambda x, length: centred(1.1 * moments(x.probes)[1] ** 2, 0.4 * moments(x.probes)[1] ** 2),
        ROW_STATISTICS,
        weak=True,
    ),
    "std": Reduction(
        (
            Pass("sum", "sum", then=("float {mean} = {sum} / {R};",)),
            Pass("var", "sum", "({v} - {mean}) * ({v} - {mean})"),
        ),
        "sqrtf({var} / ({R} - 1))",
        ("torch.std({x}, dim={d}{k})", "{x}.std(dim={d}{k})"),
        lambda x, length: centred(moments(x.probes)[1], 0.25 * moments(x.probes)[1]),
        ROW_STATISTICS,
        weak=True,
    ),
    "logsumexp": Reduction(
        (Pass("peak", "max"), Pass("sum", "sum", "expf({v} - {peak})")),
        "{peak} + logf({sum})",
        ("torch.logsumexp({x}, dim={d}{k})", "{x}.logsumexp(dim={d}{k})"),
        lambda x, length: centred(math.log(length) + 0.6, 1.0),
        ROW_STATISTICS,
        weak=True,
    ),
}


def reduction(b: Builder, x: Value, name: str, spec: Reduction | None = None) -> Value:
    """Append reduction `name`, of REDUCTIONS unless `spec` gives it."""
    spec = spec or REDUCTIONS[name]
    if x.dtype not in spec.takes or (spec.jumps and not x.exact):
        raise Refused(name)
    axes = axes_of(b, len(x.shape))
    if not spec.many_axes:
        axes = axes[-1:]
    sizes, length, n_rows, _ = layout(x.shape, axes)
    if length > spec.longest or length < 2 or n_rows < 4 or (name == "prod" and not _near_one(x)):
        raise Refused(name)
    if name in _EXTREMES and _saturated(x):
        raise Refused(name)
    keep = b.draw.chance(0.25) and not b.draw.tiny and "{k}" in spec.forms[0]
    shape, alloc = reduced(x.shape, axes, keep)
    form = b.draw.pick(spec.forms)
    code = form.format(x="{0}", d=axis_text(b, axes, len(x.shape)), k=", keepdim=True" if keep else "")
    body = Rows(spec.passes, spec.value, "row", sizes, length, n_rows, alloc)
    return b.step(name, code, body, [x], shape, spec.probes(x, length), spec.dtype, spec.jumps)


_EXTREMES = ("max", "min", "value_range", "cummax")


def _saturated(x: Value) -> bool:
    """Whether many elements share the largest or smallest value, so that it is the same in every row."""
    ordered = sorted(x.probes)
    return ordered[1] - ordered[0] < 0.02 or ordered[-1] - ordered[-2] < 0.02


def _near_one(x: Value) -> bool:
    return min(x.probes) > 0.7 and max(x.probes) < 1.35


def arg(b: Builder, x: Value, name: str) -> Value:
    """Append argmax or argmin; only for exact values, where equals do not depend on rounding."""
    if not x.exact or x.probes is not NORMAL:
        raise Refused(name)
    axes = axes_of(b, len(x.shape))[-1:]
    sizes, length, n_rows, _ = layout(x.shape, axes)
    if length < 2 or n_rows < 2:
        raise Refused(name)
    shape, alloc = reduced(x.shape, axes, False)
    code = b.draw.pick((f"torch.{name}({{0}}, dim={axes[0]})", f"{{0}}.{name}(dim={axes[0]})"))
    body = Arg(">" if name == "argmax" else "<", sizes, alloc)
    return b.step(name, code, body, [x], shape, dtype="int64")


_SHARES = (0.2, 0.9, 0.4, 0.6, 0.1, 0.8, 0.3, 1.0)
"""Positions in a row, as shares of its length, for the probes of a running sum."""


def scan(b: Builder, x: Value, name: str) -> Value:
    """Append cumsum, cumprod, cummax or the sum from the end."""
    axes = axes_of(b, len(x.shape))[-1:]
    sizes, length, _, _ = layout(x.shape, axes)
    if length < 2 or (name == "cumprod" and (length > 100 or not _near_one(x))) or (name == "cummax" and _saturated(x)):
        raise Refused(name)
    dim = axis_text(b, axes, len(x.shape))
    forms = {
        "cumsum": (f"torch.cumsum({{0}}, dim={dim})", f"{{0}}.cumsum(dim={dim})"),
        "cumprod": (f"torch.cumprod({{0}}, dim={dim})", f"{{0}}.cumprod(dim={dim})"),
        "cummax": (f"torch.cummax({{0}}, dim={dim})[0]", f"torch.cummax({{0}}, dim={dim}).values"),
        "reverse_cumsum": (f"torch.flip(torch.cumsum(torch.flip({{0}}, [{dim}]), dim={dim}), [{dim}])",),
    }
    how = {"cumprod": "prod", "cummax": "max"}.get(name, "sum")
    mean, width = moments(x.probes)
    along = [
        math.sqrt(share * length) * (mean * math.sqrt(share * length) + width * probe)
        for share, probe in zip(_SHARES, NORMAL, strict=True)
    ]
    probes = {"sum": tuple(along), "prod": x.probes, "max": centred(max(x.probes), 0.3 * width)}[how]
    body = Scan(how, sizes, length, name == "reverse_cumsum")
    return b.step(name, b.draw.pick(forms[name]), body, [x], None, probes)


def families() -> list[Family]:
    """Reductions, arg-max and scans as families."""

    def near_one(b: Builder) -> Value:
        return made_for(b, "0.8 + 0.4 * torch.rand({s})", 100)

    def named(function: Callable[[Builder, Value, str], Value], name: str) -> Callable[[Builder, Value], Value]:
        return lambda b, x: function(b, x, name)

    return [
        *(family(name, spec, name in HELDOUT) for name, spec in REDUCTIONS.items()),
        *(Family(name, "reduce", named(arg, name), plain, tiny=True, weak=True) for name in ("argmax", "argmin")),
        Family("cumsum", "scan", named(scan, "cumsum"), plain, tiny=True),
        Family("reverse_cumsum", "scan", named(scan, "reverse_cumsum"), plain, heldout=True),
        Family("cummax", "scan", named(scan, "cummax"), plain),
        Family("cumprod", "scan", named(scan, "cumprod"), near_one, weak=True),
    ]


def family(name: str, spec: Reduction, heldout: bool) -> Family:
    """One entry as a family."""

    def start(b: Builder) -> Value:
        if spec.start:
            return spec.start.input(b, b.draw.shape(b.draw.rank((2, 3, 4))))
        return plain(b) if spec.text == "torch.randn({s})" else made_for(b, spec.text, spec.longest)

    def make(b: Builder, x: Value) -> Value:
        return reduction(b, x, name, spec)

    return Family(name, "reduce", make, start, spec.tiny, heldout, weak=spec.weak)
