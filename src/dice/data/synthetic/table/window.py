"""Convolutions and poolings in one to three dimensions, as one kernel: loops over the taps of a window.

A `Window` says how many dimensions it has, what it does with the elements under it, and which of stride, padding,
dilation and groups are drawn.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass
from typing import Literal

from dice.data.synthetic.builder import Builder, Refused
from dice.data.synthetic.draw import Draw
from dice.data.synthetic.families.contraction import spread
from dice.data.synthetic.families.registry import Family
from dice.data.synthetic.graph import Element, Value
from dice.data.synthetic.table.index import shape_of_rank

AXES = {1: ("w",), 2: ("h", "w"), 3: ("d", "h", "w")}
"""Names of the dimensions that a window slides along."""
Numbers = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Window:
    """One operator. `rank`: dimensions that it slides along. `groups`: `one`, `some` or `all` (a filter for each channel)."""

    rank: int
    what: Literal["convolution", "transposed", "max", "avg", "adaptive_max", "adaptive_avg"]
    strides: tuple[int, ...] = (1, 1, 1, 2, 2, 3, 4)
    padded: bool = True
    dilations: tuple[int, ...] = (1,)
    groups: Literal["one", "some", "all"] = "one"


WINDOWS: dict[str, Window] = {
    **{f"convolution{rank}d": Window(rank, "convolution") for rank in (1, 2, 3)},
    **{f"dilated_convolution{rank}d": Window(rank, "convolution", dilations=(2, 3, 4)) for rank in (1, 2)},
    **{f"grouped_convolution{rank}d": Window(rank, "convolution", groups="some") for rank in (1, 2, 3)},
    **{f"depthwise_convolution{rank}d": Window(rank, "convolution", groups="all") for rank in (1, 2)},
    **{f"transposed_convolution{rank}d": Window(rank, "transposed", (1, 1, 2, 2, 3, 5)) for rank in (1, 2, 3)},
    **{
        f"dilated_transposed_convolution{rank}d": Window(rank, "transposed", (1, 1, 2, 3, 5), dilations=(2, 3))
        for rank in (1, 2)
    },
    **{f"grouped_transposed_convolution{rank}d": Window(rank, "transposed", (1, 2), groups="some") for rank in (2, 3)},
    **{f"max_pooling{rank}d": Window(rank, "max", (1, 2, 2, 3)) for rank in (1, 2, 3)},
    **{f"dilated_max_pooling{rank}d": Window(rank, "max", (1, 2), dilations=(2, 3)) for rank in (1, 2, 3)},
    **{f"avg_pooling{rank}d": Window(rank, "avg", (1, 2, 2, 3)) for rank in (1, 2, 3)},
    **{f"adaptive_max_pooling{rank}d": Window(rank, "adaptive_max") for rank in (1, 2, 3)},
    **{f"adaptive_avg_pooling{rank}d": Window(rank, "adaptive_avg") for rank in (1, 2, 3)},
}


@dataclass(frozen=True, slots=True)
class _Drawn:
    """Parameters along each dimension."""

    kernel: Numbers
    stride: Numbers
    padding: Numbers
    dilation: Numbers
    extra: Numbers
    """Output padding of a transposed convolution."""


def _draw(d: Draw, spec: Window) -> _Drawn:
    """Mostly the same along all dimensions."""

    def each(pool: tuple[int, ...]) -> Numbers:
        one = d.pick(pool)
        return tuple(d.pick(pool) if d.chance(0.2) else one for _ in range(spec.rank))

    kernel = each((2, 3, 3, 3, 3, 4, 5, 5, 7, 9, 11) if spec.rank < 3 else (2, 3, 3, 3, 5))
    stride, dilation = each(spec.strides), each(spec.dilations)
    padding = (0,) * spec.rank
    if spec.padded and d.chance(0.5):  # PyTorch's pools take no more than half a kernel
        share = d.pick((0.5, 1.0, 1.0))
        padding = tuple(max(1, round(share * (k // 2))) for k in kernel)
    extra = tuple(1 if s > 1 and spec.what == "transposed" and d.chance(0.3) else 0 for s in stride)
    return _Drawn(kernel, stride, padding, dilation, extra)


def _numbers(d: Draw, numbers: Numbers) -> str:
    """A number where all are the same, by most authors."""
    return repr(numbers[0] if len(set(numbers)) == 1 and d.chance(0.8) else numbers)


def _given(d: Draw, options: list[tuple[str, Numbers, Numbers]], kernel: Numbers) -> str:
    """The kernel's size and `options` (name, value, default) as arguments; some authors write defaults down too."""
    whole = d.chance(0.3)
    size = ("kernel_size=" if d.chance(0.3) else "") + _numbers(d, kernel)
    return size + "".join(
        f", {name}={_numbers(d, value)}"
        for name, value, usual in options
        if value != usual or (whole and d.chance(0.8))
    )


