"""Operators along a dimension: reductions, orders, scans; and numbers of a whole tensor."""

from __future__ import annotations

import math
from collections.abc import Callable

from dice.data.synthetic.builder import Builder, Refused, Source, centred, distinct, moments
from dice.data.synthetic.draw import Draw
from dice.data.synthetic.families import loss, reduction
from dice.data.synthetic.families.layout import ROW_STATISTICS, axis_text, layout, made_for, plain
from dice.data.synthetic.families.loss import Loss
from dice.data.synthetic.families.reduction import Reduction
from dice.data.synthetic.families.registry import Family
from dice.data.synthetic.graph import NORMAL, Pass, Rows, Scan, Value
from dice.data.synthetic.table.index import Index, Shape
from dice.data.synthetic.table.index import family as index_family
from dice.data.synthetic.table.scalar import COUNTS, MISSING

_TRUE = (1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0)
_RARE = Source("(torch.rand({s}) > 0.9).float()", (0, 0, 0, 1, 0, 0, 0, 1), 0, 1)
_OFTEN = Source("(torch.rand({s}) > 0.1).float()", (1, 1, 1, 0, 1, 1, 1, 0), 0, 1)


def _truth(x: Value, length: int) -> tuple[float, ...]:
    return _TRUE


def _counts(x: Value, length: int) -> tuple[float, ...]:
    return tuple(float(round(0.75 * length + probe)) for probe in NORMAL)


def _about_norm(x: Value, length: int) -> tuple[float, ...]:
    mean, width = moments(x.probes)
    size = math.sqrt(length * (mean * mean + width * width))
    return centred(size, 0.3 * size)


def _test(term: str, value: str, name: str, start: Source) -> Reduction:
    forms = (f"torch.{name}({{x}}, dim={{d}}{{k}})", f"{{x}}.bool().{name}(dim={{d}}{{k}})")
    passes = (Pass("sum", "sum", term),)
    return Reduction(
        passes,
        value,
        forms,
        _truth,
        start=start,
        takes=("float", "bool"),
        dtype="bool",
        jumps=True,
        many_axes=False,
        longest=64,
    )


_ONE = "({v} != 0.0f ? 1.0f : 0.0f)"

REDUCTIONS: dict[str, Reduction] = {
    "any": _test(_ONE, "{sum} > 0.0f", "any", _RARE),
    "all": _test("({v} == 0.0f ? 1.0f : 0.0f)", "{sum} == 0.0f", "all", _OFTEN),
    "count_nonzero": Reduction(
        (Pass("sum", "sum", _ONE),), "{sum}", ("torch.count_nonzero({x}, dim={d})",), _counts, start=COUNTS,
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
        lambda x, length: centred(0.8, 0.3), start=Source("torch.sqrt(torch.randn({s}) + 1.0)", MISSING.probes), weak=True,
    ),
    "norm_max": Reduction(
        (Pass("peak", "max", "fabsf({v})"),), "{peak}",
        ('torch.norm({x}, p=float("inf"), dim={d}{k})', "torch.linalg.vector_norm({x}, ord=float(\"inf\"), dim={d}{k})"),
        lambda x, length: centred(max(map(abs, x.probes)), 0.25 * moments(x.probes)[1]), ROW_STATISTICS, many_axes=False,
    ),
    "norm_of_order": Reduction(
        (Pass("sum", "sum", "powf(fabsf({v}), 3.0f)"),), "cbrtf({sum})",
        ("torch.norm({x}, p=3, dim={d}{k})", "torch.linalg.vector_norm({x}, ord=3, dim={d}{k})"), _about_norm, ROW_STATISTICS,
        weak=True,
    ),
}  # fmt: skip

_ORDER = (
    "int first = {i} / ({R} * {inner}) * {R} * {inner} + {i} % {inner};",
    "int place = ({i} / {inner}) % {R};",
    "float t = {x}[{i}];",
    "int rank = 0;",
    "for (int k = 0; k < {R}; ++k) {{",
    "    float u = {x}[first + k * {inner}];",
    "    rank += u OVER t || (u == t && k < place);",
    "}}",
)
_PLACES = (0, 1, 3, 5, 8, 12, 30, 50)
"""Positions in a row."""
_ROW = "{i} / ({R} * {inner}) * {inner} + {i} % {inner}"


def _dim(d: Draw, shape: Shape) -> dict[str, float] | None:
    axis = d.pick((1, 1, 0))
    if not 4 <= shape[axis] <= 1100:
        return None
    return {"d": axis, "e": 1 - axis, "k": d.rng.randrange(2, min(shape[axis], 9))}


def _top(d: Draw, shape: Shape) -> dict[str, float] | None:
    found = _dim(d, shape)
    return found and {**found, "d": 1, "e": 0, "k": 3} if 4 <= shape[1] <= 1100 else None


