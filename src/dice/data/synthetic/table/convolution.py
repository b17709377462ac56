"""Convolutions and transposed convolutions in one to three dimensions, as one kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from dice.data.synthetic.builder import Builder, Refused, centred
from dice.data.synthetic.graph import ConvTile, Element, Value
from dice.data.synthetic.table import window as sliding
from dice.data.synthetic.table.entry import Entry
from dice.data.synthetic.table.grid import AXES, element, places, plane_out, plane_sizes
from dice.data.synthetic.table.window import Pools, Window

_STRIDES = (1, 1, 1, 2, 2, 3, 4)


@dataclass
class Convolution(Entry, group="window", layer=True):
    """One operator. `groups`: `one`, `some` or `all` (a filter for each channel)."""

    pools: Pools
    groups: Literal["one", "some", "all"] = "one"

    def __post_init__(self) -> None:
        self.ranks = (self.pools.rank + 2,)

    def first(self, b: Builder) -> Value:
        return sliding.planes(b, self.pools.rank)

    def apply(self, b: Builder, x: Value) -> Value:
        d, channels = b.draw, x.shape[1]
        options = [count for count in (2, 3, 4) if channels % count == 0 and channels > count]
        self.refuse_if(x.dtype != "float" or (self.groups == "some" and not options))
        window = self.pools.draw(d)
        groups = {"one": 1, "some": d.pick(options or [1]), "all": channels}[self.groups]
        wide = d.pick((2, 3, 4, 6, 8)) if d.small else d.size((8, 16, 24, 32, 64), 128)
        out_channels = channels if self.groups == "all" else math.ceil(wide / groups) * groups
        filters = _Filters(channels, out_channels, groups, self.pools.transposed, self.groups == "all")
        ones, zeros = (1,) * self.pools.rank, (0,) * self.pools.rank
        given = [("stride", window.stride, ones), ("padding", window.padding, zeros)]
        given += [("output_padding", window.extra, zeros)] if self.pools.transposed else []
        text = sliding.arguments(d, window.kernel, [*given, ("dilation", window.dilation, ones)])
        text += f", groups={b.argument('groups', groups)}" if groups > 1 or d.chance(0.2) else ""
        bias = d.chance(0.5)
        text += ("" if d.chance(0.8) else ", bias=True") if bias else ", bias=False"
        return convolve(b, x, self.name, window, filters, bias, text)


def _transposed(rank: int, strides: tuple[int, ...], dilations: tuple[int, ...] = (1,)) -> Pools:
    return Pools(rank, strides, dilations, transposed=True)


CONVOLUTIONS = {
    **{f"convolution{rank}d": Convolution(Pools(rank, _STRIDES)) for rank in (1, 2, 3)},
    **{f"dilated_convolution{rank}d": Convolution(Pools(rank, _STRIDES, (2, 3, 4))) for rank in (1, 2)},
    **{f"grouped_convolution{rank}d": Convolution(Pools(rank, _STRIDES), "some") for rank in (1, 2, 3)},
    **{f"depthwise_convolution{rank}d": Convolution(Pools(rank, _STRIDES), "all") for rank in (1, 2)},
    **{f"transposed_convolution{rank}d": Convolution(_transposed(rank, (1, 1, 2, 2, 3, 5))) for rank in (1, 2, 3)},
    **{
        f"dilated_transposed_convolution{rank}d": Convolution(_transposed(rank, (1, 1, 2, 3, 5), (2, 3)))
        for rank in (1, 2)
    },
    **{f"grouped_transposed_convolution{rank}d": Convolution(_transposed(rank, (1, 2)), "some") for rank in (2, 3)},
}


@dataclass(frozen=True, slots=True)
class _Filters:
    """Channels and groups of a convolution. `each`: every channel has a filter of its own."""

    channels: int
    out_channels: int
    groups: int
    transposed: bool
    each: bool

    @property
    def shape(self) -> tuple[int, int]:
        """The weights' first two sizes."""
        if self.transposed:
            return self.channels, self.out_channels // self.groups
        return self.out_channels, self.channels // self.groups

    def places(self, oc: str, own: bool) -> tuple[str, str, str]:
        """C texts: channels that a filter reads, the one that the loop is at, the filter's place among the weights.

        `own`: the weights at hand are those of the output channel alone.
        """
        if self.each:
            return "1", oc, "0" if own else oc
        if self.groups == 1:
            return "{C}", "ic", "ic" if own else f"ic * {{OC}} + {oc}" if self.transposed else f"{oc} * {{C}} + ic"
        filters, outs = f"({{C}} / {self.groups})", f"({{OC}} / {self.groups})"
        channel = f"({oc} / {outs} * {filters} + ic)"
        if own:
            return filters, channel, "ic"
        return filters, channel, f"{channel} * {outs} + {oc} % {outs}" if self.transposed else f"{oc} * {filters} + ic"


