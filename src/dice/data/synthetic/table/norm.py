"""Normalisations as layers write them, and elements divided by what their row amounts to."""

from __future__ import annotations

from collections.abc import Callable

from dice.data.synthetic.builder import Builder, Refused
from dice.data.synthetic.families.layout import ROW_STATISTICS, axes_of, axis_text, layout, made_for
from dice.data.synthetic.families.norm import mean_var, module_affine
from dice.data.synthetic.families.registry import Family
from dice.data.synthetic.graph import Pass, Rows, Value
from dice.data.synthetic.table.index import shape_of_rank

_SQUARES = Pass("sum", "sum", "{v} * {v}")
_SIZES = Pass("sum", "sum", "fabsf({v})")
DIVISORS: dict[str, tuple[Pass, str, tuple[str, ...]]] = {
    "over_norm": (
        _SQUARES,
        "{v} / sqrtf({sum})",
        ("{0} / torch.norm({0}, p=2, dim={d}, keepdim=True)", "{0} / {0}.norm(dim={d}, keepdim=True)"),
    ),
    "over_rms": (
        _SQUARES,
        "{v} / sqrtf({sum} / {R} + EPSf)",
        ("{0} / torch.sqrt(torch.mean({0} ** 2, dim={d}, keepdim=True) + EPS)",),
    ),
    "over_mean_size": (
        _SIZES,
        "{v} / ({sum} / {R} + EPSf)",
        ("{0} / (torch.mean(torch.abs({0}), dim={d}, keepdim=True) + EPS)",),
    ),
    "over_total_size": (_SIZES, "{v} / {sum}", ("{0} / torch.sum(torch.abs({0}), dim={d}, keepdim=True)",)),
    "over_largest": (
        Pass("peak", "max", "fabsf({v})"),
        "{v} / {peak}",
        ("{0} / torch.amax(torch.abs({0}), dim={d}, keepdim=True)",),
    ),
}
"""What a row is reduced to, the element then, and the program; EPS: a small number that is drawn."""
FACTORS = {"over_norm", "over_total_size"}
"""Results that are small for long rows: programs multiply them by a number, so that they stand above the tolerance."""


def divided(b: Builder, x: Value, name: str) -> Value:
    """Append operator `name` of DIVISORS."""
    axes = axes_of(b, len(x.shape))
    sizes, length, n_rows, _ = layout(x.shape, axes)
    if x.dtype != "float" or length < 4:
        raise Refused(name)
    one, value, forms = DIVISORS[name]
    small = repr(b.draw.pick((1e-5, 1e-6, 1e-3, 0.1)))
    code, value = b.draw.pick(forms).replace("EPS", small), value.replace("EPS", small)
    if name in FACTORS:
        factor = repr(float(max(2, round(length ** (0.5 if name == "over_norm" else 1.0)))))
        code, value = f"{code} * {factor}", f"{value} * {factor}f"
    code = code.replace("{d}", axis_text(b, axes, len(x.shape)))
    return b.step(name, code, Rows((one,), value, "element", sizes, length, n_rows), [x])


def _layer(b: Builder, x: Value, title: str) -> tuple[str, float]:
    """The code that makes a layer for the channels of `x`, without its last bracket, and its epsilon."""
    eps = b.draw.pick((1e-5, 1e-5, 1e-5, 1e-3))
    keyword = "num_features=" if b.draw.chance(0.3) else ""
    given = f"{keyword}{b.argument('num_features', x.shape[1])}"
    return f"nn.{title}{max(len(x.shape) - 2, 1)}d({given}" + ("" if eps == 1e-5 else f", eps={eps!r}"), eps


