"""Row-wise operators: reductions over a dimension, normalisations, arg-max, scans."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from dice.data.synthetic.families.registry import HELDOUT, Family
from dice.data.synthetic.graph import NORMAL, Arg, Builder, Init, Pass, Refused, Rows, Scan, Value, centred, moments

Axes = tuple[int, ...]
ROW_STATISTICS = "torch.randn({s}) * (0.5 + torch.rand({s1})) + torch.randn({s1})"
"""Rows with a mean and a spread of their own: a mean or a norm of such a row is no constant."""
SMALL_PROBES = (0.0, 0.001, 0.01, 0.03, 0.05, 0.1, 0.3, 0.6)
"""What a softmax gives."""


def axes_of(b: Builder, rank: int) -> Axes:
    """Dimension(s) to work along: those for which the input was made, or any."""
    if b.axis is not None:
        return b.axis
    if rank == 1:
        return (0,)
    if b.draw.tiny:
        return (rank - 1,)
    if rank == 4:
        return b.draw.pick(((1,), (3,), (2, 3), (2, 3), (1,)))
    return b.draw.pick(((rank - 1,), (rank - 1,), (rank - 1,), (0,), (1,))) if rank == 2 else b.draw.pick(((2,), (2,), (1,)))


def layout(shape: tuple[int, ...], axes: Axes) -> tuple[dict[str, str], int, int, int]:
    """Size expressions of a row layout, and (length, rows, inner) as numbers."""
    product = " * ".join(f"{{x}}.size({axis})" for axis in axes)
    length = math.prod(shape[axis] for axis in axes)
    inner = math.prod(shape[axes[-1] + 1 :])
    atom = product if len(axes) == 1 else f"({product})"
    sizes = {"R": product, "rows": f"{{x}}.numel() / {atom}"}
    if len(shape) == 2:
        sizes["rows"] = f"{{x}}.size({1 - axes[0]})"
    if axes[-1] + 1 < len(shape):
        sizes["inner"] = " * ".join(f"{{x}}.size({axis})" for axis in range(axes[-1] + 1, len(shape)))
    return sizes, length, math.prod(shape) // length, inner


def reduced(shape: tuple[int, ...], axes: Axes, keep: bool) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Shape after a reduction and the host expressions of its sizes."""
    kept = [(1, "1") if axis in axes else (size, f"{{x}}.size({axis})") for axis, size in enumerate(shape)]
    kept = [item for axis, item in enumerate(kept) if keep or axis not in axes]
    return tuple(size for size, _ in kept), tuple(text for _, text in kept)


