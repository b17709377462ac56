"""Element-wise operators of two or three tensors, with broadcasting and with parameters."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from dice.data.synthetic.builder import Builder, Check, Refused, Source
from dice.data.synthetic.families.registry import HELDOUT, Family
from dice.data.synthetic.graph import OTHER_NORMAL, Map, Operand, Value

POSITIVE = (0.6, 0.75, 0.9, 1.0, 1.1, 1.2, 1.35, 1.5)
"""Quantiles that stand for 0.5 + rand()."""


@dataclass(frozen=True, slots=True)
class Binary:
    """One operator of {x} and {y}. `positive`: {y} is kept away from zero. `param`: {y} can be a parameter.

    `start` and `other`: inputs that suit it, where standard normal ones do not. `jumps`, `exact`, `dtype`, `check`: as in
    `dice.data.synthetic.families.pointwise.Unary`; `takes`: the type that it can be applied to.
    """

    cuda: str
    reference: Callable[..., float]
    forms: tuple[str, ...]
    positive: bool = False
    param: bool = True
    scalars: tuple[tuple[str, str, float, float, float], ...] = ()
    tiny: bool = True
    start: Source | None = None
    other: Source | None = None
    jumps: bool = False
    exact: bool = False
    dtype: str = "float"
    takes: str = "float"
    check: Check = "varies"


TABLE: dict[str, Binary] = {
    "add": Binary("{v} + {y}", lambda x, y: x + y, ("{x} + {y}", "torch.add({x}, {y})", "{x}.add({y})")),
    "sub": Binary("{v} - {y}", lambda x, y: x - y, ("{x} - {y}", "torch.sub({x}, {y})")),
    "mul": Binary("{v} * {y}", lambda x, y: x * y, ("{x} * {y}", "torch.mul({x}, {y})", "{x}.mul({y})")),
    "div": Binary("{v} / {y}", lambda x, y: x / y, ("{x} / {y}", "torch.div({x}, {y})"), positive=True),
    "maximum": Binary("fmaxf({v}, {y})", max, ("torch.maximum({x}, {y})", "torch.max({x}, {y})")),
    "minimum": Binary("fminf({v}, {y})", min, ("torch.minimum({x}, {y})", "torch.min({x}, {y})")),
    "hypot": Binary(
        "sqrtf({v} * {v} + {y} * {y} + 0.01f)",
        lambda x, y: math.sqrt(x * x + y * y + 0.01),
        ("torch.sqrt({x} * {x} + {y} * {y} + 0.01)", "({x}.pow(2) + {y}.pow(2) + 0.01).sqrt()"),
        param=False,
    ),
    "squared_difference": Binary(
        "({v} - {y}) * ({v} - {y})",
        lambda x, y: (x - y) ** 2,
        ("({x} - {y}) ** 2", "torch.square({x} - {y})", "torch.pow({x} - {y}, 2)"),
    ),
    "absolute_difference": Binary(
        "fabsf({v} - {y})", lambda x, y: abs(x - y), ("torch.abs({x} - {y})", "({x} - {y}).abs()")
    ),
    "lerp": Binary(
        "{v} + {a} * ({y} - {v})",
        lambda x, y, a: x + a * (y - x),
        ("torch.lerp({x}, {y}, {a})", "{x} + {a} * ({y} - {x})"),
        scalars=(("a", "weight", 0.15, 0.85, 0.05),),
    ),
    "scaled_add": Binary(
        "{v} + {a} * {y}",
        lambda x, y, a: x + a * y,
        ("torch.add({x}, {y}, alpha={a})", "{x} + {a} * {y}"),
        scalars=(("a", "alpha", -2.0, 2.5, 0.25),),
    ),
    "sigmoid_gate": Binary(
        "{v} / (1.0f + expf(-{y}))",
        lambda x, y: x / (1 + math.exp(-y)),
        ("{x} * torch.sigmoid({y})", "torch.sigmoid({y}) * {x}"),
    ),
    "tanh_gate": Binary("{v} * tanhf({y})", lambda x, y: x * math.tanh(y), ("{x} * torch.tanh({y})",)),
    "silu_mul": Binary(
        "{v} / (1.0f + expf(-{v})) * {y}",
        lambda x, y: x / (1 + math.exp(-x)) * y,
        ("F.silu({x}) * {y}",),
        param=False,
    ),
}


POSITIVE_SOURCE = Source("0.5 + torch.rand({s})", POSITIVE, 0.5, 1.5)
_OTHER = Source("torch.randn({s})", OTHER_NORMAL)


def operand(b: Builder, x: Value, source: Source, param: bool, linear: bool) -> tuple[Value, Operand]:
    """The second tensor of an operator on `x`: another input, a broadcast one, or a parameter.

    `linear`: with a single number for all elements, the result still varies as much as `x`.
    """
    rank, d = len(x.shape), b.draw
    text, probes = source.text, source.probes
    kinds = ["same", "same"]
    if rank == 2:
        kinds += ["row"]
    if rank >= 2 and param and not (d.tiny and b.uses_arguments):
        kinds += ["last_param"] * 2 if rank < 4 else []
        kinds += ["channel_param"] * 2 if rank >= 4 else []
        kinds += ["one_param"] if linear and not d.tiny else []
    kind = d.pick(kinds)
    if kind == "same":
        value = source.input(b, x.shape, "y" if d.tiny else d.pick(("y", "y", "other", "rhs")))
        return value, Operand(value, "same")
    if kind == "row":
        value = source.input(b, (x.shape[0], 1), "y" if d.tiny else d.pick(("y", "factor", "per_row")))
        return value, Operand(value, "row")
    if kind == "one_param":
        value = b.parameter((1,), "offset", text, probes)
        return value, Operand(value, "one")
    if kind == "last_param":
        size = x.shape[-1]
        sizes = (b.argument("features", size),)
        value = b.parameter(
            (size,), d.pick(("bias", "weight", "gamma")) if not d.tiny else "w", text, probes, sizes=sizes
        )
        return value, Operand(value, "last")
    size = x.shape[1]
    inner = rank - 2
    sizes = (b.argument("channels", size), *("1",) * inner)
    value = b.parameter((size, *(1,) * inner), "bias" if not d.tiny else "w", text, probes, sizes=sizes)
    return value, Operand(value, "channel")


def binary(
    b: Builder, x: Value, name: str, other: tuple[Value, Operand] | None = None, spec: Binary | None = None
) -> Value:
    """Append operator `name`, of TABLE unless `spec` gives it, with a new second operand unless `other` gives one."""
    spec = spec or TABLE[name]
    if other is None and len(b.inputs) >= (2 if b.draw.tiny else 3):
        raise Refused(name)
    low = spec.start.low if spec.start and spec.takes == "float" else -math.inf
    if x.dtype != spec.takes or (spec.jumps and not x.exact) or x.low < low:
        raise Refused(name)
    source = spec.other or (POSITIVE_SOURCE if spec.positive else _OTHER)
    y, how = other or operand(b, x, source, spec.param, name in ("add", "sub", "mul"))
    scalars = {
        key: b.scalar(argument, b.draw.number(low, high, step)) for key, argument, low, high, step in spec.scalars
    }
    code = b.draw.pick(spec.forms).format(x="{0}", y="{1}", **{key: scalar.code for key, scalar in scalars.items()})
    body = Map(spec.cuda, {"y": how}, scalars)
    return b.map(name, code, body, [x, y], spec.reference, spec.exact, spec.dtype, spec.check)


def batch_norm(b: Builder, x: Value) -> Value:
    """Batch normalisation with given statistics (evaluation mode)."""
    channels = x.shape[1]
    size = (b.argument("channels", channels),)
    mean = b.parameter((channels,), "running_mean", "torch.randn({s})", buffer=True, sizes=size)
    var = b.parameter((channels,), "running_var", "0.5 + torch.rand({s})", POSITIVE, buffer=True, sizes=size)
    weight = b.parameter((channels,), "weight", "0.5 + torch.rand({s})", POSITIVE, sizes=size)
    bias = b.parameter((channels,), "bias", sizes=size)
    eps = b.draw.pick((1e-5, 1e-5, 1e-3))
    access = "last" if len(x.shape) == 2 else "channel"
    operands = {key: Operand(value, access) for key, value in (("m", mean), ("s", var), ("w", weight), ("c", bias))}
    inner = _as_channel(operands, x)
    given = f"{mean.code}, {var.code}, weight={weight.code}, bias={bias.code}"
    code = f"F.batch_norm({{0}}, {given}, training=False, eps={eps!r})"
    expression = f"({{v}} - {{m}}) * rsqrtf({{s}} + {eps!r}f) * {{w}} + {{c}}"

    def reference(v: float, m: float, s: float, w: float, c: float) -> float:
        return (v - m) / math.sqrt(s + eps) * w + c

    return b.map("batch_norm", code, Map(expression, inner, {}), [x], reference)


def _as_channel(operands: dict[str, Operand], x: Value) -> dict[str, Operand]:
    """Vectors over dimension 1 of `x`: their access counts the dimensions behind it from the operand's rank."""
    if len(x.shape) == 2:
        return operands
    inner = (1,) * (len(x.shape) - 2)
    for one in operands.values():
        one.value.shape = (x.shape[1], *inner)
    return operands