def batch_norm(b: Builder, x: Value, name: str) -> Value:
    """Batch normalisation in training: by the statistics of the batch."""
    channels = x.shape[1]
    if x.dtype != "float" or x.numel // channels < 8:
        raise Refused(name)
    made, eps = _layer(b, x, "BatchNorm")
    attribute = b.draw.pick(("bn", "norm", "batch_norm"))
    layer, weight, bias = module_affine(b, attribute, f"{made})", (channels,), initialised=b.draw.chance(0.5))
    sizes = {"channels": "{x}.size(1)", "R": "{x}.numel() / {channels}", "rows": "{channels}"}
    at = "{j} * {channels} + {row}"
    if len(x.shape) > 2:
        sizes = {"hw": " * ".join(f"{{x}}.size({axis})" for axis in range(2, len(x.shape))), **sizes}
        at = "({j} / {hw} * {channels} + {row}) * {hw} + {j} % {hw}"
    value = "({v} - {mean}) * {scale} * {w}[{row}] + {c}[{row}]"
    operands = {"w": weight, "c": bias}
    body = Rows(mean_var(eps), value, "element", sizes, x.numel // channels, channels, operands=operands, at=at)
    return b.step(name, f"{layer}({{0}})", body, [x])


def instance_norm(b: Builder, x: Value, name: str) -> Value:
    """Instance normalisation as the layer has it: without weights."""
    axes = tuple(range(2, len(x.shape)))
    sizes, length, n_rows, _ = layout(x.shape, axes)
    if x.dtype != "float" or length < 8:
        raise Refused(name)
    made, eps = _layer(b, x, "InstanceNorm")
    layer = b.module(b.draw.pick(("inorm", "norm", "instance_norm")), f"{made})", stateful=False)
    body = Rows(mean_var(eps), "({v} - {mean}) * {scale}", "element", sizes, length, n_rows)
    return b.step(name, f"{layer}({{0}})", body, [x])


def layer_norm(b: Builder, x: Value, name: str) -> Value:
    """Layer normalisation over the last dimensions, with the weights that a new layer has."""
    n_axes = b.draw.pick((1, len(x.shape) - 1))
    axes = tuple(range(len(x.shape) - n_axes, len(x.shape)))
    sizes, length, n_rows, _ = layout(x.shape, axes)
    if x.dtype != "float" or length < 8:
        raise Refused(name)
    shape = tuple(x.shape[axis] for axis in axes)
    keyword = "normalized_shape=" if b.draw.chance(0.3) else ""
    given = b.argument("normalized_shape", shape if n_axes > 1 else shape[0])
    attribute = b.draw.pick(("ln", "norm", "layer_norm"))
    layer, weight, bias = module_affine(b, attribute, f"nn.LayerNorm({keyword}{given})", shape, initialised=False)
    value = "({v} - {mean}) * {scale} * {w}[{j}] + {c}[{j}]"
    body = Rows(mean_var(1e-5), value, "element", sizes, length, n_rows, operands={"w": weight, "c": bias})
    return b.step(name, f"{layer}({{0}})", body, [x])


Make = Callable[[Builder, Value, str], Value]
LAYERS: dict[str, tuple[Make, tuple[int, ...], tuple[int, ...]]] = {
    "batch_norm_layer": (batch_norm, (2, 3, 4, 5), (1,)),
    "instance_norm_layer": (instance_norm, (3, 4, 5), (0, 1)),
    "layer_norm_layer": (layer_norm, (2, 3, 4), (0,)),
}
"""Name -> what appends it, ranks of its input, the dimensions along which its statistics vary."""


def families(held: frozenset[str]) -> list[Family]:
    """The tables as families; those in `held` are held out."""

    def rows(b: Builder) -> Value:
        return made_for(b, ROW_STATISTICS)

    def layer(name: str, make: Make, ranks: tuple[int, ...], varying: tuple[int, ...]) -> Family:
        def start(b: Builder) -> Value:
            shape = shape_of_rank(b.draw, b.draw.pick(ranks))
            statistics = tuple(size if axis in varying else 1 for axis, size in enumerate(shape))
            return b.input(shape, text=ROW_STATISTICS, statistics=statistics)

        return Family(name, "norm", lambda b, x: make(b, x, name), start, False, name in held, ranks)

    def over(name: str) -> Family:
        return Family(name, "norm", lambda b, x: divided(b, x, name), rows, True, name in held, (2, 3, 4))

    return [*(over(name) for name in DIVISORS), *(layer(name, *entry) for name, entry in LAYERS.items())]
