"""Element-wise operators: PyTorch's spellings, the CUDA expression, the same for one number, and where it is defined."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from dice.data.synthetic.builder import Builder, Check, Refused, Source
from dice.data.synthetic.evaluate import function
from dice.data.synthetic.graph import Map, Operand, Scalar, Value
from dice.data.synthetic.table.entry import Entry

INF = math.inf


@dataclass(frozen=True, slots=True)
class Elementwise:
    """One operator of {x}, and perhaps {y} and {z}. Texts are templates in these, {v} for {x} in `cuda`, and the scalars'
    keys.

    `forms`: PyTorch's spellings; `more`: those that the tiny scale, whose
    embedded checkpoints have not read them, does not have. `module`: its nn module.
    `scalars`: key to (argument name, low, high, step).
    `start`: an input that suits it, where a standard normal one does not; `other`: what makes {y}, if there is one;
    `param`: whether {y} can be a parameter. `further`: what makes {y} and {z}, by name, where they have the shape of {x};
    `alone`: they are a program's only further inputs.
    `jumps`: not continuous, so only for exact inputs. `exact`: no rounding, so a comparison may follow.
    `domain`: where it is defined; `range`: bounds of its results. `dtype`: type of the results; `takes`: types that it can
    be applied to. `check`: what is asked of the results on the probes (`dice.data.synthetic.builder.suits`).
    """

    cuda: str
    forms: tuple[str, ...]
    module: str = ""
    scalars: Mapping[str, tuple[str, float, float, float]] = field(default_factory=dict)
    more: tuple[str, ...] = ()
    start: Source | None = None
    other: Source | None = None
    param: bool = False
    further: Mapping[str, Source] = field(default_factory=dict)
    alone: bool = False
    jumps: bool = False
    exact: bool = False
    domain: tuple[float, float] = (-INF, INF)
    range: tuple[float, float] = (-INF, INF)
    dtype: str = "float"
    takes: tuple[str, ...] = ("float",)
    check: Check = "varies"

    def of(self, value: float, *scalars: float) -> float:
        """Its result for one number, where it has one tensor. Raises ValueError, OverflowError or ZeroDivisionError."""
        return function(self.cuda, ("v", *self.scalars))(value, *scalars)

    def form(self, b: Builder, scalars: Mapping[str, Scalar]) -> str:
        """One of its spellings in {0} and {1}."""
        form = b.draw.pick(self.forms if b.draw.tiny else (*self.forms, *self.more))
        return form.format(x="{0}", y="{1}", z="{2}", **{key: scalar.code for key, scalar in scalars.items()})


FOR_LARGE = ("scale", "divide", "affine", "neg", "log1p_abs", "sqrt_abs", "asinh", "relu", "abs", "clamp_min")
"""Operators that do not enlarge the rounding errors of large numbers."""
LARGE = 150.0


def unary(b: Builder, x: Value, name: str, spec: Elementwise) -> Value:
    """Append an operator of one tensor. Raises Refused where it would jump, blow up or do nothing."""
    refuse(x, name, spec)
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
        code = spec.form(b, scalars)
    out = b.map(name, code, Map(spec.cuda, {}, scalars), [x], spec.exact, spec.dtype, spec.check)
    out.low, out.high = spec.range
    return out


_ATTRIBUTES = {"gelu_tanh": "gelu", "hardtanh": "clip", "threshold": "cut"}
"""Names of the attributes that hold the modules, where not the operator's own name."""


def refuse(x: Value, name: str, spec: Elementwise) -> None:
    """Raises Refused where the operator is not defined on all of `x`, or jumps where its rounding decides."""
    inside = spec.domain[0] <= x.low <= x.high <= spec.domain[1]
    if x.dtype not in spec.takes or not inside or (spec.jumps and not x.exact):
        raise Refused(name)


def _suits(b: Builder, spec: Elementwise, x: Value, numbers: list[float]) -> bool:
    try:
        return b.suits(x.probes, [spec.of(value, *numbers) for value in x.probes], spec.check)
    except (ValueError, OverflowError, ZeroDivisionError):
        return False


def several(b: Builder, x: Value, name: str, spec: Elementwise) -> Value:
    """Append an operator of several tensors, of which the others are new. Raises Refused where it does not suit."""
    most = 2 if b.draw.tiny else 3
    if len(b.inputs) > 1 if spec.alone else spec.other and len(b.inputs) >= most:
        raise Refused(name)
    refuse(x, name, spec)
    if spec.other:
        new = [operand(b, x, spec.other, spec.param, name in ("add", "sub", "mul"))]
    else:
        new = [Operand(source.input(b, x.shape, title), "same") for title, source in spec.further.items()]
    scalars = {
        key: b.scalar(argument, b.draw.number(low, high, step))
        for key, (argument, low, high, step) in spec.scalars.items()
    }
    body = Map(spec.cuda, dict(zip("yz", new, strict=False)), scalars)
    inputs = [x, *(operand.value for operand in new)]
    return b.map(name, spec.form(b, scalars), body, inputs, spec.exact, spec.dtype, spec.check)


def operand(b: Builder, x: Value, source: Source, param: bool, linear: bool) -> Operand:
    """The second tensor of an operator on `x`: another input, a broadcast one, or a parameter.

    `linear`: with a single number for all elements, the result still varies as much as `x`.
    """
    rank, d = len(x.shape), b.draw
    kinds = ["same", "same"]
    if rank == 2:
        kinds += ["row"]
    if rank >= 2 and param and not (d.tiny and b.uses_arguments):
        kinds += ["last" if rank < 4 else "channel"] * 2
        kinds += ["one"] if linear and not d.tiny else []
    kind = d.pick(kinds)
    if kind == "same":
        return Operand(source.input(b, x.shape, "y", "y", "other", "rhs"), kind)
    if kind == "row":
        return Operand(source.input(b, (x.shape[0], 1), "y", "factor", "per_row"), kind)
    shape, sizes, name = (1,), (), "offset"
    if kind == "last":
        shape, sizes = x.shape[-1:], (b.argument("features", x.shape[-1]),)
        name = "w" if d.tiny else d.pick(("bias", "weight", "gamma"))
    if kind == "channel":
        ones = (1,) * (rank - 2)
        shape, sizes = (x.shape[1], *ones), (b.argument("channels", x.shape[1]), *map(repr, ones))
        name = "w" if d.tiny else "bias"
    return Operand(b.parameter(shape, name, source.text, source.probes, sizes=sizes), kind)


def entries(group: str, table: Mapping[str, Elementwise]) -> list[Entry]:
    """The entries of a table, which start from one tensor."""
    return [
        Entry(
            name,
            group,
            partial(several if spec.other or spec.further else unary, name=name, spec=spec),
            partial(Builder.any_input, source=spec.start),
            (1, 2, 3, 4, 5),
        )
        for name, spec in table.items()
    ]
