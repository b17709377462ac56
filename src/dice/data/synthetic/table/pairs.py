"""Element-wise operators of two or three tensors."""

from __future__ import annotations

from functools import partial

from dice.data.synthetic.builder import Source
from dice.data.synthetic.graph import OTHER_NORMAL
from dice.data.synthetic.table import sources
from dice.data.synthetic.table.elementwise import Elementwise
from dice.data.synthetic.table.functions import SIGNS
from dice.data.synthetic.table.sources import INF, uniform

With = partial(Elementwise, other=sources.OTHER_SOURCE, param=True)
Pair = partial(Elementwise, other=sources.OTHER_SOURCE)
_Test = partial(Pair, jumps=True, exact=True, check="steps", dtype="bool")
_Logic = partial(_Test, start=sources.COUNTS, other=sources.OTHER_COUNTS, domain=(0, INF))
_Bits = partial(
    Elementwise,
    exact=True,
    check="steps",
    dtype="int64",
    takes=("int64",),
    start=sources.INTEGERS,
    other=sources.OTHER_INTEGERS,
)


Fused = partial(Elementwise, scalars={"a": ("value", 0.25, 2.0, 0.25)}, alone=True)
"""A tensor plus a scaled product or quotient of two others."""
_THIRD = Source("torch.randn({s})", OTHER_NORMAL[::-1])


def _fused(name: str) -> tuple[str, str]:
    return f"torch.{name}({{x}}, {{y}}, {{z}}, value={{a}})", f"{{x}}.{name}({{y}}, {{z}}, value={{a}})"


def _pair(name: str) -> tuple[str]:
    return (f"torch.{name}({{x}}, {{y}})",)


def _compared(name: str, sign: str) -> Elementwise:
    """A comparison of two tensors; of small whole numbers where it asks whether they are equal."""
    kind = _Logic if name in ("eq", "ne") else _Test
    return kind(f"{{v}} {sign} {{y}}", (*_pair(name), f"{{x}} {sign} {{y}}"))


