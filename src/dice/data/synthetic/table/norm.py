"""Normalisations: every element is changed by the statistics of its row."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from dice.data.synthetic.builder import Builder, Refused
from dice.data.synthetic.graph import NORMAL, Init, Pass, Rows, Value
from dice.data.synthetic.table.entry import Entry, Special
from dice.data.synthetic.table.index import shape_of_rank
from dice.data.synthetic.table.layout import ROW_STATISTICS, axes_of, axis_text, layout, made_for, plain
from dice.data.synthetic.table.reduction import SPREAD

SMALL_PROBES = (0.0, 0.001, 0.01, 0.03, 0.05, 0.1, 0.3, 0.6)
"""Typical results of a softmax."""
_SQUARES = Pass("sum", "sum", "{v} * {v}")
_SIZES = Pass("sum", "sum", "fabsf({v})")
NORMALISED = "({v} - {mean}) * {scale}"


def mean_var(eps: str) -> tuple[Pass, ...]:
    """Two passes that give {mean} and {scale}, one over the spread. `eps`: text of a small number."""
    return SPREAD[0], replace(SPREAD[1], then=(f"float {{scale}} = rsqrtf({{var}} / {{R}} + {eps}f);",))


# softmax and its relatives -----------------------------------------------------------------------------------------

_SHARES = (Pass("peak", "max"), Pass("sum", "sum", "expf({v} - {peak})"))


@dataclass
class Shares(Entry, group="norm", ranks=(2, 3, 4)):
    """A softmax or a relative of it: passes over a row, the element then, spellings. `sign`: of the shares' exponents; 0
    where the result is no share. `start`: makes the input."""

    passes: tuple[Pass, ...]
    value: str
    forms: tuple[str, ...]
    start: Callable[[Builder], Value]
    sign: int = 1

    def first(self, b: Builder) -> Value:
        return self.start(b)

    def apply(self, b: Builder, x: Value) -> Value:
        axes = axes_of(b, len(x.shape))[-1:]
        sizes, length, n_rows = layout(x.shape, axes)
        weights = [math.exp(self.sign * min(probe, 30)) for probe in x.probes]
        below_tolerance = bool(self.sign) and max(weights) ** 1.3 / (length * sum(weights) / 8) < 0.05
        self.refuse_if(length < 2 or below_tolerance)
        dim = axis_text(b, axes, len(x.shape))
        code, probes = b.draw.pick(self.forms).replace("{d}", dim), SMALL_PROBES
        if not self.sign:
            probes = tuple(min(probe - math.log(length) - 0.5, -0.05) for probe in x.probes)
        if self.name == "softmax" and b.modules and not b.draw.tiny:
            code = b.module("softmax", f"nn.Softmax(dim={dim})", stateful=False) + "({0})"
        return b.step(self.name, code, self.body(sizes, length, n_rows), [x], None, probes)

    def body(self, sizes: dict[str, str], length: int, n_rows: int) -> Rows:
        """How it is computed."""
        return Rows(self.passes, self.value, "element", sizes, length, n_rows)


def _wide(b: Builder) -> Value:
    factor = b.draw.pick((3, 4, 5))
    probes = tuple(factor * probe for probe in NORMAL)
    return b.input(b.draw.shape(b.draw.rank((2, 3, 4))), text=f"{factor} * torch.randn({{s}})", probes=probes)


SOFTMAX = {
    "softmax": Shares(
        _SHARES,
        "expf({v} - {peak}) / {sum}",
        ("torch.softmax({0}, dim={d})", "F.softmax({0}, dim={d})", "{0}.softmax(dim={d})"),
        _wide,
    ),
    "log_softmax": Shares(
        (_SHARES[0], replace(_SHARES[1], then=("float {scale} = {peak} + logf({sum});",))),
        "{v} - {scale}",
        ("F.log_softmax({0}, dim={d})", "torch.log_softmax({0}, dim={d})"),
        plain,
        sign=0,
    ),
    "softmin": Shares(
        (Pass("low", "min"), Pass("sum", "sum", "expf({low} - {v})")),
        "expf({low} - {v}) / {sum}",
        ("F.softmin({0}, dim={d})", "torch.softmax(-{0}, dim={d})"),
        _wide,
        sign=-1,
    ),
}


# a row by its own statistics ---------------------------------------------------------------------------------------


@dataclass
class Scaled(Entry, group="norm", ranks=(2, 3, 4)):
    """Passes over a row, the element then, spellings in {0}, {d} (dimension) and EPS, a small number.

    `factor`: for results that are small where rows of this length are long: programs multiply them by it, so that they
    stand above the tolerance.
    """

    passes: tuple[Pass, ...]
    value: str
    forms: tuple[str, ...]
    factor: Callable[[int], float] | None = None
    probes: tuple[float, ...] = NORMAL
    weak: bool = False

    def first(self, b: Builder) -> Value:
        return _rows(b)

    def apply(self, b: Builder, x: Value) -> Value:
        axes = axes_of(b, len(x.shape))
        axes = axes[-1:] if self.forms[0].startswith("F.") else axes
        sizes, length, n_rows = layout(x.shape, axes)
        alike = self.name == "minmax_normalize" and max(x.probes) - min(x.probes) < 0.5
        self.refuse_if(x.dtype != "float" or length < 4 or alike)
        small = repr(b.draw.pick((1e-5, 1e-6, 1e-3, 0.1)))
        code, value = b.draw.pick(self.forms).replace("EPS", small), self.value.replace("EPS", small)
        if self.factor:
            factor = repr(float(max(2, round(self.factor(length)))))
            code, value = f"{code} * {factor}", f"{value} * {factor}f"
        passes = tuple(replace(one, then=tuple(line.replace("EPS", small) for line in one.then)) for one in self.passes)
        body = Rows(passes, value, "element", sizes, length, n_rows)
        return b.step(self.name, code.replace("{d}", axis_text(b, axes, len(x.shape))), body, [x], None, self.probes)


_CENTRED = "{0} - {0}.mean(dim={d}, keepdim=True)"
SCALED = {
    "l2_normalize": Scaled((_SQUARES,), "{v} / fmaxf(sqrtf({sum}), 1e-12f)", ("F.normalize({0}, dim={d})",), math.sqrt),
    "normalize_by_sum": Scaled((_SIZES,), "{v} / fmaxf({sum}, 1e-12f)", ("F.normalize({0}, p=1, dim={d})",), float),
    "over_norm": Scaled(
        (_SQUARES,),
        "{v} / sqrtf({sum})",
        ("{0} / torch.norm({0}, p=2, dim={d}, keepdim=True)", "{0} / {0}.norm(dim={d}, keepdim=True)"),
        math.sqrt,
    ),
    "over_total_size": Scaled(
        (_SIZES,), "{v} / {sum}", ("{0} / torch.sum(torch.abs({0}), dim={d}, keepdim=True)",), float
    ),
    "over_rms": Scaled(
        (_SQUARES,),
        "{v} / sqrtf({sum} / {R} + EPSf)",
        ("{0} / torch.sqrt(torch.mean({0} ** 2, dim={d}, keepdim=True) + EPS)",),
    ),
    "over_mean_size": Scaled(
        (_SIZES,),
        "{v} / ({sum} / {R} + EPSf)",
        ("{0} / (torch.mean(torch.abs({0}), dim={d}, keepdim=True) + EPS)",),
    ),
    "over_largest": Scaled(
        (Pass("peak", "max", "fabsf({v})"),),
        "{v} / {peak}",
        ("{0} / torch.amax(torch.abs({0}), dim={d}, keepdim=True)",),
    ),
    "standardize": Scaled(
        mean_var("EPS"),
        NORMALISED,
        (f"({_CENTRED}) / torch.sqrt({{0}}.var(dim={{d}}, keepdim=True, unbiased=False) + EPS)",),
    ),
    "center": Scaled(SPREAD[:1], "{v} - {mean}", (_CENTRED, "{0} - torch.mean({0}, dim={d}, keepdim=True)"), weak=True),
    "minmax_normalize": Scaled(
        (Pass("low", "min"), Pass("peak", "max")),
        "({v} - {low}) / ({peak} - {low} + EPSf)",
        (
            "({0} - {0}.amin(dim={d}, keepdim=True)) "
            "/ ({0}.amax(dim={d}, keepdim=True) - {0}.amin(dim={d}, keepdim=True) + EPS)",
        ),
        probes=(0.05, 0.15, 0.3, 0.4, 0.5, 0.6, 0.75, 0.9),
    ),
}


# with weights ------------------------------------------------------------------------------------------------------


def affine(b: Builder, size: int, argument: str) -> Value:
    """A vector of weights that are far from one."""
    return b.parameter((size,), "weight", "0.5 + torch.rand({s})", sizes=(b.argument(argument, size),))


def module_affine(
    b: Builder, base: str, made: str, shape: tuple[int, ...], initialised: bool = True
) -> tuple[str, dict[str, Value]]:
    """An nn module, and its weight {w} and bias {c}, which are away from one and zero where `initialised`."""
    name = b.module(base, made)
    if initialised:
        b.init.append(Init(f"nn.init.uniform_({name}.weight, 0.5, 1.5)"))
        b.init.append(Init(f"nn.init.normal_({name}.bias)"))
    return name, {"w": Value(shape, "weight", f"{name}.weight"), "c": Value(shape, "bias", f"{name}.bias")}


def layer_norm(b: Builder, x: Value) -> Value:
    """Layer normalisation over the last dimension, with weights and bias."""
    sizes, length, n_rows = layout(x.shape, (len(x.shape) - 1,))
    if length < 4:
        raise Refused("layer_norm")
    eps = 1e-5 if b.draw.tiny else b.draw.pick((1e-5, 1e-5, 1e-6, 1e-3))
    if b.draw.chance(0.5):
        options = "" if eps == 1e-5 else f", eps={eps!r}"
        made = f"nn.LayerNorm({b.argument('features', length)}{options})"
        module, operands = module_affine(b, b.draw.pick(("norm", "ln", "layer_norm")), made, (length,))
        code = f"{module}({{0}})"
    else:
        operands = {"w": affine(b, length, "features")}
        operands["c"] = b.parameter((length,), "bias", sizes=(b.argument("features", length),))
        weight, bias = (value.code for value in operands.values())
        shape = f"{weight}.shape" if b.uses_arguments else f"({length},)"
        code = f"F.layer_norm({{0}}, {shape}, {weight}, {bias}, eps={eps!r})"
    value = f"{NORMALISED} * {{w}}[{{j}}] + {{c}}[{{j}}]"
    body = Rows(mean_var(repr(eps)), value, "element", sizes, length, n_rows, operands=operands)
    return b.step("layer_norm", code, body, [x])


def rms_norm(b: Builder, x: Value) -> Value:
    """Root-mean-square normalisation over the last dimension, with weights."""
    sizes, length, n_rows = layout(x.shape, (len(x.shape) - 1,))
    if length < 4:
        raise Refused("rms_norm")
    eps = b.draw.pick((1e-5, 1e-5, 1e-3, 0.02, 0.05, 0.2) if b.draw.tiny else (1e-5, 1e-6, 1e-3))
    weight = affine(b, length, "features")
    forms = (
        f"{{0}} * torch.rsqrt({{0}}.pow(2).mean(-1, keepdim=True) + {eps!r}) * {weight.code}",
        f"{{0}} * torch.rsqrt(torch.mean({{0}} * {{0}}, dim=-1, keepdim=True) + {eps!r}) * {weight.code}",
        f"{{0}} / torch.sqrt(torch.mean({{0}} ** 2, dim=-1, keepdim=True) + {eps!r}) * {weight.code}",
    )
    passes = (replace(_SQUARES, then=(f"float {{scale}} = rsqrtf({{sum}} / {{R}} + {eps!r}f);",)),)
    body = Rows(passes, "{v} * {scale} * {w}[{j}]", "element", sizes, length, n_rows, operands={"w": weight})
    return b.step("rms_norm", b.draw.pick(forms), body, [x])


def _rows(b: Builder) -> Value:
    return made_for(b, ROW_STATISTICS)


WEIGHTED = {
    "layer_norm": Special("norm", layer_norm, _rows, (2, 3)),
    "rms_norm": Special("norm", rms_norm, _rows, (2, 3)),
}


@dataclass
class Layer(Entry, group="norm"):
    """A normalisation layer of channels: by the statistics of the batch, of an image's channel, of the last dimensions, or
    of an image's groups of channels. `title`: nn module; `varying`: dimensions along which the input's statistics vary."""

    title: str
    varying: tuple[int, ...]
    ranks: tuple[int, ...] = (3, 4, 5)

    def first(self, b: Builder) -> Value:
        shape = shape_of_rank(b.draw, b.draw.pick(self.ranks))
        statistics = tuple(size if axis in self.varying else 1 for axis, size in enumerate(shape))
        return b.input(shape, text=ROW_STATISTICS, statistics=statistics)

    def apply(self, b: Builder, x: Value) -> Value:
        d, title, rank, channels = b.draw, self.title, len(x.shape), x.shape[1]
        eps = d.pick((1e-5, 1e-5, 1e-5, 1e-3))
        plane = " * ".join(f"{{x}}.size({axis})" for axis in range(2, rank))
        hw = {"hw": plane} if plane else {}
        value, at, lines, shape = f"{NORMALISED} * {{w}}[{{j}}] + {{c}}[{{j}}]", "", (), (channels,)
        given = ("num_features=" if d.chance(0.3) else "") + b.argument("num_features", channels)
        if title == "BatchNorm":
            length = x.numel // channels
            sizes = {**hw, "channels": "{x}.size(1)", "R": "{x}.numel() / {channels}", "rows": "{channels}"}
            at = "({j} / {hw} * {channels} + {row}) * {hw} + {j} % {hw}" if hw else "{j} * {channels} + {row}"
            value = value.replace("{j}", "{row}")
        elif title == "InstanceNorm":
            sizes, length, _ = layout(x.shape, tuple(range(2, rank)))
            value = NORMALISED
        elif title == "LayerNorm":
            count = d.pick((1, rank - 1))
            sizes, length, _ = layout(x.shape, tuple(range(rank - count, rank)))
            shape = x.shape[rank - count :]
            given = b.argument("normalized_shape", shape if count > 1 else shape[0])
        else:
            options = [count for count in (2, 3, 4, 8, 16) if channels % count == 0 and count < channels]
            groups = d.pick(options or [1])
            length = x.numel // x.shape[0] // groups
            sizes = {**hw, "R": f"{{x}}.size(1) / {groups} * {{hw}}", "rows": f"{{x}}.size(0) * {groups}"}
            lines = (f"int ch = {{row}} % {groups} * ({{R}} / {{hw}});",)
            value = value.replace("{j}", "ch + {j} / {hw}")
            given = f"{b.argument('num_groups', groups)}, {b.argument('num_channels', channels)}"
        self.refuse_if(x.dtype != "float" or length < 8)
        dimensions = f"{max(rank - 2, 1)}d" if title in ("BatchNorm", "InstanceNorm") else ""
        made = f"nn.{title}{dimensions}({given}" + (")" if eps == 1e-5 else f", eps={eps!r})")
        attribute = d.pick(("norm", "norm1", {"BatchNorm": "bn", "GroupNorm": "gn"}.get(title, "ln")))
        if title == "InstanceNorm":  # the layer has no weights unless it is asked for them
            code, operands = b.module(attribute, made, stateful=False), {}
        else:
            code, operands = module_affine(b, attribute, made, shape, initialised=d.chance(0.5))
        passes = mean_var(repr(eps))
        body = Rows(
            passes, value, "element", sizes, length, x.numel // length, operands=operands, at=at, row_lines=lines
        )
        return b.step(self.name, f"{code}({{0}})", body, [x])


LAYERS = {
    "batch_norm_layer": Layer("BatchNorm", (1,), (2, 3, 4, 5)),
    "instance_norm_layer": Layer("InstanceNorm", (0, 1)),
    "layer_norm_layer": Layer("LayerNorm", (0,), (2, 3, 4)),
    "group_norm": Layer("GroupNorm", (0, 1), (3, 4)),
}
