"""Convolutions and poolings."""

from __future__ import annotations

import math
from collections.abc import Callable

from dice.data.synthetic.builder import Builder, Refused
from dice.data.synthetic.families.contraction import spread
from dice.data.synthetic.families.registry import HELDOUT, Family
from dice.data.synthetic.graph import ConvTile, Element, Value


def _offset(stride: int, padding: int, out: str, tap: str) -> str:
    text = f"{out} * {stride}" if stride > 1 else out
    text += f" + {tap}"
    return text + (f" - {padding}" if padding else "")


def _out(size: int, kernel: int, stride: int, padding: int) -> int:
    return (size + 2 * padding - kernel) // stride + 1


def _out_text(size: str, kernel: int, stride: int, padding: int) -> str:
    change = 2 * padding - kernel
    text = f"{size} + {change}" if change > 0 else f"{size} - {-change}" if change < 0 else size
    return f"({text}) / {stride} + 1" if stride > 1 else f"{text} + 1"


def _conv_options(stride: int, padding: int, groups: str = "") -> str:
    return (f", stride={stride}" if stride > 1 else "") + (f", padding={padding}" if padding else "") + groups


def conv2d(
    b: Builder, x: Value, name: str = "conv2d", out_channels: int | None = None, kernel: int | None = None,
    bias: bool | None = None, stride: int | None = None,
) -> Value:  # fmt: skip
    """Append a 2-d convolution; `depthwise_conv2d` has one filter for each channel, `conv1x1` a kernel of 1."""
    d, (batch, channels, height, width) = b.draw, x.shape
    depthwise = name == "depthwise_conv2d"
    k = kernel or (1 if name == "conv1x1" else d.pick((3, 3, 3, 5, 2)))
    stride = stride or (1 if k == 1 or (d.tiny and d.chance(0.8)) else d.pick((1, 1, 1, 2)))
    padding = k // 2 if kernel else 0 if k == 1 else d.pick((0, k // 2, k // 2))
    oc = (
        channels
        if depthwise
        else out_channels or (d.pick((3, 4, 6, 8)) if d.small else d.pick((8, 16, 24, 32, 48, 64)))
    )
    oh, ow = _out(height, k, stride, padding), _out(width, k, stride, padding)
    taps = k * k * (1 if depthwise else channels)
    if oh < 2 or ow < 2 or batch * oc * oh * ow * taps > (1e6 if d.small else 5e9):
        raise Refused(name)
    bias = d.chance(0.7) if bias is None else bias
    groups = f", groups={b.argument('in_channels', channels)}" if depthwise else ""
    options = _conv_options(stride, padding, groups) + ("" if bias else ", bias=False")
    made = f"nn.Conv2d({b.argument('in_channels', channels)}, {b.argument('out_channels', oc)}, {k}{options})"
    layer = b.module(d.pick(("conv", "conv", "conv2d", "depthwise" if depthwise else "conv1")), made)
    weight = Value((oc, taps), "weight", f"{layer}.weight")
    operands = {"w": weight}
    if bias:
        operands["c"] = Value((oc,), "bias", f"{layer}.bias")
    sizes = {"C": "{x}.size(1)", "H": "{x}.size(2)", "W": "{x}.size(3)"}
    if not depthwise:
        sizes["OC"] = "{w}.size(0)"
    sizes |= {"OH": _out_text("{H}", k, stride, padding), "OW": _out_text("{W}", k, stride, padding)}
    out_key = "C" if depthwise else "OC"
    lines = (
        "int ow = {i} % {OW};",
        "int oh = ({i} / {OW}) % {OH};",
        f"int oc = ({{i}} / ({{OW}} * {{OH}})) % {{{out_key}}};",
        f"int img = {{i}} / ({{OW}} * {{OH}} * {{{out_key}}});",
        *_conv_sum(k, stride, padding, depthwise, bias, "{w}", "oc", "img", "oc"),
    )
    tile = ConvTile(
        "w", f"{{C}} * {k * k}" if not depthwise else str(k * k), taps, "({OH} * {OW})", out_key,
        ("int ow = {p} % {OW};", "int oh = {p} / {OW};",
         *_conv_sum(k, stride, padding, depthwise, bias, "{cache}", "0", "{image}", "{channel}")),
    )  # fmt: skip
    body = Element(lines, sizes, ("{x}.size(0)", f"{{{out_key}}}", "{OH}", "{OW}"), operands, conv=tile)
    return b.step(name, f"{layer}({{0}})", body, [x], (batch, oc, oh, ow), spread(0.6))


