"""Normalisations: every element is changed by the statistics of its row."""

from __future__ import annotations

import math
from collections.abc import Callable

from dice.data.synthetic.builder import Builder, Refused
from dice.data.synthetic.families.layout import ROW_STATISTICS, axes_of, axis_text, layout, made_for, plain
from dice.data.synthetic.families.registry import HELDOUT, Family
from dice.data.synthetic.graph import NORMAL, Init, Pass, Rows, Value

SMALL_PROBES = (0.0, 0.001, 0.01, 0.03, 0.05, 0.1, 0.3, 0.6)
"""Typical results of a softmax."""
_MEAN_VAR = (
    Pass("sum", "sum", then=("float {mean} = {sum} / {R};",)),
    Pass("var", "sum", "({v} - {mean}) * ({v} - {mean})", then=("float {scale} = rsqrtf({var} / {R} + EPS);",)),
)


def mean_var(eps: float) -> tuple[Pass, ...]:
    """Two passes that give {mean} and {scale}, one over the spread."""
    first, second = _MEAN_VAR
    return (first, Pass("var", "sum", second.term, (second.then[0].replace("EPS", f"{eps!r}f"),)))


def softmax(b: Builder, x: Value, name: str) -> Value:
    axes = axes_of(b, len(x.shape))[-1:]
    sizes, length, n_rows, _ = layout(x.shape, axes)
    sign = -1 if name == "softmin" else 1
    weights = [math.exp(sign * min(probe, 30)) for probe in x.probes]
    if length < 2 or (name != "log_softmax" and max(weights) ** 1.3 / (length * sum(weights) / 8) < 0.05):
        raise Refused(name)  # the shares would be smaller than any tolerance
    dim = axis_text(b, axes, len(x.shape))
    if name == "log_softmax":
        forms = (f"F.log_softmax({{0}}, dim={dim})", f"torch.log_softmax({{0}}, dim={dim})")
        passes = (
            Pass("peak", "max"),
            Pass("sum", "sum", "expf({v} - {peak})", ("float {scale} = {peak} + logf({sum});",)),
        )
        value, probes = "{v} - {scale}", tuple(min(probe - math.log(length) - 0.5, -0.05) for probe in x.probes)
    elif name == "softmax":
        forms = (f"torch.softmax({{0}}, dim={dim})", f"F.softmax({{0}}, dim={dim})", f"{{0}}.softmax(dim={dim})")
        passes = (Pass("peak", "max"), Pass("sum", "sum", "expf({v} - {peak})"))
        value, probes = "expf({v} - {peak}) / {sum}", SMALL_PROBES
    else:
        forms = (f"F.softmin({{0}}, dim={dim})", f"torch.softmax(-{{0}}, dim={dim})")
        passes = (Pass("low", "min"), Pass("sum", "sum", "expf({low} - {v})"))
        value, probes = "expf({low} - {v}) / {sum}", SMALL_PROBES
    code = b.draw.pick(forms)
    if name == "softmax" and b.modules and not b.draw.tiny:
        code = b.module("softmax", f"nn.Softmax(dim={dim})", stateful=False) + "({0})"
    return b.step(name, code, Rows(passes, value, "element", sizes, length, n_rows), [x], None, probes)


def affine(b: Builder, size: int, argument: str, bias: bool = True) -> tuple[Value, Value | None]:
    """Weight and bias vectors that are far from one and zero."""
    sizes = (b.argument(argument, size),)
    weight = b.parameter((size,), "weight", "0.5 + torch.rand({s})", sizes=sizes)
    return weight, b.parameter((size,), "bias", sizes=sizes) if bias else None


def module_affine(
    b: Builder, base: str, made: str, shape: tuple[int, ...], initialised: bool = True
) -> tuple[str, Value, Value]:
    """An nn module with weight and bias, which are away from one and zero where `initialised`."""
    name = b.module(base, made)
    if initialised:
        b.init.append(Init(f"nn.init.uniform_({name}.weight, 0.5, 1.5)"))
        b.init.append(Init(f"nn.init.normal_({name}.bias)"))
    return name, Value(shape, "weight", f"{name}.weight"), Value(shape, "bias", f"{name}.bias")


def layer_norm(b: Builder, x: Value, name: str = "layer_norm") -> Value:
    """Layer normalisation over the last dimension, with weights and bias."""
    length = x.shape[-1]
    sizes, _, n_rows, _ = layout(x.shape, (len(x.shape) - 1,))
    if length < 4:
        raise Refused(name)
    eps = 1e-5 if b.draw.tiny else b.draw.pick((1e-5, 1e-5, 1e-6, 1e-3))
    if b.draw.chance(0.5):
        options = "" if eps == 1e-5 else f", eps={eps!r}"
        made = f"nn.LayerNorm({b.argument('features', length)}{options})"
        module, weight, bias = module_affine(b, b.draw.pick(("norm", "ln", "layer_norm")), made, (length,))
        code = f"{module}({{0}})"
    else:
        weight, maybe = affine(b, length, "features")
        bias = maybe or weight
        shape = f"({length},)" if not b.uses_arguments else f"{weight.code}.shape"
        code = f"F.layer_norm({{0}}, {shape}, {weight.code}, {bias.code}, eps={eps!r})"
    value = "({v} - {mean}) * {scale} * {w}[{j}] + {c}[{j}]"
    body = Rows(mean_var(eps), value, "element", sizes, length, n_rows, operands={"w": weight, "c": bias})
    return b.step(name, code, body, [x])