def axis_text(b: Builder, axes: Axes, rank: int) -> str:
    """The dimension as PyTorch code."""
    if len(axes) > 1:
        return repr(axes)
    return repr(axes[0] - rank if axes[0] == rank - 1 and b.draw.chance(0.5) else axes[0])


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
        (Pass("sum", "sum", then=("float {mean} = {sum} / {R};",)), Pass("var", "sum", "({v} - {mean}) * ({v} - {mean})")),
        "{var} / ({R} - 1)",
        ("torch.var({x}, dim={d}{k})", "{x}.var(dim={d}{k})", "torch.var({x}, dim={d}, unbiased=True{k})"),
        lambda x, length: centred(1.1 * moments(x.probes)[1] ** 2, 0.4 * moments(x.probes)[1] ** 2),
        ROW_STATISTICS,
        weak=True,
    ),
    "std": Reduction(
        (Pass("sum", "sum", then=("float {mean} = {sum} / {R};",)), Pass("var", "sum", "({v} - {mean}) * ({v} - {mean})")),
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


def made_for(b: Builder, text: str, longest: int = 100_000, ranks: tuple[int, ...] = (2, 2, 3, 4)) -> Value:
    """An input whose statistics vary from row to row along dimensions that are then fixed for the operator."""
    d = b.draw
    rank = 2 if d.tiny and d.chance(0.7) else d.pick(ranks)
    shape = d.shape(rank)
    b.axis = axes_of(b, rank)
    if math.prod(shape[axis] for axis in b.axis) > longest:
        length = d.pick((16, 24, 32, 48, 64, 100)) if longest >= 100 else longest
        shape = tuple(length if axis == b.axis[-1] else size for axis, size in enumerate(shape))
        b.axis = b.axis[-1:]
    statistics = tuple(1 if axis in b.axis else size for axis, size in enumerate(shape))
    if "{s1}" in text:
        return b.input(shape, text="torch.randn({s}) + torch.randn({s1})" if d.tiny else text, statistics=statistics)
    probes = (0.82, 0.88, 0.94, 0.98, 1.03, 1.08, 1.13, 1.18) if "0.8" in text else NORMAL
    return b.input(shape, text=text, probes=probes)


def reduction(b: Builder, x: Value, name: str) -> Value:
    """Append reduction `name`."""
    spec = REDUCTIONS[name]
    axes = axes_of(b, len(x.shape))
    if not spec.many_axes:
        axes = axes[-1:]
    sizes, length, n_rows, _ = layout(x.shape, axes)
    if length > spec.longest or length < 2 or n_rows < 4 or (name == "prod" and not _near_one(x)):
        raise Refused(name)
    if name in _EXTREMES and _saturated(x):
        raise Refused(name)
    keep = b.draw.chance(0.25) and not b.draw.tiny
    shape, alloc = reduced(x.shape, axes, keep)
    form = b.draw.pick(spec.forms)
    code = form.format(x="{0}", d=axis_text(b, axes, len(x.shape)), k=", keepdim=True" if keep else "")
    body = Rows(spec.passes, spec.value, "row", sizes, length, n_rows, alloc)
    return b.step(name, code, body, [x], shape, spec.probes(x, length))


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
    body = Arg(">" if name == "argmax" else "<", sizes, alloc, length)
    return b.step(name, code, body, [x], shape, dtype="int64")


_SHARES = (0.2, 0.9, 0.4, 0.6, 0.1, 0.8, 0.3, 1.0)
"""How far along its row an element of a running sum is."""


def scan(b: Builder, x: Value, name: str) -> Value:
    """Append cumsum, cumprod, cummax or the sum from the end."""
    axes = axes_of(b, len(x.shape))[-1:]
    sizes, length, n_rows, _ = layout(x.shape, axes)
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
    along = [math.sqrt(share * length) * (mean * math.sqrt(share * length) + width * probe) for share, probe in zip(_SHARES, NORMAL, strict=True)]
    probes = {"sum": tuple(along), "prod": x.probes, "max": centred(max(x.probes), 0.3 * width)}[how]
    body = Scan(how, sizes, length, n_rows, name == "reverse_cumsum")
    return b.step(name, b.draw.pick(forms[name]), body, [x], None, probes)


# normalisations ---------------------------------------------------------------------------------------------------

_MEAN_VAR = (
    Pass("sum", "sum", then=("float {mean} = {sum} / {R};",)),
    Pass("var", "sum", "({v} - {mean}) * ({v} - {mean})", then=("float {scale} = rsqrtf({var} / {R} + EPS);",)),
)


def _mean_var(eps: float) -> tuple[Pass, ...]:
    first, second = _MEAN_VAR
    return (first, Pass("var", "sum", second.term, (second.then[0].replace("EPS", f"{eps!r}f"),)))


def _softmax(b: Builder, x: Value, name: str) -> Value:
    axes = axes_of(b, len(x.shape))[-1:]
    sizes, length, n_rows, _ = layout(x.shape, axes)
    sign = -1 if name == "softmin" else 1
    weights = [math.exp(sign * min(probe, 30)) for probe in x.probes]
    if length < 2 or (name != "log_softmax" and max(weights) ** 1.3 / (length * sum(weights) / 8) < 0.05):
        raise Refused(name)  # the shares would be smaller than any tolerance
    dim = axis_text(b, axes, len(x.shape))
    if name == "log_softmax":
        forms = (f"F.log_softmax({{0}}, dim={dim})", f"torch.log_softmax({{0}}, dim={dim})")
        passes = (Pass("peak", "max"), Pass("sum", "sum", "expf({v} - {peak})", ("float {scale} = {peak} + logf({sum});",)))
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


def module_affine(b: Builder, base: str, made: str, shape: tuple[int, ...]) -> tuple[str, Value, Value]:
    """An nn module with weight and bias that are initialised away from one and zero."""
    name = b.module(base, made)
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
    if b.draw.chance(0.5) and not b.draw.tiny:
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
    body = Rows(_mean_var(eps), value, "element", sizes, length, n_rows, operands={"w": weight, "c": bias})
    return b.step(name, code, body, [x])


def rms_norm(b: Builder, x: Value, name: str = "rms_norm") -> Value:
    """Root-mean-square normalisation over the last dimension, with weights."""
    length = x.shape[-1]
    sizes, _, n_rows, _ = layout(x.shape, (len(x.shape) - 1,))
    if length < 4:
        raise Refused(name)
    eps = 1e-5 if b.draw.tiny else b.draw.pick((1e-5, 1e-6, 1e-3))
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
    body = Rows(_mean_var(eps), "({v} - {mean}) * {scale}", "element", sizes, length, n_rows)
    return b.step(name, code, body, [x])


def center(b: Builder, x: Value, name: str = "center") -> Value:
    """Mean along a dimension taken away; for inputs whose rows have means of their own."""
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
    passes = (Pass("low", "min"), Pass("peak", "max", then=("float {scale} = 1.0f / ({peak} - {low} + " + f"{eps!r}f);",)))
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
    body = Rows(_mean_var(eps), value, "element", sizes, length, x.numel // length, operands=operands, row_lines=lines)
    return b.step(name, code, body, [x])


def families() -> list[Family]:
    """Reductions, normalisations, arg-max and scans as families."""

    def plain(b: Builder) -> Value:
        return b.input(b.draw.shape(b.draw.rank((2, 3, 4))))

    def wide(b: Builder) -> Value:
        factor = b.draw.pick((3, 4, 5))
        probes = tuple(factor * probe for probe in NORMAL)
        return b.input(b.draw.shape(b.draw.rank((2, 3, 4))), text=f"{factor} * torch.randn({{s}})", probes=probes)

    def image(b: Builder) -> Value:
        shape = b.draw.shape(4)
        return b.input(shape, text=ROW_STATISTICS, statistics=(*shape[:2], 1, 1))

    def varied(b: Builder) -> Value:
        return made_for(b, ROW_STATISTICS)

    def near_one(b: Builder) -> Value:
        return made_for(b, "0.8 + 0.4 * torch.rand({s})", 100)

    def reduction_of(name: str, spec: Reduction) -> Family:
        def start(b: Builder) -> Value:
            return plain(b) if spec.text == "torch.randn({s})" else made_for(b, spec.text, spec.longest)

        def make(b: Builder, x: Value) -> Value:
            return reduction(b, x, name)

        return Family(name, "reduce", make, start, spec.tiny, name in HELDOUT, weak=spec.weak)

    def named(function: Callable[[Builder, Value, str], Value], name: str) -> Callable[[Builder, Value], Value]:
        return lambda b, x: function(b, x, name)

    def norm(name: str, make: Callable[[Builder, Value, str], Value], start: Callable[[Builder], Value], **more: object) -> Family:
        return Family(name, "norm", named(make, name), start, heldout=name in HELDOUT, **more)  # type: ignore[arg-type]

    return [
        *(reduction_of(name, spec) for name, spec in REDUCTIONS.items()),
        *(Family(name, "reduce", named(arg, name), plain, tiny=True, weak=True) for name in ("argmax", "argmin")),
        Family("cumsum", "scan", named(scan, "cumsum"), plain, tiny=True),
        Family("reverse_cumsum", "scan", named(scan, "reverse_cumsum"), plain, heldout=True),
        Family("cummax", "scan", named(scan, "cummax"), plain),
        Family("cumprod", "scan", named(scan, "cumprod"), near_one, weak=True),
        norm("softmax", _softmax, wide, tiny=True),
        norm("log_softmax", _softmax, plain, tiny=True),
        norm("softmin", _softmax, wide),
        norm("layer_norm", layer_norm, varied, tiny=True, ranks=(2, 3)),
        norm("rms_norm", rms_norm, varied, tiny=True, ranks=(2, 3)),
        norm("l2_normalize", l2_normalize, varied),
        norm("standardize", standardize, varied),
        norm("center", center, varied, weak=True),
        norm("minmax_normalize", minmax_normalize, varied),
        norm("group_norm", group_norm, image, ranks=(4,)),
        norm("instance_norm", group_norm, image, ranks=(4,)),
    ]