def masked_fill(b: Builder, x: Value) -> Value:
    """Elements where a boolean mask is true are replaced by a constant."""
    mask = b.input(x.shape, "mask", text="torch.rand({s}) > 0.5", dtype="bool")
    mask.probes = (1, 0, 0, 1, 0, 1, 0, 0)
    fill = b.scalar("fill_value", b.draw.number(-3, 3, 0.5))
    code = b.draw.pick(("{{0}}.masked_fill({{1}}, {a})", "torch.masked_fill({{0}}, {{1}}, {a})"))
    body = Map("{y} ? {a} : {v}", {"y": Operand(mask, "same")}, {"a": fill})
    return b.map("masked_fill", code.format(a=fill.code), body, [x, mask], lambda v, y, a: a if y else v)


def where_mask(b: Builder, x: Value) -> Value:
    """Elements of one of two tensors, chosen by a boolean mask."""
    if len(b.inputs) > 1:
        raise Refused("where_mask")
    other = b.input(x.shape, "y")
    mask = b.input(x.shape, "mask", text="torch.rand({s}) > 0.5", dtype="bool")
    mask.probes = (1, 0, 0, 1, 0, 1, 0, 0)
    body = Map("{m} ? {v} : {y}", {"m": Operand(mask, "same"), "y": Operand(other, "same")})
    return b.map("where_mask", "torch.where({1}, {0}, {2})", body, [x, mask, other], lambda v, m, y: v if m else y)


def families() -> list[Family]:
    """The table as families, and the operators with special operands."""

    def start(b: Builder) -> Value:
        return b.input(b.draw.shape(b.draw.rank((1, 2, 3, 4))))

    def image(b: Builder) -> Value:
        return b.input(b.draw.shape(b.draw.rank((2, 4))))

    return [
        *(family(name, spec, name in HELDOUT) for name, spec in TABLE.items()),
        Family("batch_norm", "norm", batch_norm, image, ranks=(2, 4)),
        Family("masked_fill", "binary", masked_fill, start, ranks=(1, 2, 3, 4, 5), tiny=True),
        Family("where_mask", "binary", where_mask, start, ranks=(1, 2, 3, 4, 5)),
    ]


def family(name: str, spec: Binary, heldout: bool) -> Family:
    """One entry as a family."""

    def start(b: Builder) -> Value:
        return b.any_input(spec.start)

    def make(b: Builder, x: Value) -> Value:
        return binary(b, x, name, spec=spec)

    return Family(name, "binary", make, start, spec.tiny, heldout, ranks=(1, 2, 3, 4, 5))