def _conv_sum(
    k: int,
    stride: int,
    padding: int,
    depthwise: bool,
    bias: bool,
    weights: str,
    filter_index: str,
    image: str,
    channel: str,
) -> list[str]:
    """Statements that sum over the taps of one output pixel (oh, ow)."""
    ih, iw = _offset(stride, padding, "oh", "kh"), _offset(stride, padding, "ow", "kw")
    lines = [f"float {{v}} = {{c}}[{channel}];" if bias else "float {v} = 0.0f;"]
    loop = "" if depthwise else "for (int ic = 0; ic < {C}; ++ic)"
    read_channel = channel if depthwise else "ic"
    base = "" if filter_index == "0" else f"{filter_index} * "
    if k == 1:
        at = f"{base}{{C}} + ic" if base else "ic"
        read = f"{{x}}[(({image} * {{C}} + ic) * {{H}} + oh) * {{W}} + ow]"
        return [*lines, f"{loop} {{v}} += {read} * {weights}[{at}];"]
    if depthwise:
        at = f"({filter_index} * {k} + kh) * {k} + kw" if base else f"kh * {k} + kw"
    else:
        at = f"(({filter_index} * {{C}} + ic) * {k} + kh) * {k} + kw" if base else f"(ic * {k} + kh) * {k} + kw"
    inner = [
        f"for (int kh = 0; kh < {k}; ++kh)",
        f"    for (int kw = 0; kw < {k}; ++kw) {{{{",
        f"        int ih = {ih};",
        f"        int iw = {iw};",
        *(["        if (ih < 0 || ih >= {H} || iw < 0 || iw >= {W}) continue;"] if padding else []),
        f"        {{v}} += {{x}}[(({image} * {{C}} + {read_channel}) * {{H}} + ih) * {{W}} + iw] * {weights}[{at}];",
        "    }}",
    ]
    return [*lines, *([loop] if loop else []), *(("    " if loop else "") + line for line in inner)]


