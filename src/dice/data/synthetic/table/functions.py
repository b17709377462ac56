"""Functions of one number, arithmetic with a constant, and comparisons."""

from __future__ import annotations

from functools import partial

from dice.data.synthetic.builder import Source
from dice.data.synthetic.table import sources
from dice.data.synthetic.table.elementwise import Elementwise
from dice.data.synthetic.table.sources import INF, uniform

Jump = partial(Elementwise, jumps=True, exact=True, check="steps")
Test = partial(Elementwise, jumps=True, exact=True, check="steps", dtype="bool")
"""A comparison: true or false for each element."""


COMMON: dict[str, Elementwise] = {
    "clamp_min": Elementwise(
        "fmaxf({v}, {a})", ("torch.clamp({x}, min={a})", "torch.clamp_min({x}, {a})", "{x}.clamp(min={a})"), "",
        {"a": ("min_value", -0.8, 0.6, 0.05)}, exact=True,
    ),
    "clamp_max": Elementwise(
        "fminf({v}, {a})", ("torch.clamp({x}, max={a})", "torch.clamp_max({x}, {a})", "{x}.clamp(max={a})"), "",
        {"a": ("max_value", -0.6, 0.9, 0.05)}, exact=True,
    ),
    "log_cosh": Elementwise("logf(coshf({v}))", ("torch.log(torch.cosh({x}))",)),
    "squareplus": Elementwise(
        "0.5f * ({v} + sqrtf({v} * {v} + {a}))", ("0.5 * ({x} + torch.sqrt({x} * {x} + {a}))",), "",
        {"a": ("b", 0.5, 4.0, 0.25)},
    ),
    "exp": Elementwise("expf({v})", ("torch.exp({x})", "{x}.exp()"), range=(0.001, INF)),
    "exp_neg_abs": Elementwise(
        "expf(-{a} * fabsf({v}))", ("torch.exp(-{a} * torch.abs({x}))", "torch.exp(-{a} * {x}.abs())"), "",
        {"a": ("decay", 0.3, 2.0, 0.1)},
    ),
    "gaussian": Elementwise("expf(-{v} * {v})", ("torch.exp(-{x} * {x})", "torch.exp(-{x}.pow(2))"), range=(0.0, 1.0)),
    "log1p_abs": Elementwise("log1pf(fabsf({v}))", ("torch.log1p(torch.abs({x}))", "torch.log1p({x}.abs())")),
    "sqrt_abs": Elementwise(
        "sqrtf(fabsf({v}) + {a})", ("torch.sqrt(torch.abs({x}) + {a})", "({x}.abs() + {a}).sqrt()"), "",
        {"a": ("offset", 0.1, 1.0, 0.1)},
    ),
    "abs": Elementwise(
        "fabsf({v})", ("torch.abs({x})", "{x}.abs()"), exact=True, range=(0.0, INF), more=("torch.absolute({x})",),
    ),
    "neg": Elementwise("-{v}", ("-{x}", "torch.neg({x})"), exact=True, more=("torch.negative({x})",)),
    "square": Elementwise(
        "{v} * {v}", ("torch.square({x})", "{x} * {x}", "torch.pow({x}, 2)", "{x}**2"), range=(0.0, INF),
        more=("{x}.square()", "{x}.pow(2)", "torch.pow({x}, 2.0)"),
    ),
    "cube": Elementwise("{v} * {v} * {v}", ("torch.pow({x}, 3)", "{x} * {x} * {x}", "{x}**3")),
    "sin": Elementwise("sinf({v})", ("torch.sin({x})", "{x}.sin()"), range=(-1.0, 1.0)),
    "cos": Elementwise("cosf({v})", ("torch.cos({x})", "{x}.cos()"), range=(-1.0, 1.0)),
    "atan": Elementwise("atanf({v})", ("torch.atan({x})", "torch.arctan({x})")),
    "asinh": Elementwise("asinhf({v})", ("torch.asinh({x})",)),
    "erf": Elementwise("erff({v})", ("torch.erf({x})", "{x}.erf()"), range=(-1.0, 1.0)),
    "inverse_quadratic": Elementwise(
        "1.0f / ({a} + {v} * {v})", ("1.0 / ({a} + {x} * {x})", "torch.reciprocal({a} + {x} * {x})"), "",
        {"a": ("offset", 0.4, 1.2, 0.1)},
    ),
    "rsqrt": Elementwise(
        "rsqrtf({v} * {v} + {a})", ("torch.rsqrt({x} * {x} + {a})", "torch.rsqrt({x}.pow(2) + {a})"), "",
        {"a": ("eps", 0.2, 1.0, 0.1)},
    ),
    "scale": Elementwise(
        "{v} * {a}", ("{x} * {a}", "{a} * {x}", "torch.mul({x}, {a})"), "", {"a": ("scale", 0.25, 3.5, 0.25)},
        more=("torch.multiply({x}, {a})", "{x}.mul({a})"),
    ),
    "shift": Elementwise(
        "{v} + {a}", ("{x} + {a}", "torch.add({x}, {a})"), "", {"a": ("shift", -2.0, 2.0, 0.25)},
        more=("{x}.add({a})", "torch.subtract({x}, -{a})"),
    ),
    "affine": Elementwise(
        "{v} * {a} + {b}", ("{x} * {a} + {b}", "{a} * {x} + {b}"), "",
        {"a": ("scale", 0.2, 3.0, 0.2), "b": ("shift", -1.5, 1.5, 0.25)},
    ),
    "reversed_sub": Elementwise(
        "{a} - {v}", ("{a} - {x}", "torch.rsub({x}, {a})"), "", {"a": ("offset", 0.5, 3.0, 0.25)},
    ),
    "divide": Elementwise(
        "{v} / {a}", ("{x} / {a}", "torch.div({x}, {a})"), "", {"a": ("divisor", 0.3, 3.5, 0.2)},
        more=("torch.divide({x}, {a})", "torch.true_divide({x}, {a})", "{x}.div({a})"),
    ),
}  # fmt: skip
"""Functions of any number. A flaw puts one of these, or an activation, in the place of another, in this order: the embedded
checkpoints have read what it writes, so a new function belongs to FURTHER."""