def _summed(window: Window, filters: _Filters, start: str, image: str, oc: str, weights: str, own: bool) -> list[str]:
    """Statements that sum over the taps of one output element."""
    rank = len(window.kernel)
    count, channel, place = filters.places(oc, own)
    for axis, k in zip(AXES[rank], window.kernel, strict=True):
        place = f"({place}) * {k} + k{axis}"
    read = element(rank, f"{image} * {{C}} + {channel}")
    loops = sliding.taps(window, filters.transposed, f"{{v}} += {read} * {weights}[{place}];")
    if not filters.each:
        loops = [f"for (int ic = 0; ic < {count}; ++ic)", *("    " + line for line in loops)]
    return [f"float {{v}} = {start};", *loops]


def convolve(b: Builder, x: Value, name: str, window: Window, filters: _Filters, bias: bool, given: str) -> Value:
    """Append a convolution; `given`: its arguments behind the channels."""
    d, rank = b.draw, len(window.kernel)
    texts = sliding.outputs(window, filters.transposed)
    outs = sliding.worked_out(texts, x.shape[2:])
    taps = math.prod(window.kernel) * filters.channels // filters.groups
    work = math.prod(outs) * x.shape[0] * filters.out_channels * taps
    if not sliding.fits(window, x.shape[2:], outs, work, d.small) or filters.channels > 512:
        raise Refused(name)
    title = f"Conv{'Transpose' if filters.transposed else ''}{rank}d"
    sizes = f"{b.argument('in_channels', filters.channels)}, {b.argument('out_channels', filters.out_channels)}"
    names = ("conv", "deconv", f"conv_transpose{rank}d") if filters.transposed else ("conv", "conv1", f"conv{rank}d")
    layer = b.module(d.pick(names), f"nn.{title}({sizes}, {given})")
    operands = {"w": Value((*filters.shape, *window.kernel), "weight", f"{layer}.weight")}
    if bias:
        operands["c"] = Value((filters.out_channels,), "bias", f"{layer}.bias")
    start = "{c}[OC]" if bias else "0.0f"
    lines = _summed(window, filters, start.replace("OC", "oc"), "img", "oc", "{w}", own=False)
    tile = None
    if not filters.transposed:
        inner = _summed(window, filters, start.replace("OC", "{channel}"), "{image}", "{channel}", "{cache}", own=True)
        pixel = places(rank, index="{p}")[:-1]
        count = f"{filters.places('o', own=True)[0]} * {math.prod(window.kernel)}"
        pixels = " * ".join(f"{{O{axis.upper()}}}" for axis in AXES[rank])
        tile = ConvTile(count, taps, f"({pixels})", (*pixel, *inner))
    counts = {"C": "{x}.size(1)", "OC": f"{{w}}.size(1) * {filters.groups}" if filters.transposed else "{w}.size(0)"}
    body = Element(
        (*places(rank, "OC"), *lines), counts | plane_sizes(rank, texts), plane_out(rank, "{OC}"), operands, conv=tile
    )
    return b.step(name, f"{layer}({{0}})", body, [x], (x.shape[0], filters.out_channels, *outs), centred(0.0, 0.5))


def same_size(b: Builder, x: Value, out_channels: int, kernel: int, bias: bool) -> Value:
    """Append a convolution of images that keeps their size."""
    pad = kernel // 2
    window = Window((kernel,) * 2, (1, 1), (pad,) * 2, (1, 1), (0, 0))
    given = f"{kernel}" + (f", padding={pad}" if pad else "") + ("" if bias else ", bias=False")
    filters = _Filters(x.shape[1], out_channels, 1, transposed=False, each=False)
    return convolve(b, x, "convolution2d", window, filters, bias, given)
