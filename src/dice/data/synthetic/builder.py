"""Builds a program step by step and refuses operators that would make it degenerate.

Values carry `probes`: eight typical numbers, pushed through the scalar reference of every element-wise operator, so
that a program whose output saturates, blows up or ignores an operator is refused while it is built.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from dice.data.synthetic.draw import Draw
from dice.data.synthetic.evaluate import function
from dice.data.synthetic.graph import NORMAL, OTHER_NORMAL, Body, Init, Input, Map, Program, Scalar, Step, Value, Where


def free_name(base: str, taken: Callable[[str], bool]) -> str:
    """`base`, or with a number behind it, so that it is not taken."""
    name, number = base, 2
    while taken(name):
        name, number = f"{base}{number}", number + 1
    return name


class Refused(Exception):
    """The operator does not suit the program so far; another one is drawn."""


def moments(probes: Sequence[float]) -> tuple[float, float]:
    """Mean and standard deviation of the probes."""
    mean = sum(probes) / len(probes)
    return mean, math.sqrt(sum((probe - mean) ** 2 for probe in probes) / len(probes))


def rms(value: Value) -> float:
    """Root mean square of a value's probes."""
    return math.sqrt(sum(probe * probe for probe in value.probes) / len(value.probes))


def centred(mean: float, width: float) -> tuple[float, ...]:
    """Probes of a bell-shaped value with this mean and standard deviation."""
    return tuple(mean + width * probe for probe in NORMAL)


def distinct(values: Sequence[float]) -> int:
    """How many different values there are; what is not finite does not count."""
    return len({round(value / 0.04) for value in values if math.isfinite(value)})


def effective(before: Sequence[float], after: Sequence[float], values: int = 5, changed: int = 3) -> bool:
    """Whether an element-wise operator behaves well on the probes and changes them enough for a check to see.

    `values`: how many different results it must have; `changed`: how many must differ from what they were.
    """
    if not all(math.isfinite(value) and abs(value) < 60 for value in after):
        return False
    if max(after) - min(after) < 0.4 or distinct(after) < values:
        return False
    if sum(abs(a - b) > 0.06 + 0.02 * abs(b) for a, b in zip(after, before, strict=True)) < changed:
        return False
    order = sorted(zip(before, after, strict=True))
    return all(abs(y1 - y0) <= 40 * (x1 - x0) + 20 for (x0, y0), (x1, y1) in itertools.pairwise(order))


Check = Literal["varies", "steps", "any"]
"""What is asked of an element-wise operator's results on the probes. `varies`: see `effective`; `steps`: finite, and not all
the same; `any`: nothing."""


@dataclass(frozen=True, slots=True)
class Source:
    """An input that suits an operator. `text`: as in Input; `low` and `high`: bounds of its elements."""

    text: str
    probes: tuple[float, ...] = NORMAL
    low: float = -math.inf
    high: float = math.inf
    dtype: str = "float"

    def input(self, b: Builder, shape: tuple[int, ...], *names: str) -> Value:
        """The tensor of get_inputs()."""
        value = b.input(shape, *names, text=self.text, probes=self.probes, dtype=self.dtype)
        value.low, value.high = self.low, self.high
        return value


_DIMS: dict[int, tuple[tuple[str, ...], ...]] = {
    0: ((),),
    1: (("size",), ("length",), ("features",)),
    2: (
        ("batch_size", "features"),
        ("rows", "columns"),
        ("rows", "features"),
        ("samples", "features"),
        ("rows", "classes"),
    ),
    3: (
        ("batch_size", "length", "features"),
        ("batch_size", "rows", "columns"),
        ("batch_size", "channels", "positions"),
        ("batch_size", "channels", "length"),
    ),
    4: (("batch_size", "channels", "height", "width"), ("batch_size", "classes", "height", "width")),
}
"""Names of a tensor's dimensions, by its rank; the first one where programs are not varied."""