def conv1d(b: Builder, x: Value) -> Value:
    """Append a 1-d convolution over [N, C, L]."""
    d, (batch, channels, length) = b.draw, x.shape
    k, stride = d.pick((3, 3, 5, 7)), 1 if d.tiny else d.pick((1, 1, 2))
    padding = d.pick((0, k // 2))
    oc = d.pick((3, 4, 6, 8)) if d.small else d.pick((8, 16, 24, 32, 64))
    out = _out(length, k, stride, padding)
    if out < 2 or channels > 256 or batch * oc * out * channels * k > (1e6 if d.small else 5e9):
        raise Refused("conv1d")
    options = _conv_options(stride, padding)
    layer = b.module(
        "conv", f"nn.Conv1d({b.argument('in_channels', channels)}, {b.argument('out_channels', oc)}, {k}{options})"
    )
    operands = {"w": Value((oc, channels * k), "weight", f"{layer}.weight"), "c": Value((oc,), "bias", f"{layer}.bias")}
    sizes = {"C": "{x}.size(1)", "L": "{x}.size(2)", "OC": "{w}.size(0)", "OL": _out_text("{L}", k, stride, padding)}
    at = _offset(stride, padding, "p", "q")
    lines = (
        "int p = {i} % {OL};",
        "int oc = ({i} / {OL}) % {OC};",
        "int img = {i} / ({OL} * {OC});",
        "float {v} = {c}[oc];",
        "for (int ic = 0; ic < {C}; ++ic)",
        f"    for (int q = 0; q < {k}; ++q) {{{{",
        f"        int iw = {at};",
        *(["        if (iw < 0 || iw >= {L}) continue;"] if padding else []),
        f"        {{v}} += {{x}}[(img * {{C}} + ic) * {{L}} + iw] * {{w}}[(oc * {{C}} + ic) * {k} + q];",
        "    }}",
    )
    body = Element(lines, sizes, ("{x}.size(0)", "{OC}", "{OL}"), operands)
    return b.step("conv1d", f"{layer}({{0}})", body, [x], (batch, oc, out), spread(0.6))


_POOLS: dict[str, tuple[str, str, int]] = {
    "max_pool2d": ("max", "F.max_pool2d({{0}}, {k}{o})", 2),
    "avg_pool2d": ("avg", "F.avg_pool2d({{0}}, {k}{o})", 2),
    "max_pool1d": ("max", "F.max_pool1d({{0}}, {k}{o})", 1),
    "avg_pool1d": ("avg", "F.avg_pool1d({{0}}, {k}{o})", 1),
}


def pool(b: Builder, x: Value, name: str) -> Value:
    """Append a pooling without padding."""
    how, form, rank = _POOLS[name]
    d, k = b.draw, b.draw.pick((2, 2, 3, 4))
    stride = k if d.tiny or d.chance(0.7) else d.pick((1, 2))
    outs = [_out(size, k, stride, 0) for size in x.shape[2:]]
    if len(x.shape) != rank + 2 or min(outs) < 2:
        raise Refused(name)
    options = "" if stride == k else f", stride={stride}"
    code = form.format(k=k, o=options)
    if b.modules and not d.tiny:
        made = f"nn.{'Max' if how == 'max' else 'Avg'}Pool{rank}d({b.argument('kernel_size', k)}{options})"
        code = b.module("pool", made, stateful=False) + "({0})"
    start, step = ("-INFINITY", "{v} = fmaxf({v}, {read});") if how == "max" else ("0.0f", "{v} += {read};")
    row = f"oh * {stride} + kh" if stride > 1 else "oh + kh"
    column = f"ow * {stride} + kw" if stride > 1 else "ow + kw"
    if rank == 2:
        sizes = {"H": "{x}.size(2)", "W": "{x}.size(3)"}
        sizes |= {"OH": _out_text("{H}", k, stride, 0), "OW": _out_text("{W}", k, stride, 0)}
        read = f"{{x}}[(ch * {{H}} + {row}) * {{W}} + {column}]"
        lines = (
            "int ow = {i} % {OW};",
            "int oh = ({i} / {OW}) % {OH};",
            "int ch = {i} / ({OW} * {OH});",
            f"float {{v}} = {start};",
            f"for (int kh = 0; kh < {k}; ++kh)",
            f"    for (int kw = 0; kw < {k}; ++kw) " + step.replace("{read}", read),
        )
        alloc = ("{x}.size(0)", "{x}.size(1)", "{OH}", "{OW}")
    else:
        sizes = {"W": "{x}.size(2)", "OW": _out_text("{W}", k, stride, 0)}
        read = f"{{x}}[ch * {{W}} + {column}]"
        lines = (
            "int ow = {i} % {OW};",
            "int ch = {i} / {OW};",
            f"float {{v}} = {start};",
            f"for (int kw = 0; kw < {k}; ++kw) " + step.replace("{read}", read),
        )
        alloc = ("{x}.size(0)", "{x}.size(1)", "{OW}")
    taps = k**rank
    if how == "avg":
        lines = (*lines, f"{{v}} /= {float(taps)!r}f;")
    width = 1 / math.sqrt(taps) if how == "avg" else 0.7
    probes = tuple(width * probe + (0.0 if how == "avg" else 1.0) for probe in x.probes)
    return b.step(name, code, Element(lines, sizes, alloc), [x], (*x.shape[:2], *outs), probes)


def families() -> list[Family]:
    """All windows as families."""

    def image(b: Builder) -> Value:
        d = b.draw
        channels, size = d.channels(), d.side()
        batch = d.pick((1, 2, 3)) if d.small else max(2, min(d.batch(channels * size * size), 32))
        return b.input((batch, channels, size, size if d.chance(0.7) else d.side()))

    def signal(b: Builder) -> Value:
        d = b.draw
        channels, length = d.channels(), d.length() * (1 if d.small else d.pick((1, 4, 8)))
        return b.input(
            (d.pick((1, 2, 3, 4)) if d.small else d.pick((4, 8, 16, 32)), channels, length),
            dims=("batch_size", "channels", "length"),
        )

    def convolution(name: str) -> Callable[[Builder, Value], Value]:
        return lambda b, x: conv2d(b, x, name)

    def pooling(name: str) -> Callable[[Builder, Value], Value]:
        return lambda b, x: pool(b, x, name)

    return [
        Family("conv2d", "window", convolution("conv2d"), image, ranks=(4,), layer=True),
        Family("depthwise_conv2d", "window", convolution("depthwise_conv2d"), image, ranks=(4,), layer=True),
        Family("conv1x1", "window", convolution("conv1x1"), image, ranks=(4,), layer=True),
        Family("conv1d", "window", conv1d, signal, ranks=(3,), layer=True),
        *(
            Family(
                name,
                "window",
                pooling(name),
                image if rank == 2 else signal,
                tiny=True,
                heldout=name in HELDOUT,
                ranks=(rank + 2,),
            )
            for name, (_, _, rank) in _POOLS.items()
        ),
    ]