def _options(drawn: _Drawn, what: str) -> list[tuple[str, Numbers, Numbers]]:
    """Arguments behind the kernel's size: name, value, what PyTorch takes without them."""
    ones = (1,) * len(drawn.kernel)
    zeros = (0,) * len(drawn.kernel)
    found = [("stride", drawn.stride, drawn.kernel if what in ("max", "avg") else ones)]
    found.append(("padding", drawn.padding, zeros))
    if what == "transposed":
        found.append(("output_padding", drawn.extra, zeros))
    return found if what == "avg" else [*found, ("dilation", drawn.dilation, ones)]


def _places(rank: int, channels: str) -> list[str]:
    """Statements that take the output index apart; `channels`: size key of the output's channels, empty for planes."""
    lines, below = [], ""
    for axis in reversed(AXES[rank]):
        source = f"({{i}} / {below})" if below else "{i}"
        lines.append(f"int o{axis} = {source} % {{O{axis.upper()}}};")
        below = f"({below[1:-1]} * {{O{axis.upper()}}})" if below else f"({{O{axis.upper()}}})"
    if not channels:
        return [*lines, f"int ch = {{i}} / {below};"]
    return [
        *lines,
        f"int oc = ({{i}} / {below}) % {{{channels}}};",
        f"int img = {{i}} / ({below[1:-1]} * {{{channels}}});",
    ]


def _read(rank: int, plane: str) -> str:
    """The input element of a plane at the current place."""
    place = plane
    for axis in AXES[rank]:
        place = f"({place}) * {{{axis.upper()}}} + i{axis}"
    return f"{{x}}[{place}]"


def _taps(spec: Window, drawn: _Drawn, statement: str) -> list[str]:
    """Loops over the window around `statement`, with the input's coordinates as `iw` and so on."""
    lines, tests = [], []
    for depth, axis in enumerate(AXES[spec.rank]):
        k, s, p, dilation = (values[depth] for values in (drawn.kernel, drawn.stride, drawn.padding, drawn.dilation))
        lines.append(f"for (int k{axis} = 0; k{axis} < {k}; ++k{axis})")
        place, size = f"i{axis}", f"{{{axis.upper()}}}"
        if spec.what == "transposed":
            tests += [
                f"int {place} = o{axis} + {p} - k{axis} * {dilation};",
                f"if ({place} < 0 || {place} % {s} || {place} / {s} >= {size}) continue;",
                f"{place} /= {s};",
            ]
        else:
            tests += [
                f"int {place} = o{axis} * {s} + k{axis} * {dilation} - {p};",
                f"if ({place} < 0 || {place} >= {size}) continue;",
            ]
    loops = ["    " * depth + line for depth, line in enumerate(lines)]
    loops[-1] += " {{"
    inner = "    " * len(loops)
    return [*loops, *(inner + test for test in tests), inner + statement, "    " * (len(loops) - 1) + "}}"]


def _sizes(rank: int, outs: dict[str, str]) -> dict[str, str]:
    known = {axis.upper(): f"{{x}}.size({2 + at})" for at, axis in enumerate(AXES[rank])}
    return known | {f"O{axis.upper()}": outs[axis] for axis in AXES[rank]}


def _alloc(rank: int, channels: str) -> tuple[str, ...]:
    return ("{x}.size(0)", channels, *(f"{{O{axis.upper()}}}" for axis in AXES[rank]))


def _slid(drawn: _Drawn, transposed: bool) -> list[str]:
    """Host expressions of the output's sizes in {size}."""
    texts = []
    for k, s, p, dilation, extra in zip(
        drawn.kernel, drawn.stride, drawn.padding, drawn.dilation, drawn.extra, strict=True
    ):
        # the numbers as the program has them: what is worked out beforehand is hard to follow, and to learn
        if transposed:
            texts.append(f"(SIZE - 1) * {s} - 2 * {p} + {dilation} * ({k} - 1) + {extra} + 1")
        else:
            texts.append(f"(SIZE + 2 * {p} - {dilation} * ({k} - 1) - 1) / {s} + 1")
    return texts


def _evaluated(texts: list[str], sizes: Numbers) -> Numbers:
    return tuple(eval(text.replace("/", "//"), {"SIZE": size}) for text, size in zip(texts, sizes, strict=True))