class Builder:
    """Collects inputs, parameters and steps of one program."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.inputs: list[Input] = []
        self.arguments: dict[str, object] = {}
        self.init: list[Init] = []
        self.steps: list[Step] = []
        self.dims: dict[str, int] = {}
        self.attributes: set[str] = set()
        self.axis: tuple[int, ...] | None = None
        """Dimensions along which the input has statistics that vary from row to row."""
        # authors either pass sizes and hyper-parameters to the constructor or write them where they are used, as the
        # compact prompt of small models does (dice.evaluation.prompts.compact)
        varied = draw.config.varied_programs
        self.uses_arguments = not draw.tiny and draw.chance(0.6)
        self.modules = draw.chance(0.4)
        self.result_name = "x" if draw.plain else draw.pick(("x", "x", "h", "input", "data"))
        self.named_dims = draw.chance(0.8 if varied else 0.6)
        self.dim_names = {rank: draw.pick(names) if varied else names[0] for rank, names in _DIMS.items()}
        self.dim_names[5] = ("batch_size", "channels", "depth", "height", "width")

    def attempt(self, make: Callable[[Builder, Value], Value], x: Value) -> Value | None:
        """`make(self, x)`; None, with the program as before, when the operator is refused."""
        kept = (len(self.inputs), len(self.init), len(self.steps))
        tables = (dict(self.arguments), dict(self.dims), set(self.attributes))
        try:
            return make(self, x)
        except Refused:
            del self.inputs[kept[0] :], self.init[kept[1] :], self.steps[kept[2] :]
            self.arguments, self.dims, self.attributes = tables
            return None

    # names --------------------------------------------------------------------------------------------------------
    def attribute(self, base: str) -> str:
        """A free attribute name of the module."""
        name = free_name(base, self.attributes.__contains__)
        self.attributes.add(name)
        return name

    def _input_name(self, names: tuple[str, ...]) -> str:
        """A free name for an input, one of `names` where they are given and the author has habits."""
        usual = ("x", "x", "x", "input", "inputs", "inp", "data", "tensor")
        drawn = names[0] if names and self.draw.tiny else self.draw.pick(names or usual)
        own = (drawn,) if not self.draw.plain or (self.draw.tiny and names) else ()
        taken = {item.value.name for item in self.inputs}
        pool = (*own, "x", "y", "z", "w", "u", *(f"x{k}" for k in range(2, 20)))
        return next(name for name in pool if name not in taken)

    def argument(self, name: str, value: object) -> str:
        """Python text of a constructor argument with this value, or the value itself where the author inlines it."""
        if not self.uses_arguments:
            return repr(value)
        free = free_name(name, lambda name: self.arguments.get(name, value) != value)
        self.arguments[free] = value
        return free

    def scalar(self, name: str, value: float) -> Scalar:
        """A hyper-parameter: literal, or kept on the module."""
        if not self.uses_arguments or self.draw.chance(0.4):
            return Scalar(name, value, repr(value))
        if name in self.attributes and name not in self.arguments:
            name = f"{name}_value"  # the name belongs to a parameter
        return self._held(self.argument(name, value), value, "both")

    # tensors ------------------------------------------------------------------------------------------------------
    def input(
        self,
        shape: tuple[int, ...],
        *names: str,
        text: str = "torch.randn({s})",
        statistics: tuple[int, ...] = (),
        dtype: str = "float",
        probes: tuple[float, ...] = NORMAL,
        dims: tuple[str, ...] = (),
    ) -> Value:
        """A tensor of get_inputs(). `names`: those that authors give it, the plain one first; `dims`: names of its
        dimensions, for authors who give them at module level."""
        value = Value(shape, self._input_name(names), "", dtype, probes, True)
        named = dims or self.dim_names[len(shape)]
        texts = tuple(self._dim(name, size) for name, size in zip(named, shape, strict=True))
        self.inputs.append(Input(value, text, texts, statistics))
        return value

    def any_input(self, source: Source | None) -> Value:
        """An input of any shape; None: of no special kind."""
        shape = self.draw.shape(self.draw.rank((1, 2, 3, 4)))
        return source.input(self, shape) if source else self.input(shape)

    def _dim(self, name: str, size: int) -> str:
        """Python text of a size: a module-level name that means this size, or the number."""
        if not self.named_dims or size == 1 or self.dims.setdefault(name, size) != size:
            return repr(size)
        return name

    def parameter(
        self,
        shape: tuple[int, ...],
        base: str,
        text: str = "torch.randn({s})",
        probes: tuple[float, ...] = OTHER_NORMAL,
        sizes: tuple[str, ...] = (),
    ) -> Value:
        """A learned tensor made in __init__; `sizes` are Python texts of its shape where not plain numbers."""
        name = self.attribute(base)
        made = text.format(s=", ".join(sizes or map(repr, shape)))
        self.init.append(Init(f"self.{name} = nn.Parameter({made})"))
        return Value(shape, name, f"self.{name}", probes=probes)

    def module(self, base: str, made: str, stateful: bool = True) -> str:
        """An attribute that holds an nn module (`stateful`: with parameters); returns `self.name`."""
        name = self.attribute(self.draw.layer_name(base, made))
        self.init.append(Init(f"self.{name} = {made}", "both" if stateful else "model"))
        return f"self.{name}"

    def kept(self, text: str, name: str, value: float) -> Scalar:
        """A hyper-parameter that Model passes to a module as `text`; ModelNew has it as a literal or keeps it itself."""
        if text not in self.arguments:
            return Scalar(name, value, text)
        return self._held(text, value, "new")

    def drawn(self, name: str, low: float, high: float, step: float) -> Scalar:
        """A hyper-parameter between two bounds."""
        return self.scalar(name, self.draw.number(low, high, step))

    def _held(self, name: str, value: float, where: Where) -> Scalar:
        """A hyper-parameter that the constructor takes and keeps."""
        statement = Init(f"self.{name} = {name}", where)
        if statement not in self.init:
            self.init.append(statement)
            self.attributes.add(name)
        return Scalar(name, value, f"self.{name}")

    # steps --------------------------------------------------------------------------------------------------------
    def step(
        self,
        family: str,
        code: str,
        body: Body,
        inputs: Sequence[Value],
        shape: tuple[int, ...] | None = None,
        probes: tuple[float, ...] = NORMAL,
        dtype: str = "float",
        exact: bool = False,
    ) -> Value:
        """Append an operator and return its result."""
        out = Value(inputs[0].shape if shape is None else shape, self.result_name, "", dtype, probes, exact)
        self.steps.append(Step(family, code, tuple(inputs), out, body))
        return out

    def map(
        self,
        family: str,
        code: str,
        body: Map,
        inputs: Sequence[Value],
        exact: bool = False,
        dtype: str = "float",
        check: Check = "varies",
    ) -> Value:
        """Append an element-wise operator. Raises Refused when it would change these values too little or too much."""
        source = inputs[0]
        others = [operand.value.probes for operand in body.operands.values()]
        scalars = [scalar.value for scalar in body.scalars.values()]
        try:
            reference = function(body.expr, ("v", *body.operands, *body.scalars))
            probes = tuple(reference(*values, *scalars) for values in zip(source.probes, *others, strict=True))
        except (ValueError, OverflowError, ZeroDivisionError) as error:
            raise Refused(family) from error
        if not self.suits(source.probes, probes, check):
            raise Refused(family)
        return self.step(family, code, body, inputs, None, probes, dtype, exact and source.exact)

    def suits(self, before: Sequence[float], after: Sequence[float], check: Check) -> bool:
        """Whether an element-wise operator with these results on the probes may be appended."""
        if check == "any":
            return True
        if check == "steps":
            return all(map(math.isfinite, after)) and len(set(after)) > 1
        return effective(before, after) if self.draw.tiny else effective(before, after, min(5, distinct(before)), 2)

    @property
    def all_probes(self) -> Iterator[float]:
        """Typical elements of all results so far."""
        return (probe for step in self.steps for probe in step.out.probes)

    def result_is_dead(self) -> bool:
        """Whether an input or a step does not reach the result."""
        read = {value for step in self.steps for value in step.inputs}
        ends = [item.value for item in self.inputs] + [step.out for step in self.steps[:-1]]
        return any(value not in read for value in ends)

    def program(self, level: int, anchor: str) -> Program:
        """The finished program, drawn around the entry `anchor`."""
        return Program(level, anchor, self.inputs, self.arguments, self.init, self.steps, self.dims)
