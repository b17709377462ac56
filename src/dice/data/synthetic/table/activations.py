"""Activations."""

from __future__ import annotations

from dice.data.synthetic.builder import Builder, Refused
from dice.data.synthetic.graph import Map, Operand, Value
from dice.data.synthetic.table.elementwise import Elementwise
from dice.data.synthetic.table.entry import Entry, Special
from dice.data.synthetic.table.sources import INF


def prelu(b: Builder, x: Value) -> Value:
    """A leaky slope that is a parameter: one number, or one for each channel."""
    if x.dtype != "float":
        raise Refused("prelu")
    count, access = 1, "one"
    if len(x.shape) > 1 and b.draw.chance(0.4):
        count, access = x.shape[1], "last" if len(x.shape) == 2 else "channel"
    given = "" if count == 1 else b.argument("num_parameters", count)
    shape = (count, *(1,) * (len(x.shape) - 2)) if access == "channel" else (count,)
    weight = Value(shape, "weight", f"{b.module('prelu', f'nn.PReLU({given})')}.weight", probes=(0.25,) * 8)
    code = weight.code.removesuffix(".weight") + "({0})"
    body = Map("{v} > 0.0f ? {v} : {w} * {v}", {"w": Operand(weight, access)})
    return b.map("prelu", code, body, [x])


_SLOPE = {"a": ("negative_slope", 0.01, 0.35, 0.01)}
_ALPHA = {"a": ("alpha", 0.3, 1.8, 0.05)}
_LAMBDA = {"a": ("lambd", 0.1, 0.8, 0.05)}