def rms_norm(b: Builder, x: Value, name: str = "rms_norm") -> Value:
    """Root-mean-square normalisation over the last dimension, with weights."""
    length = x.shape[-1]
    sizes, _, n_rows, _ = layout(x.shape, (len(x.shape) - 1,))
    if length < 4:
        raise Refused(name)
    eps = b.draw.pick((1e-5, 1e-5, 1e-3, 0.02, 0.05, 0.2) if b.draw.tiny else (1e-5, 1e-6, 1e-3))
    weight, _ = affine(b, length, "features", bias=False)
    forms = (
        f"{{0}} * torch.rsqrt({{0}}.pow(2).mean(-1, keepdim=True) + {eps!r}) * {weight.code}",
        f"{{0}} * torch.rsqrt(torch.mean({{0}} * {{0}}, dim=-1, keepdim=True) + {eps!r}) * {weight.code}",
        f"{{0}} / torch.sqrt(torch.mean({{0}} ** 2, dim=-1, keepdim=True) + {eps!r}) * {weight.code}",
    )
    passes = (Pass("sum", "sum", "{v} * {v}", (f"float {{scale}} = rsqrtf({{sum}} / {{R}} + {eps!r}f);",)),)
    body = Rows(passes, "{v} * {scale} * {w}[{j}]", "element", sizes, length, n_rows, operands={"w": weight})
    return b.step(name, b.draw.pick(forms), body, [x])


def l2_normalize(b: Builder, x: Value, name: str = "l2_normalize") -> Value:
    """Unit length along a dimension, times a factor that keeps the numbers above any tolerance."""
    axes = axes_of(b, len(x.shape))[-1:]
    sizes, length, n_rows, _ = layout(x.shape, axes)
    if length < 4:
        raise Refused(name)
    dim = axis_text(b, axes, len(x.shape))
    factor = float(max(2, round(math.sqrt(length) * b.draw.number(0.5, 1.5, 0.25))))
    passes = (Pass("sum", "sum", "{v} * {v}", ("float {scale} = " + f"{factor!r}f / fmaxf(sqrtf({{sum}}), 1e-12f);",)),)
    code = f"F.normalize({{0}}, dim={dim}) * {factor!r}"
    return b.step(name, code, Rows(passes, "{v} * {scale}", "element", sizes, length, n_rows), [x])


def standardize(b: Builder, x: Value, name: str = "standardize") -> Value:
    """Zero mean and unit spread along a dimension."""
    axes = axes_of(b, len(x.shape))
    sizes, length, n_rows, _ = layout(x.shape, axes)
    if length < 4:
        raise Refused(name)
    dim, eps = axis_text(b, axes, len(x.shape)), b.draw.pick((1e-5, 1e-6, 1e-3))
    mean = f"{{0}}.mean(dim={dim}, keepdim=True)"
    code = f"({{0}} - {mean}) / torch.sqrt({{0}}.var(dim={dim}, keepdim=True, unbiased=False) + {eps!r})"
    body = Rows(mean_var(eps), "({v} - {mean}) * {scale}", "element", sizes, length, n_rows)
    return b.step(name, code, body, [x])


def center(b: Builder, x: Value, name: str = "center") -> Value:
    """Subtract the mean along a dimension; for inputs whose rows have different means."""
    axes = axes_of(b, len(x.shape))
    sizes, length, n_rows, _ = layout(x.shape, axes)
    dim = axis_text(b, axes, len(x.shape))
    forms = (f"{{0}} - {{0}}.mean(dim={dim}, keepdim=True)", f"{{0}} - torch.mean({{0}}, dim={dim}, keepdim=True)")
    passes = (Pass("sum", "sum", then=("float {mean} = {sum} / {R};",)),)
    body = Rows(passes, "{v} - {mean}", "element", sizes, length, n_rows)
    return b.step(name, b.draw.pick(forms), body, [x])