PAIRS: dict[str, Elementwise] = {
    "add": With(
        "{v} + {y}", ("{x} + {y}", "torch.add({x}, {y})", "{x}.add({y})"), more=("torch.add({y}, {x})", "{y} + {x}"),
    ),
    "sub": With("{v} - {y}", ("{x} - {y}", "torch.sub({x}, {y})"), more=("torch.subtract({x}, {y})", "{x}.sub({y})")),
    "mul": With(
        "{v} * {y}", ("{x} * {y}", "torch.mul({x}, {y})", "{x}.mul({y})"),
        more=("torch.multiply({x}, {y})", "{y} * {x}"),
    ),
    "div": With(
        "{v} / {y}", ("{x} / {y}", "torch.div({x}, {y})"), other=sources.AWAY_FROM_ZERO,
        more=("torch.divide({x}, {y})", "torch.true_divide({x}, {y})"),
    ),
    "maximum": With("fmaxf({v}, {y})", ("torch.maximum({x}, {y})", "torch.max({x}, {y})")),
    "minimum": With("fminf({v}, {y})", ("torch.minimum({x}, {y})", "torch.min({x}, {y})")),
    "hypot": With(
        "sqrtf({v} * {v} + {y} * {y} + 0.01f)",
        ("torch.sqrt({x} * {x} + {y} * {y} + 0.01)", "({x}.pow(2) + {y}.pow(2) + 0.01).sqrt()"), param=False,
    ),
    "squared_difference": With(
        "({v} - {y}) * ({v} - {y})", ("({x} - {y}) ** 2", "torch.square({x} - {y})", "torch.pow({x} - {y}, 2)"),
    ),
    "absolute_difference": With("fabsf({v} - {y})", ("torch.abs({x} - {y})", "({x} - {y}).abs()")),
    "lerp": With(
        "{v} + {a} * ({y} - {v})", ("torch.lerp({x}, {y}, {a})", "{x} + {a} * ({y} - {x})"),
        scalars={"a": ("weight", 0.15, 0.85, 0.05)},
    ),
    "scaled_add": With(
        "{v} + {a} * {y}", ("torch.add({x}, {y}, alpha={a})", "{x} + {a} * {y}"),
        scalars={"a": ("alpha", -2.0, 2.5, 0.25)},
    ),
    "sigmoid_gate": With("{v} / (1.0f + expf(-{y}))", ("{x} * torch.sigmoid({y})", "torch.sigmoid({y}) * {x}")),
    "tanh_gate": With("{v} * tanhf({y})", ("{x} * torch.tanh({y})",)),
    "silu_mul": With("{v} / (1.0f + expf(-{v})) * {y}", ("F.silu({x}) * {y}",), param=False),
    "atan2": Pair("atan2f({v}, {y})", (*_pair("atan2"), *_pair("arctan2")), other=sources.AWAY_FROM_ZERO),
    "torch_hypot": Pair("hypotf({v}, {y})", _pair("hypot")),
    "logaddexp": Pair("fmaxf({v}, {y}) + log1pf(expf(-fabsf({v} - {y})))", _pair("logaddexp")),
    "copysign": Pair("copysignf({v}, {y})", _pair("copysign"), jumps=True),
    "fmax": Pair("fmaxf({v}, {y})", _pair("fmax")),
    "fmin": Pair("fminf({v}, {y})", _pair("fmin")),
    "xlogy": Pair("{v} * logf({y})", _pair("xlogy"), other=uniform(0.1, 3)),
    "pow_tensor": Pair(
        "powf({v}, {y})", (*_pair("pow"), "{x} ** {y}"), start=uniform(0, 2), domain=(0, INF),
        other=sources.AWAY_FROM_ZERO,
    ),
    "fmod_tensor": Pair("fmodf({v}, {y})", _pair("fmod"), other=sources.AWAY_FROM_ZERO, jumps=True),
    "remainder_tensor": Pair(
        "{v} - floorf({v} / {y}) * {y}", (*_pair("remainder"), "{x} % {y}"), other=sources.AWAY_FROM_ZERO, jumps=True,
    ),
    "floor_divide_tensor": Pair(
        "floorf({v} / {y})", _pair("floor_divide"), other=sources.AWAY_FROM_ZERO, jumps=True, check="steps",
    ),
    "heaviside": Pair(
        "{v} > 0.0f ? 1.0f : ({v} == 0.0f ? {y} : 0.0f)", _pair("heaviside"), start=sources.COUNTS, domain=(0, INF),
        jumps=True, check="steps",
    ),
    **{f"{name}_tensor": _compared(name, sign) for name, sign in SIGNS.items()},
    "isclose": _Logic("{v} == {y}", _pair("isclose")),
    "logical_and": _Logic("{v} != 0.0f && {y} != 0.0f", _pair("logical_and")),
    "logical_or": _Logic("{v} != 0.0f || {y} != 0.0f", _pair("logical_or")),
    "logical_xor": _Logic("({v} != 0.0f) != ({y} != 0.0f)", _pair("logical_xor")),
    "bitwise_and": _Bits("(int){v} & (int){y}", (*_pair("bitwise_and"), "{x} & {y}")),
    "bitwise_or": _Bits("(int){v} | (int){y}", (*_pair("bitwise_or"), "{x} | {y}")),
    "bitwise_xor": _Bits("(int){v} ^ (int){y}", (*_pair("bitwise_xor"), "{x} ^ {y}")),
    "masked_fill": Elementwise(
        "{y} ? {a} : {v}", ("{x}.masked_fill({y}, {a})", "torch.masked_fill({x}, {y}, {a})"),
        scalars={"a": ("fill_value", -3, 3, 0.5)}, further={"mask": sources.TRUTHS},
    ),
    "addcmul": Fused(
        "{v} + {a} * {y} * {z}", _fused("addcmul"),
        further={"tensor1": _THIRD, "tensor2": sources.OTHER_SOURCE},
    ),
    "addcdiv": Fused(
        "{v} + {a} * {y} / {z}", _fused("addcdiv"),
        further={"tensor1": _THIRD, "tensor2": sources.AWAY_FROM_ZERO},
    ),
}  # fmt: skip