ACTIVATIONS: dict[str, Elementwise] = {
    "relu": Elementwise(
        "fmaxf({v}, 0.0f)", ("torch.relu({x})", "F.relu({x})", "{x}.relu()", "torch.clamp({x}, min=0.0)"), "nn.ReLU()",
        exact=True, range=(0.0, INF),
    ),
    "leaky_relu": Elementwise(
        "{v} > 0.0f ? {v} : {v} * {a}",
        ("F.leaky_relu({x}, {a})", "F.leaky_relu({x}, negative_slope={a})", "torch.where({x} > 0, {x}, {x} * {a})"),
        "nn.LeakyReLU({a})", _SLOPE,
    ),
    "elu": Elementwise(
        "{v} > 0.0f ? {v} : {a} * (expf({v}) - 1.0f)", ("F.elu({x}, {a})", "F.elu({x}, alpha={a})"), "nn.ELU({a})",
        _ALPHA,
    ),
    "selu": Elementwise(
        "1.0507009873554805f * ({v} > 0.0f ? {v} : 1.6732632423543772f * (expf({v}) - 1.0f))",
        ("torch.selu({x})", "F.selu({x})"), "nn.SELU()", more=("F.selu({x}, inplace=False)",),
    ),
    "celu": Elementwise(
        "fmaxf({v}, 0.0f) + fminf(0.0f, {a} * (expf({v} / {a}) - 1.0f))",
        ("F.celu({x}, {a})", "F.celu({x}, alpha={a})"), "nn.CELU({a})", _ALPHA,
    ),
    "gelu": Elementwise("0.5f * {v} * (1.0f + erff({v} * 0.7071067811865476f))", ("F.gelu({x})",), "nn.GELU()"),
    "gelu_tanh": Elementwise(
        "0.5f * {v} * (1.0f + tanhf(0.7978845608028654f * ({v} + 0.044715f * {v} * {v} * {v})))",
        ('F.gelu({x}, approximate="tanh")',), 'nn.GELU(approximate="tanh")',
    ),
    "quick_gelu": Elementwise("{v} / (1.0f + expf(-1.702f * {v}))", ("{x} * torch.sigmoid(1.702 * {x})",)),
    "silu": Elementwise(
        "{v} / (1.0f + expf(-{v}))", ("F.silu({x})", "{x} * torch.sigmoid({x})"), "nn.SiLU()",
        more=("{x}.sigmoid() * {x}",),
    ),
    "mish": Elementwise(
        "{v} * tanhf(log1pf(expf({v})))", ("F.mish({x})", "{x} * torch.tanh(F.softplus({x}))"), "nn.Mish()",
    ),
    "softplus": Elementwise(
        "{v} > 20.0f ? {v} : log1pf(expf({v}))", ("F.softplus({x})",), "nn.Softplus()", range=(0.001, INF),
    ),
    "softsign": Elementwise(
        "{v} / (1.0f + fabsf({v}))", ("F.softsign({x})", "{x} / (1.0 + torch.abs({x}))"), "nn.Softsign()",
        range=(-1.0, 1.0),
    ),
    "tanh": Elementwise(
        "tanhf({v})", ("torch.tanh({x})", "{x}.tanh()"), "nn.Tanh()", range=(-1.0, 1.0), more=("F.tanh({x})",),
    ),
    "sigmoid": Elementwise(
        "1.0f / (1.0f + expf(-{v}))", ("torch.sigmoid({x})", "{x}.sigmoid()"), "nn.Sigmoid()", range=(0.001, 1.0),
        more=("F.sigmoid({x})",),
    ),
    "hardswish": Elementwise(
        "{v} * fminf(fmaxf({v} + 3.0f, 0.0f), 6.0f) / 6.0f", ("F.hardswish({x})", "{x} * F.relu6({x} + 3.0) / 6.0"),
        "nn.Hardswish()",
    ),
    "hardsigmoid": Elementwise(
        "fminf(fmaxf({v} / 6.0f + 0.5f, 0.0f), 1.0f)", ("F.hardsigmoid({x})",), "nn.Hardsigmoid()", range=(0.0, 1.0),
    ),
    "hardtanh": Elementwise(
        "fminf(fmaxf({v}, {a}), {b})",
        ("F.hardtanh({x}, {a}, {b})", "torch.clamp({x}, {a}, {b})", "{x}.clamp(min={a}, max={b})"),
        "nn.Hardtanh({a}, {b})", {"a": ("min_val", -1.2, -0.1, 0.1), "b": ("max_val", 0.3, 1.4, 0.1)}, exact=True,
        more=("torch.clip({x}, min={a}, max={b})", "F.hardtanh({x}, min_val={a}, max_val={b})"),
    ),
    "relu6": Elementwise(
        "fminf(fmaxf({v}, 0.0f), 6.0f)", ("F.relu6({x})",), "nn.ReLU6()", exact=True, range=(0.0, 6.0),
    ),
    "softshrink": Elementwise(
        "{v} > {a} ? {v} - {a} : ({v} < -{a} ? {v} + {a} : 0.0f)", ("F.softshrink({x}, {a})",), "nn.Softshrink({a})",
        _LAMBDA,
    ),
    "hardshrink": Elementwise(
        "fabsf({v}) > {a} ? {v} : 0.0f",
        ("F.hardshrink({x}, {a})", "torch.where(torch.abs({x}) > {a}, {x}, torch.zeros_like({x}))"),
        "nn.Hardshrink({a})", {"a": ("lambd", 0.3, 1.1, 0.05)}, jumps=True,
    ),
    "threshold": Elementwise(
        "{v} > {a} ? {v} : {b}", ("F.threshold({x}, {a}, {b})",), "nn.Threshold({a}, {b})",
        {"a": ("threshold", -0.4, 0.8, 0.1), "b": ("value", -2.0, 2.0, 0.25)}, jumps=True,
    ),
    "where_scale": Elementwise(
        "{v} > {a} ? {v} : {v} * {b}",
        ("torch.where({x} > {a}, {x}, {x} * {b})", "torch.where({x} > {a}, {x}, {b} * {x})"), "",
        {"a": ("threshold", -0.6, 0.6, 0.1), "b": ("factor", 0.1, 2.5, 0.1)}, jumps=True,
    ),
    "tanhshrink": Elementwise("{v} - tanhf({v})", ("F.tanhshrink({x})",), "nn.Tanhshrink()"),
    "logsigmoid": Elementwise(
        "fminf({v}, 0.0f) - log1pf(expf(-fabsf({v})))", ("F.logsigmoid({x})",), "nn.LogSigmoid()",
    ),
}  # fmt: skip
PRELU: dict[str, Entry] = {"prelu": Special("pointwise", prelu, lambda b: b.any_input(None), (1, 2, 3, 4, 5))}