def _both(name: str) -> tuple[str, str]:
    """The spellings as a function and as a method."""
    return f"torch.{name}({{x}})", f"{{x}}.{name}()"


SIGNS = {"gt": ">", "ge": ">=", "lt": "<", "le": "<=", "eq": "==", "ne": "!="}


def _compared(name: str, sign: str) -> Elementwise:
    """A comparison with a number."""
    equal = name in ("eq", "ne")
    scalars = {"a": ("value", 1.0, 2.0, 1.0) if equal else ("threshold", -0.6, 0.8, 0.1)}
    forms = (f"torch.{name}({{x}}, {{a}})", f"{{x}} {sign} {{a}}")
    return Test(f"{{v}} {sign} {{a}}", forms, scalars=scalars, start=sources.COUNTS if equal else None)


FURTHER: dict[str, Elementwise] = {
    "log": Elementwise("logf({v})", _both("log"), domain=(1e-3, INF), start=sources.POSITIVE),
    "log2": Elementwise("log2f({v})", _both("log2"), domain=(1e-3, INF), start=sources.POSITIVE),
    "log10": Elementwise("log10f({v})", _both("log10"), domain=(1e-3, INF), start=sources.STEEP),
    "log1p": Elementwise("log1pf({v})", _both("log1p"), domain=(-0.99, INF), start=uniform(0, 2)),
    "expm1": Elementwise("expm1f({v})", _both("expm1")),
    "exp2": Elementwise("exp2f({v})", _both("exp2"), range=(1e-3, INF)),
    "sqrt": Elementwise("sqrtf({v})", _both("sqrt"), domain=(0, INF), range=(0, INF), start=uniform(0, 2)),
    "reciprocal_sqrt": Elementwise(
        "rsqrtf({v})", _both("rsqrt"), domain=(0.01, INF), range=(1e-3, INF), start=sources.POSITIVE,
    ),
    "reciprocal": Elementwise(
        "1.0f / {v}", (*_both("reciprocal"), "1.0 / {x}"), domain=(0.05, INF), start=sources.POSITIVE,
    ),
    "sinh": Elementwise("sinhf({v})", _both("sinh")),
    "cosh": Elementwise("coshf({v})", _both("cosh"), range=(1, INF)),
    "tan": Elementwise("tanf({v})", _both("tan"), domain=(-1.45, 1.45), start=uniform(-1.2, 1.2)),
    "asin": Elementwise("asinf({v})", ("torch.asin({x})", "torch.arcsin({x})"), domain=(-1, 1), start=sources.UNIT),
    "acos": Elementwise("acosf({v})", ("torch.acos({x})", "torch.arccos({x})"), domain=(-1, 1), start=sources.UNIT),
    "atanh": Elementwise("atanhf({v})", ("torch.atanh({x})",), domain=(-0.97, 0.97), start=sources.UNIT),
    "acosh": Elementwise("acoshf({v})", ("torch.acosh({x})",), domain=(1, INF), start=uniform(1, 5)),
    "erfc": Elementwise("erfcf({v})", ("torch.erfc({x})", "torch.special.erfc({x})"), range=(0, 2)),
    "erfinv": Elementwise("erfinvf({v})", _both("erfinv"), domain=(-0.97, 0.97), start=sources.UNIT),
    "lgamma": Elementwise("lgammaf({v})", _both("lgamma"), domain=(0.05, INF), start=sources.STEEP),
    "logit": Elementwise(
        "logf({v} / (1.0f - {v}))", ("torch.logit({x})", "torch.special.logit({x})"), domain=(0.01, 0.99),
        start=uniform(0.05, 0.95),
    ),
    "sinc": Elementwise("{v} == 0.0f ? 1.0f : sinf(3.14159265f * {v}) / (3.14159265f * {v})", _both("sinc")),
    "deg2rad": Elementwise("{v} * 0.017453292519943295f", _both("deg2rad"), start=sources.DEGREES),
    "rad2deg": Elementwise(
        "{v} * 57.29577951308232f", _both("rad2deg"), start=Source("torch.randn({s}) * 0.3", sources.UNIT.probes),
    ),
    "power": Elementwise(
        "powf({v}, {a})", ("torch.pow({x}, {a})", "{x} ** {a}", "{x}.pow({a})"),
        scalars={"a": ("exponent", 0.5, 3.5, 0.5)}, domain=(0, INF), start=uniform(0, 2),
    ),
    "power_of": Elementwise(
        "powf({a}, {v})", ("torch.pow({a}, {x})", "{a} ** {x}"), scalars={"a": ("base", 1.5, 3.0, 0.5)},
        range=(1e-3, INF),
    ),
    "floor": Jump("floorf({v})", _both("floor")),
    "ceil": Jump("ceilf({v})", _both("ceil")),
    "round": Jump("rintf({v})", _both("round")),
    "trunc": Jump("truncf({v})", (*_both("trunc"), "torch.fix({x})")),
    "frac": Elementwise("{v} - truncf({v})", _both("frac"), jumps=True),
    "sign": Jump("{v} > 0.0f ? 1.0f : ({v} < 0.0f ? -1.0f : 0.0f)", (*_both("sign"), "torch.sgn({x})")),
    "remainder": Elementwise(
        "{v} - floorf({v} / {a}) * {a}", ("torch.remainder({x}, {a})", "{x} % {a}"),
        scalars={"a": ("divisor", 0.5, 2.5, 0.25)}, jumps=True,
    ),
    "fmod": Elementwise(
        "fmodf({v}, {a})", ("torch.fmod({x}, {a})", "{x}.fmod({a})"), scalars={"a": ("divisor", 0.5, 2.5, 0.25)},
        jumps=True,
    ),
    "floor_divide": Jump(
        "floorf({v} / {a})",
        ("torch.floor_divide({x}, {a})", "{x} // {a}", 'torch.div({x}, {a}, rounding_mode="floor")'),
        scalars={"a": ("divisor", 0.25, 1.5, 0.25)},
    ),
    "nan_to_num": Elementwise(
        "isnan({v}) ? {a} : {v}", ("torch.nan_to_num({x}, nan={a})", "{x}.nan_to_num(nan={a})"),
        scalars={"a": ("nan", 0.5, 3.0, 0.5)}, start=sources.MISSING, check="steps",
    ),
    "isnan": Test("isnan({v})", _both("isnan"), start=sources.MISSING),
    "isinf": Test("isinf({v})", _both("isinf"), start=sources.INFINITE),
    "isposinf": Test("isinf({v}) && {v} > 0.0f", ("torch.isposinf({x})",), start=sources.INFINITE),
    "isneginf": Test("isinf({v}) && {v} < 0.0f", ("torch.isneginf({x})",), start=sources.BELOW),
    "isfinite": Test("isfinite({v})", _both("isfinite"), start=sources.INFINITE),
    "signbit": Test("{v} < 0.0f", ("torch.signbit({x})",)),
    "logical_not": Test(
        "{v} == 0.0f", ("torch.logical_not({x})", "~{x}.bool()"), start=sources.COUNTS, takes=("float", "bool"),
    ),
    **{name: _compared(name, sign) for name, sign in SIGNS.items()},
    "isin": Test(
        "{v} == {a} || {v} == {b}", ("torch.isin({x}, torch.tensor([{a}, {b}], device={x}.device))",),
        scalars={"a": ("first", 0.0, 1.0, 1.0), "b": ("second", 2.0, 3.0, 1.0)}, start=sources.COUNTS,
    ),
    "to_float": Elementwise(
        "{v}", ("{x}.float()", "{x}.to(torch.float32)"), exact=True, takes=("bool", "int64"), start=sources.TRUTHS,
        check="steps",
    ),
    "clone": Elementwise("{v}", (*_both("clone"), "torch.detach({x})"), "nn.Identity()", exact=True, check="any"),
}  # fmt: skip