def window(b: Builder, x: Value, name: str) -> Value:
    """Append operator `name` of WINDOWS."""
    spec = WINDOWS[name]
    if len(x.shape) != spec.rank + 2 or x.dtype != "float":
        raise Refused(name)
    if spec.what.startswith("adaptive"):
        return _adaptive(b, x, name, spec)
    drawn = _draw(b.draw, spec)
    texts = _slid(drawn, spec.what == "transposed")
    outs = _evaluated(texts, x.shape[2:])
    if min(outs) < 1 or any(size + 2 * p <= dl * (k - 1) for size, p, dl, k in zip(
        x.shape[2:], drawn.padding, drawn.dilation, drawn.kernel, strict=True)):  # fmt: skip
        raise Refused(name)
    named = {
        axis: text.replace("SIZE", f"{{{axis.upper()}}}") for axis, text in zip(AXES[spec.rank], texts, strict=True)
    }
    if spec.what in ("max", "avg"):
        return _pool(b, x, name, spec, drawn, outs, named)
    return _convolution(b, x, name, spec, drawn, outs, named)


def _pool(
    b: Builder, x: Value, name: str, spec: Window, drawn: _Drawn, outs: Numbers, named: dict[str, str]
) -> Value:  # fmt: skip
    if math.prod(outs) * math.prod(drawn.kernel) * math.prod(x.shape[:2]) > (1e6 if b.draw.small else 5e9):
        raise Refused(name)
    read, kind = _read(spec.rank, "ch"), "Max" if spec.what == "max" else "Avg"
    if spec.what == "avg" and set(drawn.dilation) != {1}:
        raise Refused(name)
    start, step = ("-INFINITY", f"{{v}} = fmaxf({{v}}, {read});") if kind == "Max" else ("0.0f", f"{{v}} += {read};")
    lines = [*_places(spec.rank, ""), f"float {{v}} = {start};", *_taps(spec, drawn, step)]
    taps = math.prod(drawn.kernel)
    lines += [f"{{v}} /= {float(taps)!r}f;"] if kind == "Avg" else []
    given = _given(b.draw, _options(drawn, spec.what), drawn.kernel)
    code = f"F.{kind.lower()}_pool{spec.rank}d({{0}}, {given})"
    if b.draw.chance(0.6):
        code = (
            b.module(
                b.draw.pick(("pool", "pool", f"{kind.lower()}pool")),
                f"nn.{kind}Pool{spec.rank}d({given})",
                stateful=False,
            )
            + "({0})"
        )
    width = 1 / math.sqrt(taps) if kind == "Avg" else 0.7
    probes = tuple(width * probe + (0.0 if kind == "Avg" else 1.0) for probe in x.probes)
    body = Element(tuple(lines), _sizes(spec.rank, named), _alloc(spec.rank, "{x}.size(1)"))
    return b.step(name, code, body, [x], (*x.shape[:2], *outs), probes)


def _adaptive(b: Builder, x: Value, name: str, spec: Window) -> Value:
    outs = tuple(b.draw.pick((1, 1, 2, 2, 3, 4)) for _ in range(spec.rank))
    if any(out > size for out, size in zip(outs, x.shape[2:], strict=True)) or x.shape[2:] == outs:
        raise Refused(name)
    if outs == (1,) * spec.rank and spec.what == "adaptive_avg" and math.prod(x.shape[2:]) > 60:
        raise Refused(name)  # the mean of so many independent numbers is zero within the tolerance
    bounds, loops = [], []
    for depth, axis in enumerate(AXES[spec.rank]):
        size, out = f"{{{axis.upper()}}}", f"{{O{axis.upper()}}}"
        bounds += [
            f"int {axis}0 = o{axis} * {size} / {out};",
            f"int {axis}1 = ((o{axis} + 1) * {size} + {out} - 1) / {out};",
        ]
        loops.append("    " * depth + f"for (int i{axis} = {axis}0; i{axis} < {axis}1; ++i{axis})")
    read, kind = _read(spec.rank, "ch"), "Max" if spec.what == "adaptive_max" else "Avg"
    start, step = ("-INFINITY", f"{{v}} = fmaxf({{v}}, {read});") if kind == "Max" else ("0.0f", f"{{v}} += {read};")
    loops[-1] += f" {step}"
    lines = [*_places(spec.rank, ""), *bounds, f"float {{v}} = {start};", *loops]
    if kind == "Avg":
        lines.append(
            "{v} /= " + " * ".join(f"({axis}1 - {axis}0)" for axis in AXES[spec.rank]).join(("(float)(", ");"))
        )
    given = _numbers(b.draw, outs)
    code = f"F.adaptive_{kind.lower()}_pool{spec.rank}d({{0}}, {given})"
    if b.draw.chance(0.6):
        code = b.module("pool", f"nn.Adaptive{kind}Pool{spec.rank}d({given})", stateful=False) + "({0})"
    taps = math.prod(x.shape[2:]) / math.prod(outs)
    width = 1 / math.sqrt(taps) if kind == "Avg" else 0.5
    probes = tuple(width * probe + (0.0 if kind == "Avg" else 1.5) for probe in x.probes)
    named = {axis: str(out) for axis, out in zip(AXES[spec.rank], outs, strict=True)}
    body = Element(tuple(lines), _sizes(spec.rank, named), _alloc(spec.rank, "{x}.size(1)"))
    return b.step(name, code, body, [x], (*x.shape[:2], *outs), probes)


