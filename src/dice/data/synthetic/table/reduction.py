"""Reductions over dimensions and of whole tensors, arg-max and running reductions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from dice.data.synthetic.builder import Builder, Refused, Source, centred, distinct, moments, rms
from dice.data.synthetic.graph import NORMAL, Arg, Pass, Rows, Scan, Value
from dice.data.synthetic.table.entry import Entry
from dice.data.synthetic.table.layout import (
    ROW_STATISTICS,
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


@dataclass(frozen=True, slots=True)
class Reduction:
    """A reduction. Forms are templates in {x}, {d} (dimension) and {k} (`, keepdim=True` or nothing).

    `text`: an input made for it (`dice.data.synthetic.table.layout.made_for`); `start`: one of any shape; without both, a
    standard normal one. `weak`: as in Entry. `jumps`: the result is not continuous, so it takes exact inputs only.
    `longest`: elements that a row may have. `takes`, `dtype`: types of the input and of the result.
    """

    passes: tuple[Pass, ...]
    value: str
    forms: tuple[str, ...]
    probes: Probes
    text: str = ""
    start: Source | None = None
    weak: bool = False
    many_axes: bool = True
    longest: int = 100_000
    takes: tuple[str, ...] = ("float",)
    dtype: str = "float"
    jumps: bool = False


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
        lambda x, length: centred(moments(x.probes)[0], moments(x.probes)[1]), text=ROW_STATISTICS, weak=True,
    ),
    "max": Reduction(
        (Pass("peak", "max"),), "{peak}",
        ("torch.max({x}, dim={d}{k})[0]", "{x}.max(dim={d}{k}).values", "torch.amax({x}, dim={d}{k})"),
        lambda x, length: centred(max(x.probes), 0.25 * moments(x.probes)[1]), many_axes=False,
    ),
    "min": Reduction(
        (Pass("low", "min"),), "{low}",
        ("torch.min({x}, dim={d}{k})[0]", "{x}.min(dim={d}{k}).values", "torch.amin({x}, dim={d}{k})"),
        lambda x, length: centred(min(x.probes), 0.25 * moments(x.probes)[1]), many_axes=False,
    ),
    "prod": Reduction(
        (Pass("sum", "prod"),), "{sum}", ("torch.prod({x}, dim={d}{k})", "{x}.prod(dim={d}{k})"),
        lambda x, length: centred(1.0, 0.4), text=NEAR_ONE, weak=True, many_axes=False, longest=100,
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


def reduction(b: Builder, x: Value, name: str) -> Value:
    """Append reduction `name` of REDUCTIONS."""
    spec = REDUCTIONS[name]
    if x.dtype not in spec.takes or (spec.jumps and not x.exact):
        raise Refused(name)
    axes = axes_of(b, len(x.shape))
    if not spec.many_axes:
        axes = axes[-1:]
    sizes, length, n_rows, _ = layout(x.shape, axes)
    if length > spec.longest or length < 2 or n_rows < 4 or (name == "prod" and not _near_one(x)):
        raise Refused(name)
    if name in ("max", "min") and _saturated(x):
        raise Refused(name)
    keep = b.draw.chance(0.25) and not b.draw.tiny and "{k}" in spec.forms[0]
    shape, alloc = reduced(x.shape, axes, keep)
    form = b.draw.pick(spec.forms)
    code = form.format(x="{0}", d=axis_text(b, axes, len(x.shape)), k=", keepdim=True" if keep else "")
    body = Rows(spec.passes, spec.value, "row", sizes, length, n_rows, alloc)
    return b.step(name, code, body, [x], shape, spec.probes(x, length), spec.dtype, spec.jumps)


def _saturated(x: Value) -> bool:
    """Whether many elements share the largest or smallest value, so that it is the same in every row."""
    ordered = sorted(x.probes)
    return ordered[1] - ordered[0] < 0.02 or ordered[-1] - ordered[-2] < 0.02


def _near_one(x: Value) -> bool:
    return min(x.probes) > 0.7 and max(x.probes) < 1.35


WHOLE: dict[str, tuple[tuple[Pass, ...], str, tuple[str, ...]]] = {
    "max_all": ((Pass("peak", "max"),), "{peak}", ("torch.max({0})", "{0}.max()", "torch.amax({0})")),
    "min_all": ((Pass("low", "min"),), "{low}", ("torch.min({0})", "{0}.min()", "torch.amin({0})")),
    "mean_all": (_SUM, "{sum} / {R}", ("torch.mean({0})", "{0}.mean()")),
    "total": (_SUM, "{sum}", ("torch.sum({0})", "{0}.sum()")),
    "std_all": (SPREAD, "sqrtf({var} / ({R} - 1))", ("torch.std({0})", "{0}.std()")),
    "var_all": (SPREAD, "{var} / ({R} - 1)", ("torch.var({0})", "{0}.var()")),
}
"""Numbers of a whole tensor: passes over it, the value, spellings."""


def whole(b: Builder, x: Value, name: str) -> Value:
    """Append a number of a whole tensor, computed as one long row."""
    passes, value, forms = WHOLE[name]
    if x.dtype != "float" or x.numel > 1 << 21 or (name in ("max_all", "min_all") and distinct(x.probes) < 7):
        raise Refused(name)
    body = Rows(passes, value, "row", {"rows": "1", "R": "{x}.numel()"}, x.numel, 1)
    return b.step(name, b.draw.pick(forms), body, [x], (), (0.4, 0.7, 1.1, 1.6, 2.3, 3.2, 4.5, 6.5))


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


SCANS: dict[str, tuple[str, tuple[str, ...]]] = {
    "cumsum": ("sum", ("torch.cumsum({0}, dim={d})", "{0}.cumsum(dim={d})")),
    "reverse_cumsum": ("sum", ("torch.flip(torch.cumsum(torch.flip({0}, [{d}]), dim={d}), [{d}])",)),
    "cumprod": ("prod", ("torch.cumprod({0}, dim={d})", "{0}.cumprod(dim={d})")),
    "cummax": ("max", ("torch.cummax({0}, dim={d})[0]", "torch.cummax({0}, dim={d}).values")),
    "cummin": ("min", ("torch.cummin({0}, dim={d})[0]", "torch.cummin({0}, dim={d}).values")),
}
"""Running reductions: what they collect, spellings."""
_SHARES = (0.2, 0.9, 0.4, 0.6, 0.1, 0.8, 0.3, 1.0)
"""Positions in a row, as shares of its length, for the probes of a running sum."""


def scan(b: Builder, x: Value, name: str) -> Value:
    """Append a running reduction, or the sum from the end."""
    axes = axes_of(b, len(x.shape))[-1:]
    sizes, length, _, _ = layout(x.shape, axes)
    how, forms = SCANS[name]
    hardly_varies = how in ("max", "min") and _saturated(x)
    if x.dtype != "float" or length < 2 or hardly_varies or (how == "prod" and (length > 100 or not _near_one(x))):
        raise Refused(name)
    dim = axis_text(b, axes, len(x.shape))
    mean, width = moments(x.probes)
    probes = x.probes
    if how == "sum":
        lengths = [share * length for share in _SHARES]
        probes = tuple(
            math.sqrt(far) * (mean * math.sqrt(far) + width * probe) for far, probe in zip(lengths, NORMAL, strict=True)
        )
    elif how != "prod":
        probes = centred((max if how == "max" else min)(x.probes), 0.3 * width)
    body = Scan(how, sizes, length, name == "reverse_cumsum")
    return b.step(name, b.draw.pick(forms).replace("{d}", dim), body, [x], None, probes)


def _shifted(b: Builder) -> Value:
    text = "torch.randn({s}) * (0.5 + 2.0 * torch.rand(1)) + torch.randn(1)"
    return b.input(b.draw.shape(b.draw.pick((1, 2, 2, 3))), text=text)


def _start(b: Builder, spec: Reduction) -> Value:
    if spec.start:
        return spec.start.input(b, b.draw.shape(b.draw.rank((2, 3, 4))))
    return made_for(b, spec.text, spec.longest) if spec.text else plain(b)


def entries() -> list[Entry]:
    """All reductions and scans."""
    near_one = partial(made_for, text=NEAR_ONE, longest=100)
    return [
        *(
            Entry(name, "reduce", partial(reduction, name=name), partial(_start, spec=spec), weak=spec.weak)
            for name, spec in REDUCTIONS.items()
        ),
        *(Entry(name, "reduce", partial(whole, name=name), _shifted, (1, 2, 3), weak=True) for name in WHOLE),
        *(Entry(name, "reduce", partial(arg, name=name), plain, weak=True) for name in ("argmax", "argmin")),
        *(
            Entry(name, "scan", partial(scan, name=name), near_one if how == "prod" else plain, weak=how == "prod")
            for name, (how, _) in SCANS.items()
        ),
    ]