def _order(
    forms: tuple[str, ...], value: str, out: tuple[str, ...] = ("{x}.size(0)", "{x}.size(1)"), over: str = "<",
    at: str = "first + rank * {inner}", when: str = "", dtype: str = "",
    numbers: Callable[[Draw, Shape], dict[str, float] | None] = _dim, probes: tuple[float, ...] | None = None,
) -> Index:  # fmt: skip
    """An operator that needs the rank of each element in its row, counted by one thread for each element."""
    lines = (*(line.replace("OVER", over) for line in _ORDER), f"float {{v}} = {value};")
    return Index(
        forms, out, lines, sizes={"R": "{x}.size({d})", "inner": "{x}.stride({d})"}, numbers=numbers, dtype=dtype,
        over="{x}.numel()", at=at, when=when, exact_only=bool(dtype), probes=_PLACES if dtype else probes,
    )  # fmt: skip


ORDERS: dict[str, Index] = {
    "sort": _order(("torch.sort({x}, dim={d})[0]", "torch.sort({x}, dim={d}).values", "{x}.sort(dim={d}).values"), "t"),
    "sort_descending": _order(
        ("torch.sort({x}, dim={d}, descending=True)[0]", "torch.sort({x}, dim={d}, descending=True).values"), "t", over=">"
    ),
    "argsort": _order(("torch.argsort({x}, dim={d})", "{x}.argsort(dim={d})"), "place", dtype="int64"),
    "median": _order(
        ("torch.median({x}, dim={d})[0]", "torch.median({x}, dim={d}).values", "{x}.median(dim={d}).values"), "t",
        ("{x}.size({e})",), at=_ROW, when="rank == ({R} - 1) / 2", probes=centred(0.0, 0.2),
    ),
    "kthvalue": _order(
        ("torch.kthvalue({x}, {k}, dim={d})[0]", "torch.kthvalue({x}, {k}, dim={d}).values"), "t", ("{x}.size({e})",),
        at=_ROW, when="rank == {k} - 1",
    ),
    "topk": _order(
        ("torch.topk({x}, {k}, dim={d})[0]", "torch.topk({x}, {k}, dim={d}).values", "torch.topk({x}, k={k})[0]"), "t",
        ("{x}.size(0)", "{k}"), ">", "{i} / {R} * {k} + rank", "rank < {k}", numbers=_top,
    ),
    "topk_indices": _order(
        ("torch.topk({x}, {k}, dim={d})[1]", "torch.topk({x}, {k}, dim={d}).indices"), "place", ("{x}.size(0)", "{k}"), ">",
        "{i} / {R} * {k} + rank", "rank < {k}", "int64", _top,
    ),
    "logcumsumexp": Index(
        ("torch.logcumsumexp({x}, dim={d})", "{x}.logcumsumexp(dim={d})"), ("{x}.size(0)", "{x}.size(1)"),
        ("int first = {i} / ({R} * {inner}) * {R} * {inner} + {i} % {inner};", "float m = {x}[first];",
         "for (int k = first; k <= {i}; k += {inner}) m = fmaxf(m, {x}[k]);", "float t = 0.0f;",
         "for (int k = first; k <= {i}; k += {inner}) t += expf({x}[k] - m);", "float {v} = m + logf(t);"),
        sizes={"R": "{x}.size({d})", "inner": "{x}.stride({d})"}, numbers=_dim, blurs=True,
    ),
    "diff": Index(
        ("torch.diff({x}, dim=1)", "torch.diff({x})"), ("{x}.size(0)", "{W} - 1"),
        ("int at = {i} / ({W} - 1) * {W} + {i} % ({W} - 1);", "float {v} = {x}[at + 1] - {x}[at];"),
        sizes={"W": "{x}.size(1)"}, numbers=lambda d, shape: {} if shape[1] > 4 else None, blurs=True,
    ),
}  # fmt: skip
LOSSES: dict[str, Loss] = {
    "dist": Loss("({v} - {y}) * ({v} - {y})", ("torch.dist({x}, {y})", "torch.dist({x}, {y}, p=2)"), finish="sqrtf({s})"),
    "squared_error_sum": Loss(
        "({v} - {y}) * ({v} - {y})", ('F.mse_loss({x}, {y}, reduction="sum")', "torch.sum(({x} - {y}) ** 2)"), finish="{s}"
    ),
    "absolute_error_sum": Loss(
        "fabsf({v} - {y})", ('F.l1_loss({x}, {y}, reduction="sum")', "torch.sum(torch.abs({x} - {y}))"), finish="{s}"
    ),
    "hinge_embedding_loss": Loss(
        "({y} > 0.0f ? {v} : fmaxf({a} - {v}, 0.0f))", ("F.hinge_embedding_loss({x}, {y}, margin={a})",),
        "torch.randint(0, 2, {t}).float() * 2 - 1", scalar=("margin", 0.5, 1.5, 0.25),
    ),
    "sum_all": Loss("{v} * {y}", ("torch.sum({x} * {y})", "({x} * {y}).sum()"), "torch.randn({s}) + 1.0", "{s}"),
}  # fmt: skip