def _convolution(
    b: Builder, x: Value, name: str, spec: Window, drawn: _Drawn, outs: Numbers, named: dict[str, str]
) -> Value:  # fmt: skip
    d, channels, transposed = b.draw, x.shape[1], spec.what == "transposed"
    options = [g for g in (2, 3, 4) if channels % g == 0 and channels > g]
    if spec.groups == "some" and not options:
        raise Refused(name)
    groups = {"one": 1, "some": d.pick(options or [1]), "all": channels}[spec.groups]
    wide = d.pick((2, 3, 4, 6, 8)) if d.small else d.pick((8, 16, 24, 32, 64))
    out_channels = channels if spec.groups == "all" else math.ceil(wide / groups) * groups
    taps = math.prod(drawn.kernel) * (channels // groups)
    if math.prod(outs) * x.shape[0] * out_channels * taps > (1e6 if d.small else 5e9) or channels > 512:
        raise Refused(name)
    bias, given = d.chance(0.5), _given(d, _options(drawn, spec.what), drawn.kernel)
    given += f", groups={b.argument('groups', groups)}" if groups > 1 or d.chance(0.2) else ""
    given += ("" if d.chance(0.8) else ", bias=True") if bias else ", bias=False"
    title = f"Conv{'Transpose' if transposed else ''}{spec.rank}d"
    shape = f"{b.argument('in_channels', channels)}, {b.argument('out_channels', out_channels)}"
    names = ("conv", "deconv", f"conv_transpose{spec.rank}d") if transposed else ("conv", "conv1", f"conv{spec.rank}d")
    layer = b.module(d.pick(names), f"nn.{title}({shape}, {given})")
    rows = (channels, out_channels // groups) if transposed else (out_channels, channels // groups)
    operands = {"w": Value((*rows, *drawn.kernel), "weight", f"{layer}.weight")}
    operands |= {"c": Value((out_channels,), "bias", f"{layer}.bias")} if bias else {}
    filters, ic = (
        ("{C}", "ic")
        if groups == 1
        else (f"({{C}} / {groups})", f"(oc / ({{OC}} / {groups}) * ({{C}} / {groups}) + ic)")
    )
    if spec.groups == "all":
        filters, ic = "1", "oc"
    near = f"(oc % ({{OC}} / {groups}))" if groups > 1 else "oc"
    place = f"{ic} * ({{OC}} / {groups}) + {near}" if transposed else f"oc * {filters} + ic"
    if transposed and groups == 1:
        place = "ic * {OC} + oc"
    if spec.groups == "all":
        place = "oc"
    for axis, k in zip(AXES[spec.rank], drawn.kernel, strict=True):
        place = f"({place}) * {k} + k{axis}"
    step = f"{{v}} += {_read(spec.rank, f'img * {{C}} + {ic}')} * {{w}}[{place}];"
    loops = _taps(spec, drawn, step)
    if spec.groups != "all":
        loops = [f"for (int ic = 0; ic < {filters}; ++ic)", *("    " + line for line in loops)]
    lines = [*_places(spec.rank, "OC"), "float {v} = {c}[oc];" if bias else "float {v} = 0.0f;", *loops]
    sizes = {"C": "{x}.size(1)", "OC": f"{{w}}.size(1) * {groups}" if transposed else "{w}.size(0)"}
    body = Element(tuple(lines), sizes | _sizes(spec.rank, named), _alloc(spec.rank, "{OC}"), operands)
    return b.step(name, f"{layer}({{0}})", body, [x], (x.shape[0], out_channels, *outs), spread(0.5))


def families(held: frozenset[str]) -> list[Family]:
    """The table as families; those in `held` are held out."""

    def entry(name: str, spec: Window) -> Family:
        def start(b: Builder) -> Value:
            return b.input(_shape(b.draw, spec.rank))

        make = functools.partial(window, name=name)
        layer = spec.what in ("convolution", "transposed")
        return Family(name, "window", make, start, spec.rank == 1, name in held, (spec.rank + 2,), layer=layer)

    return list(itertools.starmap(entry, WINDOWS.items()))


def _shape(d: Draw, rank: int) -> tuple[int, ...]:
    """[batch, channels, ...] with few channels."""
    if rank == 3:
        return shape_of_rank(d, 5)
    channels, batch = d.channels(), d.pick((1, 2, 3, 4)) if d.small else d.pick((4, 8, 16, 32))
    if rank == 1:
        return (batch, channels, d.length())
    side = d.side()
    return (batch, channels, side, side if d.chance(0.7) else d.side())
