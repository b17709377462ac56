"""Element-wise operators of one tensor: a table of PyTorch forms, CUDA expression and scalar reference."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from dice.data.synthetic.builder import Builder, Check, Refused, Source
from dice.data.synthetic.families.registry import HELDOUT, Family
from dice.data.synthetic.graph import Map, Scalar, Value


@dataclass(frozen=True, slots=True)
class Unary:
    """One operator. Forms and `cuda` are templates in {x} or {v} and the scalars' keys.

    `scalars`: key to (argument name, low, high, step). `jumps`: not continuous, so only for exact inputs.
    `exact`: no rounding, so a comparison may follow. `domain`: where it is defined; `range`: bounds of its results.
    `start`: an input that suits it, where a standard normal one does not. `dtype`: type of the results. `takes`: types
    that it can be applied to. `check`: what is asked of the results on the probes (`dice.data.synthetic.builder.suits`).
    """

    cuda: str
    reference: Callable[..., float]
    forms: tuple[str, ...]
    module: str = ""
    scalars: Mapping[str, tuple[str, float, float, float]] = field(default_factory=dict)
    jumps: bool = False
    exact: bool = False
    tiny: bool = True
    domain: tuple[float, float] = (-math.inf, math.inf)
    range: tuple[float, float] = (-math.inf, math.inf)
    start: Source | None = None
    dtype: str = "float"
    takes: tuple[str, ...] = ("float",)
    check: Check = "varies"


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def _softplus(x: float) -> float:
    return math.log1p(math.exp(x))


_SLOPE = {"a": ("negative_slope", 0.01, 0.35, 0.01)}
_ALPHA = {"a": ("alpha", 0.3, 1.8, 0.05)}
_LAMBDA = {"a": ("lambd", 0.1, 0.8, 0.05)}

TABLE: dict[str, Unary] = {
    "relu": Unary(
        "fmaxf({v}, 0.0f)",
        lambda x: max(x, 0.0),
        ("torch.relu({x})", "F.relu({x})", "{x}.relu()", "torch.clamp({x}, min=0.0)"),
        "nn.ReLU()",
        exact=True,
        range=(0.0, math.inf),
    ),
    "leaky_relu": Unary(
        "{v} > 0.0f ? {v} : {v} * {a}",
        lambda x, a: x if x > 0 else a * x,
        ("F.leaky_relu({x}, {a})", "F.leaky_relu({x}, negative_slope={a})", "torch.where({x} > 0, {x}, {x} * {a})"),
        "nn.LeakyReLU({a})",
        _SLOPE,
    ),
    "elu": Unary(
        "{v} > 0.0f ? {v} : {a} * (expf({v}) - 1.0f)",
        lambda x, a: x if x > 0 else a * math.expm1(x),
        ("F.elu({x}, {a})", "F.elu({x}, alpha={a})"),
        "nn.ELU({a})",
        _ALPHA,
    ),
    "selu": Unary(
        "1.0507009873554805f * ({v} > 0.0f ? {v} : 1.6732632423543772f * (expf({v}) - 1.0f))",
        lambda x: 1.0507009873554805 * (x if x > 0 else 1.6732632423543772 * math.expm1(x)),
        ("torch.selu({x})", "F.selu({x})"),
        "nn.SELU()",
    ),
    "celu": Unary(
        "fmaxf({v}, 0.0f) + fminf(0.0f, {a} * (expf({v} / {a}) - 1.0f))",
        lambda x, a: max(x, 0.0) + min(0.0, a * math.expm1(x / a)),
        ("F.celu({x}, {a})", "F.celu({x}, alpha={a})"),
        "nn.CELU({a})",
        _ALPHA,
    ),
    "gelu": Unary(
        "0.5f * {v} * (1.0f + erff({v} * 0.7071067811865476f))",
        lambda x: 0.5 * x * (1 + math.erf(x * math.sqrt(0.5))),
        ("F.gelu({x})",),
        "nn.GELU()",
    ),
    "gelu_tanh": Unary(
        "0.5f * {v} * (1.0f + tanhf(0.7978845608028654f * ({v} + 0.044715f * {v} * {v} * {v})))",
        lambda x: 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
        ('F.gelu({x}, approximate="tanh")',),
        'nn.GELU(approximate="tanh")',
    ),
    "quick_gelu": Unary(
        "{v} / (1.0f + expf(-1.702f * {v}))",
        lambda x: x * _sigmoid(1.702 * x),
        ("{x} * torch.sigmoid(1.702 * {x})",),
    ),
    "silu": Unary(
        "{v} / (1.0f + expf(-{v}))",
        lambda x: x * _sigmoid(x),
        ("F.silu({x})", "{x} * torch.sigmoid({x})"),
        "nn.SiLU()",
    ),
    "mish": Unary(
        "{v} * tanhf(log1pf(expf({v})))",
        lambda x: x * math.tanh(_softplus(x)),
        ("F.mish({x})", "{x} * torch.tanh(F.softplus({x}))"),
        "nn.Mish()",
    ),
    "softplus": Unary(
        "{v} > 20.0f ? {v} : log1pf(expf({v}))",
        _softplus,
        ("F.softplus({x})",),
        "nn.Softplus()",
        range=(0.001, math.inf),
    ),
    "softsign": Unary(
        "{v} / (1.0f + fabsf({v}))",
        lambda x: x / (1 + abs(x)),
        ("F.softsign({x})", "{x} / (1.0 + torch.abs({x}))"),
        "nn.Softsign()",
        range=(-1.0, 1.0),
    ),
    "tanh": Unary("tanhf({v})", math.tanh, ("torch.tanh({x})", "{x}.tanh()"), "nn.Tanh()", range=(-1.0, 1.0)),
    "sigmoid": Unary(
        "1.0f / (1.0f + expf(-{v}))",
        _sigmoid,
        ("torch.sigmoid({x})", "{x}.sigmoid()"),
        "nn.Sigmoid()",
        range=(0.001, 1.0),
    ),
    "hardswish": Unary(
        "{v} * fminf(fmaxf({v} + 3.0f, 0.0f), 6.0f) / 6.0f",
        lambda x: x * min(max(x + 3, 0), 6) / 6,
        ("F.hardswish({x})", "{x} * F.relu6({x} + 3.0) / 6.0"),
        "nn.Hardswish()",
    ),
    "hardsigmoid": Unary(
        "fminf(fmaxf({v} / 6.0f + 0.5f, 0.0f), 1.0f)",
        lambda x: min(max(x / 6 + 0.5, 0.0), 1.0),
        ("F.hardsigmoid({x})",),
        "nn.Hardsigmoid()",
        range=(0.0, 1.0),
    ),
    "hardtanh": Unary(
        "fminf(fmaxf({v}, {a}), {b})",
        lambda x, a, b: min(max(x, a), b),
        ("F.hardtanh({x}, {a}, {b})", "torch.clamp({x}, {a}, {b})", "{x}.clamp(min={a}, max={b})"),
        "nn.Hardtanh({a}, {b})",
        {"a": ("min_val", -1.2, -0.1, 0.1), "b": ("max_val", 0.3, 1.4, 0.1)},
        exact=True,
    ),
    "relu6": Unary(
        "fminf(fmaxf({v}, 0.0f), 6.0f)",
        lambda x: min(max(x, 0.0), 6.0),
        ("F.relu6({x})",),
        "nn.ReLU6()",
        exact=True,
        range=(0.0, 6.0),
    ),
    "clamp_min": Unary(
        "fmaxf({v}, {a})",
        lambda x, a: max(x, a),
        ("torch.clamp({x}, min={a})", "torch.clamp_min({x}, {a})", "{x}.clamp(min={a})"),
        "",
        {"a": ("min_value", -0.8, 0.6, 0.05)},
        exact=True,
    ),
    "clamp_max": Unary(
        "fminf({v}, {a})",
        lambda x, a: min(x, a),
        ("torch.clamp({x}, max={a})", "torch.clamp_max({x}, {a})", "{x}.clamp(max={a})"),
        "",
        {"a": ("max_value", -0.6, 0.9, 0.05)},
        exact=True,
    ),
    "softshrink": Unary(
        "{v} > {a} ? {v} - {a} : ({v} < -{a} ? {v} + {a} : 0.0f)",
        lambda x, a: x - a if x > a else x + a if x < -a else 0.0,
        ("F.softshrink({x}, {a})",),
        "nn.Softshrink({a})",
        _LAMBDA,
    ),
    "hardshrink": Unary(
        "fabsf({v}) > {a} ? {v} : 0.0f",
        lambda x, a: x if abs(x) > a else 0.0,
        ("F.hardshrink({x}, {a})", "torch.where(torch.abs({x}) > {a}, {x}, torch.zeros_like({x}))"),
        "nn.Hardshrink({a})",
        {"a": ("lambd", 0.3, 1.1, 0.05)},
        jumps=True,
    ),
    "threshold": Unary(
        "{v} > {a} ? {v} : {b}",
        lambda x, a, b: x if x > a else b,
        ("F.threshold({x}, {a}, {b})",),
        "nn.Threshold({a}, {b})",
        {"a": ("threshold", -0.4, 0.8, 0.1), "b": ("value", -2.0, 2.0, 0.25)},
        jumps=True,
    ),
    "where_scale": Unary(
        "{v} > {a} ? {v} : {v} * {b}",
        lambda x, a, b: x if x > a else b * x,
        ("torch.where({x} > {a}, {x}, {x} * {b})", "torch.where({x} > {a}, {x}, {b} * {x})"),
        "",
        {"a": ("threshold", -0.6, 0.6, 0.1), "b": ("factor", 0.1, 2.5, 0.1)},
        jumps=True,
    ),
    "tanhshrink": Unary("{v} - tanhf({v})", lambda x: x - math.tanh(x), ("F.tanhshrink({x})",), "nn.Tanhshrink()"),
    "logsigmoid": Unary(
        "fminf({v}, 0.0f) - log1pf(expf(-fabsf({v})))",
        lambda x: min(x, 0) - math.log1p(math.exp(-abs(x))),
        ("F.logsigmoid({x})",),
        "nn.LogSigmoid()",
    ),
    "log_cosh": Unary("logf(coshf({v}))", lambda x: math.log(math.cosh(x)), ("torch.log(torch.cosh({x}))",)),
    "squareplus": Unary(
        "0.5f * ({v} + sqrtf({v} * {v} + {a}))",
        lambda x, a: 0.5 * (x + math.sqrt(x * x + a)),
        ("0.5 * ({x} + torch.sqrt({x} * {x} + {a}))",),
        "",
        {"a": ("b", 0.5, 4.0, 0.25)},
    ),
    "exp": Unary("expf({v})", math.exp, ("torch.exp({x})", "{x}.exp()"), range=(0.001, math.inf)),
    "exp_neg_abs": Unary(
        "expf(-{a} * fabsf({v}))",
        lambda x, a: math.exp(-a * abs(x)),
        ("torch.exp(-{a} * torch.abs({x}))", "torch.exp(-{a} * {x}.abs())"),
        "",
        {"a": ("decay", 0.3, 2.0, 0.1)},
    ),
    "gaussian": Unary(
        "expf(-{v} * {v})",
        lambda x: math.exp(-x * x),
        ("torch.exp(-{x} * {x})", "torch.exp(-{x}.pow(2))"),
        range=(0.0, 1.0),
    ),
    "log1p_abs": Unary(
        "log1pf(fabsf({v}))", lambda x: math.log1p(abs(x)), ("torch.log1p(torch.abs({x}))", "torch.log1p({x}.abs())")
    ),
    "sqrt_abs": Unary(
        "sqrtf(fabsf({v}) + {a})",
        lambda x, a: math.sqrt(abs(x) + a),
        ("torch.sqrt(torch.abs({x}) + {a})", "({x}.abs() + {a}).sqrt()"),
        "",
        {"a": ("offset", 0.1, 1.0, 0.1)},
    ),
    "abs": Unary("fabsf({v})", math.fabs, ("torch.abs({x})", "{x}.abs()"), exact=True, range=(0.0, math.inf)),
    "neg": Unary("-{v}", lambda x: -x, ("-{x}", "torch.neg({x})"), exact=True),
    "square": Unary(
        "{v} * {v}",
        lambda x: x * x,
        ("torch.square({x})", "{x} * {x}", "torch.pow({x}, 2)", "{x}**2"),
        range=(0.0, math.inf),
    ),
    "cube": Unary("{v} * {v} * {v}", lambda x: x**3, ("torch.pow({x}, 3)", "{x} * {x} * {x}", "{x}**3")),
    "sin": Unary("sinf({v})", math.sin, ("torch.sin({x})", "{x}.sin()"), range=(-1.0, 1.0)),
    "cos": Unary("cosf({v})", math.cos, ("torch.cos({x})", "{x}.cos()"), range=(-1.0, 1.0)),
    "atan": Unary("atanf({v})", math.atan, ("torch.atan({x})", "torch.arctan({x})")),
    "asinh": Unary("asinhf({v})", math.asinh, ("torch.asinh({x})",)),
    "erf": Unary("erff({v})", math.erf, ("torch.erf({x})", "{x}.erf()"), range=(-1.0, 1.0)),
    "inverse_quadratic": Unary(
        "1.0f / ({a} + {v} * {v})",
        lambda x, a: 1 / (a + x * x),
        ("1.0 / ({a} + {x} * {x})", "torch.reciprocal({a} + {x} * {x})"),
        "",
        {"a": ("offset", 0.4, 1.2, 0.1)},
    ),
    "rsqrt": Unary(
        "rsqrtf({v} * {v} + {a})",
        lambda x, a: 1 / math.sqrt(x * x + a),
        ("torch.rsqrt({x} * {x} + {a})", "torch.rsqrt({x}.pow(2) + {a})"),
        "",
        {"a": ("eps", 0.2, 1.0, 0.1)},
    ),
    "scale": Unary(
        "{v} * {a}",
        lambda x, a: x * a,
        ("{x} * {a}", "{a} * {x}", "torch.mul({x}, {a})"),
        "",
        {"a": ("scale", 0.25, 3.5, 0.25)},
    ),
    "shift": Unary(
        "{v} + {a}",
        lambda x, a: x + a,
        ("{x} + {a}", "torch.add({x}, {a})"),
        "",
        {"a": ("shift", -2.0, 2.0, 0.25)},
    ),
    "affine": Unary(
        "{v} * {a} + {b}",
        lambda x, a, b: x * a + b,
        ("{x} * {a} + {b}", "{a} * {x} + {b}"),
        "",
        {"a": ("scale", 0.2, 3.0, 0.2), "b": ("shift", -1.5, 1.5, 0.25)},
    ),
    "reversed_sub": Unary(
        "{a} - {v}",
        lambda x, a: a - x,
        ("{a} - {x}", "torch.rsub({x}, {a})"),
        "",
        {"a": ("offset", 0.5, 3.0, 0.25)},
    ),
    "divide": Unary(
        "{v} / {a}",
        lambda x, a: x / a,
        ("{x} / {a}", "torch.div({x}, {a})"),
        "",
        {"a": ("divisor", 0.3, 3.5, 0.2)},
    ),
}


FOR_LARGE = ("scale", "divide", "affine", "neg", "log1p_abs", "sqrt_abs", "asinh", "relu", "abs", "clamp_min")
"""Operators that do not enlarge the rounding errors of large numbers."""
LARGE = 150.0


def unary(b: Builder, x: Value, name: str, spec: Unary | None = None) -> Value:
    """Append operator `name`, of TABLE unless `spec` gives it. Raises Refused where it would jump, blow up or do nothing."""
    spec = spec or TABLE[name]
    if x.dtype not in spec.takes or not spec.domain[0] <= x.low <= x.high <= spec.domain[1]:
        raise Refused(name)
    if spec.jumps and not x.exact:
        raise Refused(name)
    if name not in FOR_LARGE and spec.check == "varies" and max(map(abs, x.probes)) > LARGE:
        raise Refused(name)
    numbers = {key: b.draw.number(low, high, step) for key, (_, low, high, step) in spec.scalars.items()}
    if not _suits(b, spec, x, list(numbers.values())):
        raise Refused(name)
    scalars: dict[str, Scalar] = {}
    if spec.module and b.modules and not (b.draw.tiny and spec.scalars):
        texts = {key: b.argument(argument, numbers[key]) for key, (argument, *_) in spec.scalars.items()}
        code = b.module(_ATTRIBUTES.get(name, name), spec.module.format(**texts), stateful=False) + "({0})"
        for key, (argument, *_) in spec.scalars.items():
            scalars[key] = b.kept(texts[key], argument, numbers[key])
    else:
        scalars = {key: b.scalar(argument, numbers[key]) for key, (argument, *_) in spec.scalars.items()}
        code = b.draw.pick(spec.forms).format(x="{0}", **{key: scalar.code for key, scalar in scalars.items()})
    out = b.map(name, code, Map(spec.cuda, {}, scalars), [x], spec.reference, spec.exact, spec.dtype, spec.check)
    out.low, out.high = spec.range
    return out


def _suits(b: Builder, spec: Unary, x: Value, numbers: list[float]) -> bool:
    try:
        return b.suits(x.probes, [spec.reference(value, *numbers) for value in x.probes], spec.check)
    except (ValueError, OverflowError, ZeroDivisionError):
        return False


_ATTRIBUTES = {"gelu_tanh": "gelu", "hardtanh": "clip", "threshold": "cut"}
"""Names of the attributes that hold the modules, where not the operator's own name."""


def families() -> list[Family]:
    """The table as families; each starts from one plain tensor."""
    return [family(name, spec, name in HELDOUT) for name, spec in TABLE.items()]


def family(name: str, spec: Unary, heldout: bool) -> Family:
    """One entry as a family."""

    def start(b: Builder) -> Value:
        return b.any_input(spec.start)

    def make(b: Builder, x: Value) -> Value:
        return unary(b, x, name, spec)

    return Family(name, "pointwise", make, start, spec.tiny, heldout, ranks=(1, 2, 3, 4, 5))
