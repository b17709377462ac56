"""Element-wise operators: PyTorch's spellings, the CUDA expression, the same for one number, and where it is defined."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from dice.data.synthetic.builder import Builder, Check, Source
from dice.data.synthetic.evaluate import function
from dice.data.synthetic.graph import Map, Operand, Scalar, Value
from dice.data.synthetic.table.entry import Entry, spelled
from dice.data.synthetic.table.sources import INF


@dataclass
class Elementwise(Entry, ranks=(1, 2, 3, 4, 5)):
    """One operator of {x}, and perhaps {y} and {z}. Texts are templates in these, {v} for {x} in `cuda`, and the scalars'
    keys.

    `forms`: PyTorch's spellings; `more`: further ones, which the tiny scale's embedded checkpoints have not read.
    `module`: its nn module.
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

    def __post_init__(self) -> None:
        self.group = "binary" if self.other or self.further else "pointwise"

    def of(self, value: float, *scalars: float) -> float:
        """Its result for one number, where it has one tensor. Raises ValueError, OverflowError or ZeroDivisionError."""
        return function(self.cuda, ("v", *self.scalars))(value, *scalars)

    def first(self, b: Builder) -> Value:
        return b.any_input(self.start)

    def apply(self, b: Builder, x: Value) -> Value:
        return self._of_one(b, x) if self.group == "pointwise" else self._of_several(b, x)

    def _of_one(self, b: Builder, x: Value) -> Value:
        self._refuse(x)
        # `v < 0` is false of -0.0, whose sign bit is set
        self.refuse_if(self.name == "signbit" and any(map(_is_negative_zero, b.all_probes)))
        self.refuse_if(self.name not in FOR_LARGE and self.check == "varies" and max(map(abs, x.probes)) > LARGE)
        numbers = {key: b.draw.number(low, high, step) for key, (_, low, high, step) in self.scalars.items()}
        self.refuse_if(not self._suits(b, x, list(numbers.values())))
        if self.module and b.modules and not (b.draw.tiny and self.scalars):
            texts = {key: b.argument(argument, numbers[key]) for key, (argument, *_) in self.scalars.items()}
            attribute = _ATTRIBUTES.get(self.name, self.name)
            code = b.module(attribute, self.module.format(**texts), stateful=False) + "({0})"
            scalars = {key: b.kept(texts[key], argument, numbers[key]) for key, (argument, *_) in self.scalars.items()}
        else:
            scalars = {key: b.scalar(argument, numbers[key]) for key, (argument, *_) in self.scalars.items()}
            code = self._form(b, scalars)
        out = self._map(b, code, [x], {}, scalars)
        out.low, out.high = self.range
        return out

    def _of_several(self, b: Builder, x: Value) -> Value:
        most = 2 if b.draw.tiny else 3
        self.refuse_if(len(b.inputs) > 1 if self.alone else self.other and len(b.inputs) >= most)
        self._refuse(x)
        if self.other:
            new = [operand(b, x, self.other, self.param, self.name in ("add", "sub", "mul"))]
        else:
            new = [Operand(source.input(b, x.shape, title), "same") for title, source in self.further.items()]
        scalars = {key: b.drawn(*spec) for key, spec in self.scalars.items()}
        inputs = [x, *(operand.value for operand in new)]
        return self._map(b, self._form(b, scalars), inputs, dict(zip("yz", new, strict=False)), scalars)

    def _map(
        self, b: Builder, code: str, inputs: list[Value], operands: dict[str, Operand], scalars: dict[str, Scalar]
    ) -> Value:
        body = Map(self.cuda, operands, scalars)
        return b.map(self.name, code, body, inputs, self.exact, self.dtype, self.check)

    def _form(self, b: Builder, scalars: Mapping[str, Scalar]) -> str:
        """One of its spellings in {0}, {1} and {2}."""
        return spelled(b.draw.pick(self.forms if b.draw.tiny else (*self.forms, *self.more)), scalars)

    def _refuse(self, x: Value) -> None:
        """Raises Refused where the operator is not defined on all of `x`, or jumps where its rounding decides."""
        inside = self.domain[0] <= x.low <= x.high <= self.domain[1]
        self.refuse_if(x.dtype not in self.takes or not inside or (self.jumps and not x.exact))

    def _suits(self, b: Builder, x: Value, numbers: list[float]) -> bool:
        try:
            return b.suits(x.probes, [self.of(value, *numbers) for value in x.probes], self.check)
        except (ValueError, OverflowError, ZeroDivisionError):
            return False


def _is_negative_zero(number: float) -> bool:
    return number == 0 and math.copysign(1.0, number) < 0


FOR_LARGE = ("scale", "divide", "affine", "neg", "log1p_abs", "sqrt_abs", "asinh", "relu", "abs", "clamp_min")
"""Operators that do not enlarge the rounding errors of large numbers."""
LARGE = 150.0


_ATTRIBUTES = {"gelu_tanh": "gelu", "hardtanh": "clip", "threshold": "cut"}
"""Names of the attributes that hold the modules, where not the operator's own name."""


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