_WHOLE: dict[str, tuple[tuple[Pass, ...], str, tuple[str, ...]]] = {
    "max_all": ((Pass("peak", "max"),), "{peak}", ("torch.max({x})", "{x}.max()", "torch.amax({x})")),
    "min_all": ((Pass("low", "min"),), "{low}", ("torch.min({x})", "{x}.min()", "torch.amin({x})")),
    "mean_all": ((Pass("sum", "sum"),), "{sum} / {R}", ("torch.mean({x})", "{x}.mean()")),
    "total": ((Pass("sum", "sum"),), "{sum}", ("torch.sum({x})", "{x}.sum()")),
    "std_all": (
        (Pass("sum", "sum", then=("float {mean} = {sum} / {R};",)), Pass("var", "sum", "({v} - {mean}) * ({v} - {mean})")),
        "sqrtf({var} / ({R} - 1))", ("torch.std({x})", "{x}.std()"),
    ),
    "var_all": (
        (Pass("sum", "sum", then=("float {mean} = {sum} / {R};",)), Pass("var", "sum", "({v} - {mean}) * ({v} - {mean})")),
        "{var} / ({R} - 1)", ("torch.var({x})", "{x}.var()"),
    ),
}  # fmt: skip
_SHIFTED = "torch.randn({s}) * (0.5 + 2.0 * torch.rand(1)) + torch.randn(1)"


def whole(b: Builder, x: Value, name: str) -> Value:
    """Append a number of a whole tensor, computed as one long row."""
    passes, value, forms = _WHOLE[name]
    extreme = name in ("max_all", "min_all")
    if x.dtype != "float" or x.numel > 1 << 21 or (extreme and distinct(x.probes) < 7):
        raise Refused(name)
    body = Rows(passes, value, "row", {"rows": "1", "R": "{x}.numel()"}, x.numel, 1)
    return b.step(
        name, b.draw.pick(forms).replace("{x}", "{0}"), body, [x], (), (0.4, 0.7, 1.1, 1.6, 2.3, 3.2, 4.5, 6.5)
    )


def normalize_by(b: Builder, x: Value, name: str) -> Value:
    """Every row divided by its sum of absolute values."""
    axes = (b.axis or (len(x.shape) - 1,))[-1:]
    sizes, length, n_rows, _ = layout(x.shape, axes)
    if x.dtype != "float" or length < 2 or length > 40:
        raise Refused(name)
    body = Rows((Pass("sum", "sum", "fabsf({v})"),), "{v} / fmaxf({sum}, 1e-12f)", "element", sizes, length, n_rows)
    code = f"F.normalize({{0}}, p=1, dim={axis_text(b, axes, len(x.shape))})"
    width = 1 / (length * 0.8)
    return b.step(
        name, code, body, [x], None, tuple(width * probe / max(moments(x.probes)[1], 0.1) for probe in x.probes)
    )


def cummin(b: Builder, x: Value, name: str) -> Value:
    """The smallest element so far."""
    axes = (len(x.shape) - 1,)
    sizes, length, _, _ = layout(x.shape, axes)
    if x.dtype != "float" or length < 2 or len({round(probe / 0.02) for probe in x.probes}) < 8:
        raise Refused(name)
    dim = axis_text(b, axes, len(x.shape))
    code = b.draw.pick((f"torch.cummin({{0}}, dim={dim})[0]", f"torch.cummin({{0}}, dim={dim}).values"))
    return b.step(name, code, Scan("min", sizes, length), [x], None, centred(min(x.probes), 0.3 * moments(x.probes)[1]))


def families(held: frozenset[str]) -> list[Family]:
    """The tables as families; those in `held` are held out."""

    def scaled(b: Builder) -> Value:
        return b.input(b.draw.shape(b.draw.pick((1, 2, 2, 3))), text=loss.SCALED)

    def shifted(b: Builder) -> Value:
        return b.input(b.draw.shape(b.draw.pick((1, 2, 2, 3))), text=_SHIFTED)

    def of(make: Callable[..., Value], *more: object) -> Callable[[Builder, Value], Value]:
        return lambda b, x: make(b, x, *more)

    def short_rows(b: Builder) -> Value:
        return made_for(b, "torch.randn({s})", 32)

    return [
        *(reduction.family(name, spec, name in held) for name, spec in REDUCTIONS.items()),
        *(index_family(name, spec, held, "scan") for name, spec in ORDERS.items()),
        *(
            Family(name, "loss", of(loss.loss, name, spec), scaled, True, name in held, (1, 2, 3), True)
            for name, spec in LOSSES.items()
        ),
        *(Family(name, "reduce", of(whole, name), shifted, True, name in held, (1, 2, 3), True) for name in _WHOLE),
        Family(
            "normalize_by_sum",
            "norm",
            of(normalize_by, "normalize_by_sum"),
            short_rows,
            True,
            ranks=(2, 3, 4),
            weak=True,
        ),
        Family("cummin", "scan", of(cummin, "cummin"), plain, True),
    ]