def minmax_normalize(b: Builder, x: Value, name: str = "minmax_normalize") -> Value:
    """Smallest to 0 and largest to 1 along a dimension."""
    axes = axes_of(b, len(x.shape))
    sizes, length, n_rows, _ = layout(x.shape, axes)
    if length < 4 or max(x.probes) - min(x.probes) < 0.5:
        raise Refused(name)
    dim, eps = axis_text(b, axes, len(x.shape)), b.draw.pick((1e-5, 1e-6, 1e-3))
    low, high = (f"{{0}}.{f}(dim={dim}, keepdim=True)" for f in ("amin", "amax"))
    code = f"({{0}} - {low}) / ({high} - {low} + {eps!r})"
    passes = (
        Pass("low", "min"),
        Pass("peak", "max", then=("float {scale} = 1.0f / ({peak} - {low} + " + f"{eps!r}f);",)),
    )
    body = Rows(passes, "({v} - {low}) * {scale}", "element", sizes, length, n_rows)
    return b.step(name, code, body, [x], None, (0.05, 0.15, 0.3, 0.4, 0.5, 0.6, 0.75, 0.9))


def group_norm(b: Builder, x: Value, name: str = "group_norm") -> Value:
    """Group normalisation of [N, C, H, W] (or [N, C, L]) with weights and bias."""
    channels, spatial = x.shape[1], math.prod(x.shape[2:])
    if name == "instance_norm":
        groups = channels
    else:
        options = [count for count in (2, 3, 4, 8, 16) if channels % count == 0 and count < channels]
        if not options:
            raise Refused(name)
        groups = b.draw.pick(options)
    length = channels // groups * spatial
    if length < 8:
        raise Refused(name)
    eps = b.draw.pick((1e-5, 1e-5, 1e-3))
    inner = " * ".join(f"{{x}}.size({axis})" for axis in range(2, len(x.shape)))
    sizes = {"hw": inner, "R": f"{{x}}.size(1) / {groups} * {{hw}}", "rows": f"{{x}}.size(0) * {groups}"}
    if name == "instance_norm":
        sizes = {"channels": "{x}.size(1)", "R": inner, "rows": "{x}.size(0) * {channels}"}
    if name == "instance_norm":
        weight, maybe = affine(b, channels, "channels")
        bias = maybe or weight
        code = f"F.instance_norm({{0}}, weight={weight.code}, bias={bias.code}, eps={eps!r})"
    elif b.draw.chance(0.5):
        made = f"nn.GroupNorm({b.argument('groups', groups)}, {b.argument('channels', channels)}, eps={eps!r})"
        module, weight, bias = module_affine(b, b.draw.pick(("norm", "gn", "group_norm")), made, (channels,))
        code = f"{module}({{0}})"
    else:
        weight, maybe = affine(b, channels, "channels")
        bias = maybe or weight
        code = f"F.group_norm({{0}}, {groups}, {weight.code}, {bias.code}, eps={eps!r})"
    if name == "instance_norm":
        lines, at = ("int ch = {row} % {channels};",), "ch"
    else:
        lines, at = (f"int ch = {{row}} % {groups} * ({{R}} / {{hw}});",), "ch + {j} / {hw}"
    value = f"({{v}} - {{mean}}) * {{scale}} * {{w}}[{at}] + {{c}}[{at}]"
    operands = {"w": weight, "c": bias}
    body = Rows(mean_var(eps), value, "element", sizes, length, x.numel // length, operands=operands, row_lines=lines)
    return b.step(name, code, body, [x])


def families() -> list[Family]:
    """Normalisations as families."""

    def wide(b: Builder) -> Value:
        factor = b.draw.pick((3, 4, 5))
        probes = tuple(factor * probe for probe in NORMAL)
        return b.input(b.draw.shape(b.draw.rank((2, 3, 4))), text=f"{factor} * torch.randn({{s}})", probes=probes)

    def image(b: Builder) -> Value:
        shape = b.draw.shape(4)
        return b.input(shape, text=ROW_STATISTICS, statistics=(*shape[:2], 1, 1))

    def varied(b: Builder) -> Value:
        return made_for(b, ROW_STATISTICS)

    def entry(
        name: str,
        make: Callable[[Builder, Value, str], Value],
        start: Callable[[Builder], Value],
        tiny: bool = False,
        ranks: tuple[int, ...] = (2, 3, 4),
        weak: bool = False,
    ) -> Family:
        return Family(name, "norm", lambda b, x: make(b, x, name), start, tiny, name in HELDOUT, ranks, weak)

    return [
        entry("softmax", softmax, wide, tiny=True),
        entry("log_softmax", softmax, plain, tiny=True),
        entry("softmin", softmax, wide),
        entry("layer_norm", layer_norm, varied, tiny=True, ranks=(2, 3)),
        entry("rms_norm", rms_norm, varied, tiny=True, ranks=(2, 3)),
        entry("l2_normalize", l2_normalize, varied),
        entry("standardize", standardize, varied),
        entry("center", center, varied, weak=True),
        entry("minmax_normalize", minmax_normalize, varied),
        entry("group_norm", group_norm, image, ranks=(4,)),
        entry("instance_norm", group_norm, image, ranks=(4,)),
    ]
