"""Element-wise operators: PyTorch's spellings, the CUDA expression, the same for one number, and where it is defined.

`UNARY` and `BINARY` add to the tables of `dice.data.synthetic.families.pointwise` and `binary`; their fields are
explained there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from statistics import NormalDist

from dice.data.synthetic.builder import Builder, Refused, Source
from dice.data.synthetic.families import binary, pointwise
from dice.data.synthetic.families.binary import POSITIVE_SOURCE, Binary
from dice.data.synthetic.families.pointwise import Unary
from dice.data.synthetic.families.registry import Family
from dice.data.synthetic.graph import OTHER_NORMAL, Map, Operand, Value

INF, NAN = math.inf, math.nan
SHARE = (0.06, 0.19, 0.31, 0.44, 0.56, 0.69, 0.81, 0.94)
"""Quantiles that stand for a uniform variable between 0 and 1."""


def uniform(low: float, high: float) -> Source:
    """Numbers spread evenly between two bounds."""
    text = "torch.rand({s})" if high - low == 1 else f"{high - low:g} * torch.rand({{s}})"
    shift = "" if low == 0 else f" + {low:g}" if low > 0 else f" - {-low:g}"
    return Source(text + shift, tuple(round(low + (high - low) * share, 4) for share in SHARE), low, high)


POSITIVE = Source("torch.rand({s}) + 0.1", tuple(0.1 + share for share in SHARE), 0.1, 1.1)
STEEP = Source("torch.rand({s}) * 4 + 0.05", tuple(0.05 + 4 * share for share in SHARE), 0.05, 4.05)
UNIT = uniform(-0.95, 0.95)
DEGREES = Source("torch.randn({s}) * 60", tuple(60 * q for q in (-1.8, -1.1, -0.6, -0.2, 0.25, 0.7, 1.2, 1.9)))
COUNTS = Source("torch.randint(0, 4, {t}).float()", (0, 1, 2, 3, 3, 2, 1, 0), 0, 3)
OTHER_COUNTS = Source("torch.randint(0, 4, {t}).float()", (0, 2, 2, 1, 3, 0, 1, 3), 0, 3)
INTEGERS = Source("torch.randint(0, 100, {t})", (3, 17, 29, 44, 58, 71, 86, 97), dtype="int64")
OTHER_INTEGERS = Source("torch.randint(0, 100, {t})", (90, 12, 33, 5, 64, 71, 8, 40), dtype="int64")
INFINITE = Source("1.0 / torch.randint(-2, 3, {t}).float()", (-0.5, -1, INF, 1, 0.5, INF, -1, 0.5))
BELOW = Source("torch.log(torch.randint(0, 4, {t}).float())", (-INF, 0, 0.69, 1.1, 1.1, -INF, 0, 0.69))
MISSING = Source("torch.sqrt(torch.randn({s}))", (NAN, NAN, 0.3, NAN, 0.5, 0.8, 1.1, 1.4))
TRUTHS = Source("torch.rand({s}) > 0.5", (1, 0, 0, 1, 0, 1, 0, 0), dtype="bool")

Entry = partial(Unary)
Jump = partial(Unary, jumps=True, exact=True, check="steps")
Test = partial(Unary, jumps=True, exact=True, check="steps", dtype="bool")
"""A comparison: true or false for each element."""


def _both(name: str) -> tuple[str, str]:
    """The spellings as a function and as a method."""
    return f"torch.{name}({{x}})", f"{{x}}.{name}()"


def _compared(name: str, sign: str) -> Unary:
    """A comparison with a number."""
    cuda, forms = f"{{v}} {sign} {{a}}", (f"torch.{name}({{x}}, {{a}})", f"{{x}} {sign} {{a}}")
    compare = {"gt": lambda x, a: x > a, "ge": lambda x, a: x >= a, "lt": lambda x, a: x < a, "le": lambda x, a: x <= a,
               "eq": lambda x, a: x == a, "ne": lambda x, a: x != a}[name]  # fmt: skip
    equal = name in ("eq", "ne")
    scalars = {"a": ("value", 1.0, 2.0, 1.0) if equal else ("threshold", -0.6, 0.8, 0.1)}
    return Test(cuda, compare, forms, scalars=scalars, start=COUNTS if equal else None)


UNARY: dict[str, Unary] = {
    "log": Entry("logf({v})", math.log, _both("log"), domain=(1e-3, INF), start=POSITIVE),
    "log2": Entry("log2f({v})", math.log2, _both("log2"), domain=(1e-3, INF), start=POSITIVE),
    "log10": Entry("log10f({v})", math.log10, _both("log10"), domain=(1e-3, INF), start=STEEP),
    "log1p": Entry("log1pf({v})", math.log1p, _both("log1p"), domain=(-0.99, INF), start=uniform(0, 2)),
    "expm1": Entry("expm1f({v})", math.expm1, _both("expm1")),
    "exp2": Entry("exp2f({v})", math.exp2, _both("exp2"), range=(1e-3, INF)),
    "sqrt": Entry("sqrtf({v})", math.sqrt, _both("sqrt"), domain=(0, INF), range=(0, INF), start=uniform(0, 2)),
    "reciprocal_sqrt": Entry(
        "rsqrtf({v})", lambda x: x**-0.5, _both("rsqrt"), domain=(0.01, INF), range=(1e-3, INF), start=POSITIVE
    ),
    "reciprocal": Entry(
        "1.0f / {v}", lambda x: 1 / x, (*_both("reciprocal"), "1.0 / {x}"), domain=(0.05, INF), start=POSITIVE
    ),
    "sinh": Entry("sinhf({v})", math.sinh, _both("sinh")),
    "cosh": Entry("coshf({v})", math.cosh, _both("cosh"), range=(1, INF)),
    "tan": Entry("tanf({v})", math.tan, _both("tan"), domain=(-1.45, 1.45), start=uniform(-1.2, 1.2)),
    "asin": Entry("asinf({v})", math.asin, ("torch.asin({x})", "torch.arcsin({x})"), domain=(-1, 1), start=UNIT),
    "acos": Entry("acosf({v})", math.acos, ("torch.acos({x})", "torch.arccos({x})"), domain=(-1, 1), start=UNIT),
    "atanh": Entry("atanhf({v})", math.atanh, ("torch.atanh({x})",), domain=(-0.97, 0.97), start=UNIT),
    "acosh": Entry("acoshf({v})", math.acosh, ("torch.acosh({x})",), domain=(1, INF), start=uniform(1, 5)),
    "erfc": Entry("erfcf({v})", math.erfc, ("torch.erfc({x})", "torch.special.erfc({x})"), range=(0, 2)),
    "erfinv": Entry(
        "erfinvf({v})", lambda x: NormalDist().inv_cdf((x + 1) / 2) * math.sqrt(0.5), _both("erfinv"),
        domain=(-0.97, 0.97), start=UNIT,
    ),
    "lgamma": Entry("lgammaf({v})", math.lgamma, _both("lgamma"), domain=(0.05, INF), start=STEEP),
    "logit": Entry(
        "logf({v} / (1.0f - {v}))", lambda x: math.log(x / (1 - x)), ("torch.logit({x})", "torch.special.logit({x})"),
        domain=(0.01, 0.99), start=uniform(0.05, 0.95),
    ),
    "sinc": Entry(
        "{v} == 0.0f ? 1.0f : sinf(3.14159265f * {v}) / (3.14159265f * {v})",
        lambda x: math.sin(math.pi * x) / (math.pi * x) if x else 1.0, _both("sinc"),
    ),
    "deg2rad": Entry("{v} * 0.017453292519943295f", math.radians, _both("deg2rad"), start=DEGREES),
    "rad2deg": Entry(
        "{v} * 57.29577951308232f", math.degrees, _both("rad2deg"), start=Source("torch.randn({s}) * 0.3", UNIT.probes)
    ),
    "power": Entry(
        "powf({v}, {a})", lambda x, a: x**a, ("torch.pow({x}, {a})", "{x} ** {a}", "{x}.pow({a})"),
        scalars={"a": ("exponent", 0.5, 3.5, 0.5)}, domain=(0, INF), start=uniform(0, 2),
    ),
    "power_of": Entry(
        "powf({a}, {v})", lambda x, a: a**x, ("torch.pow({a}, {x})", "{a} ** {x}"),
        scalars={"a": ("base", 1.5, 3.0, 0.5)}, range=(1e-3, INF),
    ),
    "clip": Entry(
        "fminf(fmaxf({v}, {a}), {b})", lambda x, a, b: min(max(x, a), b),
        ("torch.clip({x}, {a}, {b})", "torch.clip({x}, min={a}, max={b})", "torch.clamp({x}, min={a}, max={b})"),
        scalars={"a": ("min_val", -1.2, -0.1, 0.1), "b": ("max_val", 0.3, 1.4, 0.1)}, exact=True,
    ),
    "floor": Jump("floorf({v})", math.floor, _both("floor")),
    "ceil": Jump("ceilf({v})", math.ceil, _both("ceil")),
    "round": Jump("rintf({v})", round, _both("round")),
    "trunc": Jump("truncf({v})", lambda x: math.trunc(x), (*_both("trunc"), "torch.fix({x})")),
    "frac": Entry("{v} - truncf({v})", lambda x: x - math.trunc(x), _both("frac"), jumps=True),
    "sign": Jump(
        "{v} > 0.0f ? 1.0f : ({v} < 0.0f ? -1.0f : 0.0f)", lambda x: (x > 0) - (x < 0), (*_both("sign"), "torch.sgn({x})")
    ),
    "remainder": Entry(
        "{v} - floorf({v} / {a}) * {a}", lambda x, a: x % a, ("torch.remainder({x}, {a})", "{x} % {a}"),
        scalars={"a": ("divisor", 0.5, 2.5, 0.25)}, jumps=True,
    ),
    "fmod": Entry(
        "fmodf({v}, {a})", math.fmod, ("torch.fmod({x}, {a})", "{x}.fmod({a})"),
        scalars={"a": ("divisor", 0.5, 2.5, 0.25)}, jumps=True,
    ),
    "floor_divide": Jump(
        "floorf({v} / {a})", lambda x, a: x // a,
        ("torch.floor_divide({x}, {a})", "{x} // {a}", 'torch.div({x}, {a}, rounding_mode="floor")'),
        scalars={"a": ("divisor", 0.25, 1.5, 0.25)},
    ),
    "nan_to_num": Entry(
        "isnan({v}) ? {a} : {v}", lambda x, a: a if math.isnan(x) else x,
        ("torch.nan_to_num({x}, nan={a})", "{x}.nan_to_num(nan={a})"), scalars={"a": ("nan", 0.5, 3.0, 0.5)},
        start=MISSING, check="steps",
    ),
    "isnan": Test("isnan({v})", lambda x: math.isnan(x), _both("isnan"), start=MISSING),
    "isinf": Test("isinf({v})", lambda x: math.isinf(x), _both("isinf"), start=INFINITE),
    "isposinf": Test(
        "isinf({v}) && {v} > 0.0f", lambda x: x == INF, ("torch.isposinf({x})",), start=INFINITE
    ),
    "isneginf": Test(
        "isinf({v}) && {v} < 0.0f", lambda x: x == -INF, ("torch.isneginf({x})",), start=BELOW
    ),
    "isfinite": Test("isfinite({v})", lambda x: math.isfinite(x), _both("isfinite"), start=INFINITE),
    "signbit": Test("{v} < 0.0f", lambda x: x < 0, ("torch.signbit({x})",)),
    "logical_not": Test(
        "{v} == 0.0f", lambda x: x == 0, ("torch.logical_not({x})", "~{x}.bool()"), start=COUNTS, takes=("float", "bool")
    ),
    **{name: _compared(name, sign) for name, sign in (("gt", ">"), ("ge", ">="), ("lt", "<"), ("le", "<="))},
    **{name: _compared(name, sign) for name, sign in (("eq", "=="), ("ne", "!="))},
    "isin": Test(
        "{v} == {a} || {v} == {b}", lambda x, a, b: x in (a, b),
        ("torch.isin({x}, torch.tensor([{a}, {b}], device={x}.device))",),
        scalars={"a": ("first", 0.0, 1.0, 1.0), "b": ("second", 2.0, 3.0, 1.0)}, start=COUNTS,
    ),
    "to_float": Unary(
        "{v}", float, ("{x}.float()", "{x}.to(torch.float32)"), exact=True, takes=("bool", "int64"), start=TRUTHS,
        check="steps",
    ),
    "clone": Unary("{v}", float, (*_both("clone"), "torch.detach({x})"), "nn.Identity()", exact=True, check="any"),
}  # fmt: skip

_Pair = partial(Binary, param=False)
_Test = partial(Binary, param=False, jumps=True, exact=True, check="steps", dtype="bool")
_Logic = partial(_Test, start=COUNTS, other=OTHER_COUNTS)
_Bits = partial(
    Binary, param=False, exact=True, check="steps", dtype="int64", takes="int64", start=INTEGERS, other=OTHER_INTEGERS
)


def _pair(name: str) -> tuple[str]:
    return (f"torch.{name}({{x}}, {{y}})",)


BINARY: dict[str, Binary] = {
    "atan2": _Pair("atan2f({v}, {y})", math.atan2, (*_pair("atan2"), *_pair("arctan2")), positive=True),
    "torch_hypot": _Pair("hypotf({v}, {y})", math.hypot, _pair("hypot")),
    "logaddexp": _Pair(
        "fmaxf({v}, {y}) + log1pf(expf(-fabsf({v} - {y})))", lambda x, y: math.log(math.exp(x) + math.exp(y)),
        _pair("logaddexp"),
    ),
    "copysign": _Pair("copysignf({v}, {y})", math.copysign, _pair("copysign"), jumps=True),
    "fmax": _Pair("fmaxf({v}, {y})", max, _pair("fmax")),
    "fmin": _Pair("fminf({v}, {y})", min, _pair("fmin")),
    "xlogy": _Pair("{v} * logf({y})", lambda x, y: x * math.log(y), _pair("xlogy"), other=uniform(0.1, 3)),
    "pow_tensor": _Pair(
        "powf({v}, {y})", pow, (*_pair("pow"), "{x} ** {y}"), start=uniform(0, 2), other=POSITIVE_SOURCE
    ),
    "fmod_tensor": _Pair("fmodf({v}, {y})", math.fmod, _pair("fmod"), positive=True, jumps=True),
    "remainder_tensor": _Pair(
        "{v} - floorf({v} / {y}) * {y}", lambda x, y: x % y, (*_pair("remainder"), "{x} % {y}"), positive=True, jumps=True
    ),
    "floor_divide_tensor": _Pair(
        "floorf({v} / {y})", lambda x, y: x // y, _pair("floor_divide"), positive=True, jumps=True, check="steps"
    ),
    "heaviside": _Pair(
        "{v} > 0.0f ? 1.0f : ({v} == 0.0f ? {y} : 0.0f)", lambda x, y: y if x == 0 else float(x > 0), _pair("heaviside"),
        start=COUNTS, jumps=True, check="steps",
    ),
    "gt_tensor": _Test("{v} > {y}", lambda x, y: x > y, (*_pair("gt"), "{x} > {y}")),
    "ge_tensor": _Test("{v} >= {y}", lambda x, y: x >= y, (*_pair("ge"), "{x} >= {y}")),
    "lt_tensor": _Test("{v} < {y}", lambda x, y: x < y, (*_pair("lt"), "{x} < {y}")),
    "le_tensor": _Test("{v} <= {y}", lambda x, y: x <= y, (*_pair("le"), "{x} <= {y}")),
    "eq_tensor": _Logic("{v} == {y}", lambda x, y: x == y, (*_pair("eq"), "{x} == {y}")),
    "ne_tensor": _Logic("{v} != {y}", lambda x, y: x != y, (*_pair("ne"), "{x} != {y}")),
    "isclose": _Logic("{v} == {y}", lambda x, y: x == y, _pair("isclose")),
    "logical_and": _Logic("{v} != 0.0f && {y} != 0.0f", lambda x, y: bool(x and y), _pair("logical_and")),
    "logical_or": _Logic("{v} != 0.0f || {y} != 0.0f", lambda x, y: bool(x or y), _pair("logical_or")),
    "logical_xor": _Logic("({v} != 0.0f) != ({y} != 0.0f)", lambda x, y: bool(x) != bool(y), _pair("logical_xor")),
    "bitwise_and": _Bits("(int){v} & (int){y}", lambda x, y: x & y, (*_pair("bitwise_and"), "{x} & {y}")),
    "bitwise_or": _Bits("(int){v} | (int){y}", lambda x, y: x | y, (*_pair("bitwise_or"), "{x} | {y}")),
    "bitwise_xor": _Bits("(int){v} ^ (int){y}", lambda x, y: x ^ y, (*_pair("bitwise_xor"), "{x} ^ {y}")),
}  # fmt: skip


SPELLINGS: dict[str, tuple[str, ...]] = {
    "relu": ("F.relu({x})",),
    "sigmoid": ("F.sigmoid({x})",),
    "tanh": ("F.tanh({x})",),
    "silu": ("{x}.sigmoid() * {x}",),
    "selu": ("F.selu({x}, inplace=False)",),
    "neg": ("torch.negative({x})",),
    "abs": ("torch.absolute({x})",),
    "square": ("{x}.square()", "{x}.pow(2)", "torch.pow({x}, 2.0)"),
    "scale": ("torch.multiply({x}, {a})", "{x}.mul({a})"),
    "shift": ("{x}.add({a})", "torch.subtract({x}, -{a})"),
    "divide": ("torch.divide({x}, {a})", "torch.true_divide({x}, {a})", "{x}.div({a})"),
    "hardtanh": ("torch.clip({x}, min={a}, max={b})", "F.hardtanh({x}, min_val={a}, max_val={b})"),
    "add": ("torch.add({y}, {x})", "{y} + {x}"),
    "sub": ("torch.subtract({x}, {y})", "{x}.sub({y})"),
    "mul": ("torch.multiply({x}, {y})", "{y} * {x}"),
    "div": ("torch.divide({x}, {y})", "torch.true_divide({x}, {y})"),
}
"""Operators of the first families -> further spellings."""


def _respelled() -> list[Family]:
    """First families with the further spellings."""
    made = []
    for name, forms in SPELLINGS.items():
        one, two = pointwise.TABLE.get(name), binary.TABLE.get(name)
        if one:
            made.append(pointwise.family(name, replace(one, forms=(*one.forms, *forms)), heldout=False))
        elif two:
            made.append(binary.family(name, replace(two, forms=(*two.forms, *forms)), heldout=False))
    return made


def prelu(b: Builder, x: Value) -> Value:
    """A leaky slope that is a parameter: one number, or one for each channel."""
    if x.dtype != "float":
        raise Refused("prelu")
    count, access = (
        (x.shape[1], "last" if len(x.shape) == 2 else "channel")
        if len(x.shape) > 1 and b.draw.chance(0.4)
        else (1, "one")
    )
    given = "" if count == 1 else b.argument("num_parameters", count)
    shape = (count, *(1,) * (len(x.shape) - 2)) if access == "channel" else (count,)
    weight = Value(shape, "weight", f"{b.module('prelu', f'nn.PReLU({given})')}.weight", probes=(0.25,) * 8)
    code = weight.code.removesuffix(".weight") + "({0})"
    body = Map("{v} > 0.0f ? {v} : {w} * {v}", {"w": Operand(weight, access)})
    return b.map("prelu", code, body, [x], lambda v, w: v if v > 0 else w * v)


_FUSED: dict[str, tuple[str, Callable[..., float], Source]] = {
    "addcmul": ("{v} + {a} * {y} * {z}", lambda v, y, z, a: v + a * y * z, Source("torch.randn({s})", OTHER_NORMAL)),
    "addcdiv": ("{v} + {a} * {y} / {z}", lambda v, y, z, a: v + a * y / z, POSITIVE_SOURCE),
}


def fused(b: Builder, x: Value, name: str) -> Value:
    """A tensor plus a scaled product or quotient of two others."""
    if x.dtype != "float" or len(b.inputs) > 1:
        raise Refused(name)
    cuda, reference, last = _FUSED[name]
    y, z = b.input(x.shape, "tensor1", probes=OTHER_NORMAL[::-1]), last.input(b, x.shape, "tensor2")
    a = b.scalar("value", b.draw.number(0.25, 2.0, 0.25))
    operands = {"y": Operand(y, "same"), "z": Operand(z, "same")}
    code = b.draw.pick(
        (f"torch.{name}({{0}}, {{1}}, {{2}}, value={a.code})", f"{{0}}.{name}({{1}}, {{2}}, value={a.code})")
    )
    return b.map(name, code, Map(cuda, operands, {"a": a}), [x, y, z], reference)


def families(held: frozenset[str]) -> list[Family]:
    """Both tables as families, and first families with further spellings; those in `held` are held out."""

    def start(b: Builder) -> Value:
        return b.input(b.draw.shape(b.draw.rank((1, 2, 3, 4))))

    def of_three(name: str) -> Family:
        return Family(name, "binary", lambda b, x: fused(b, x, name), start, True, name in held, (1, 2, 3, 4, 5))

    return [
        *_respelled(),
        Family("prelu", "pointwise", prelu, start, True, "prelu" in held, (1, 2, 3, 4, 5)),
        *map(of_three, _FUSED),
        *(pointwise.family(name, spec, name in held) for name, spec in UNARY.items()),
        *(binary.family(name, spec, name in held) for name, spec in BINARY.items()),
    ]
