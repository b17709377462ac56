"""A program as a list of operator steps: what PyTorch computes and how a CUDA kernel may compute the same.

Families (`dice.data.synthetic.families`) append steps through a `Builder`. `write_model` prints the PyTorch program,
the `cuda` package lowers the same steps to kernels. Texts are `str.format` templates whose keys are named per field.

Values carry `probes`: eight typical numbers, pushed through the scalar reference of every element-wise operator, so
that a program whose output saturates, blows up or ignores an operator is refused while it is built.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from dice.data.synthetic.draw import Draw

NORMAL = (-1.8, -1.1, -0.6, -0.2, 0.25, 0.7, 1.2, 1.9)
"""Quantiles that stand for a standard normal variable."""
OTHER_NORMAL = (0.7, -1.1, 1.9, 0.25, -0.6, 1.2, -0.2, -1.8)
"""The same in another order, for a second, independent one."""


class Refused(Exception):
    """This operator does not suit what was built so far; another one is drawn."""


@dataclass(eq=False, slots=True)
class Value:
    """A tensor. `code`: how Python names it where that is fixed (`self.bias`); empty for inputs and results."""

    shape: tuple[int, ...]
    name: str
    code: str = ""
    dtype: str = "float"
    probes: tuple[float, ...] = NORMAL
    exact: bool = False
    """No rounding happened to it, so a comparison with a threshold is safe."""

    @property
    def numel(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class Scalar:
    """A hyper-parameter. `code`: its text in Python, a literal or `self.alpha`."""

    name: str
    value: float
    code: str

    @property
    def literal(self) -> bool:
        return not self.code.startswith("self.")


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor read beside the running value. `access`: how it broadcasts: same, last, channel, row, one."""

    value: Value
    access: str


@dataclass(frozen=True, slots=True)
class Map:
    """Element-wise. `expr` has {v}, the operands' keys and the scalars' keys."""

    expr: str
    operands: dict[str, Operand] = field(default_factory=dict)
    scalars: dict[str, Scalar] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Element:
    """One thread computes one output element. `lines` define {v} for output index {i}.

    `sizes`: C name to host expression in {x}, the operands' keys and earlier sizes. `alloc`: the same, for the output.
    `transposes`: (rows, columns) size keys when it is a plain matrix transpose, which has a tiled form.
    `conv`: what its form with weights in shared memory needs, for convolutions.
    """

    lines: tuple[str, ...]
    sizes: dict[str, str]
    alloc: tuple[str, ...]
    operands: dict[str, Value] = field(default_factory=dict)
    scalars: dict[str, Scalar] = field(default_factory=dict)
    transposes: tuple[str, str] | None = None
    conv: ConvTile | None = None
    like: str = "x"
    """Key of the tensor whose type and device the output takes."""


@dataclass(frozen=True, slots=True)
class ConvTile:
    """What the shared-memory form of a convolution needs: a block is one (image, output channel).

    `weights`: floats of one output channel, as C expression; `lines`: {v} for output pixel {p} of block {image},
    {channel}, reading the weights from {cache}.
    """

    key: str
    weights: str
    n_weights: int
    pixels: str
    channels: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pass:
    """One reduction over a row: `name` (a key of LOCAL_NAMES) collects `term` by `how`; `then` follows it."""

    name: str
    how: str
    term: str = "{v}"
    then: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rows:
    """Row-wise work on [rows / inner, R, inner]. `mode`: `row` (one value for each row), `element` (every element
    again) or `total` (mean of the rows' values). Keys of texts: v, i, j, row, R, the names of passes, operands, scalars.
    """

    passes: tuple[Pass, ...]
    value: str
    mode: str
    sizes: dict[str, str]
    """Must define rows and R; `inner` where the reduced dimension is not the last one."""
    length: int
    n_rows: int
    alloc: tuple[str, ...] = ()
    operands: dict[str, Value] = field(default_factory=dict)
    scalars: dict[str, Scalar] = field(default_factory=dict)
    row_lines: tuple[str, ...] = ()
    """Statements at the start of a row (e.g. its label)."""


@dataclass(frozen=True, slots=True)
class Arg:
    """Index of the largest (`better` is >) or smallest (<) element of each row; sizes as in Rows."""

    better: str
    sizes: dict[str, str]
    alloc: tuple[str, ...]
    length: int


@dataclass(frozen=True, slots=True)
class Scan:
    """Running sum or product along R of [rows / inner, R, inner]. `how`: sum, prod or max."""

    how: str
    sizes: dict[str, str]
    length: int
    n_rows: int
    reverse: bool = False


@dataclass(frozen=True, slots=True)
class Total:
    """One number from a whole tensor: `term` of every element summed, then `finish` in {s} and {n}."""

    term: str
    finish: str
    linear: bool
    """`finish` is linear in {s}, so that partial sums may be added with atomics."""
    operands: dict[str, Operand] = field(default_factory=dict)
    scalars: dict[str, Scalar] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Contract:
    """Matrix product out[m, n] = sum over k of A[m, k] B[k, n] (+ bias[n]), batched where `batch`.

    `a`: the primary value, stored [M, K] or, with `a_t`, [K, M]; `b`: stored [K, N] or, with `b_t`, [N, K].
    `sizes` define M, N, K (and batch count Z).
    """

    b: Value
    sizes: dict[str, str]
    alloc: tuple[str, ...]
    dims: tuple[int, int, int, int]
    """Z, M, N, K."""
    a_t: bool = False
    b_t: bool = False
    batch: bool = False
    bias: Value | None = None


Body = Map | Element | Rows | Arg | Scan | Total | Contract


@dataclass(frozen=True, slots=True)
class Step:
    """One operator. `code`: Python expression with {0}, {1}, ... for `inputs`; parameters are plain text in it."""

    family: str
    label: str
    code: str
    inputs: tuple[Value, ...]
    out: Value
    body: Body


@dataclass(slots=True)
class Input:
    """One tensor of get_inputs(). `text` has {s} for its shape and {s1} for the shape of its statistics.

    `dims`: Python texts of the sizes. `statistics`: the shape with ones where rows are alike.
    """

    value: Value
    text: str
    dims: tuple[str, ...]
    statistics: tuple[int, ...] = ()


@dataclass(slots=True)
class Init:
    """A statement of __init__, in Model, in ModelNew or in both (what makes parameters must be in both)."""

    text: str
    where: Literal["both", "model", "new"] = "both"


@dataclass(slots=True)
class Program:
    """What is computed. Made by a Builder."""

    level: int
    inputs: list[Input]
    arguments: dict[str, object]
    init: list[Init]
    steps: list[Step]
    dims: dict[str, int]
    """Sizes with a name at module level."""

    @property
    def families(self) -> tuple[str, ...]:
        return tuple(step.family for step in self.steps)

    @property
    def result(self) -> Value:
        return self.steps[-1].out


def moments(probes: Sequence[float]) -> tuple[float, float]:
    """Mean and standard deviation of the probes."""
    mean = sum(probes) / len(probes)
    return mean, math.sqrt(sum((probe - mean) ** 2 for probe in probes) / len(probes))


def centred(mean: float, width: float) -> tuple[float, ...]:
    """Probes of a bell-shaped value with this mean and standard deviation."""
    return tuple(mean + width * probe for probe in NORMAL)


def effective(before: Sequence[float], after: Sequence[float]) -> bool:
    """Whether an element-wise operator is well-behaved on the probes and makes a difference that a check can see."""
    if not all(math.isfinite(value) and abs(value) < 60 for value in after):
        return False
    if max(after) - min(after) < 0.4 or len({round(value / 0.04) for value in after}) < 5:
        return False
    if sum(abs(a - b) > 0.06 + 0.02 * abs(b) for a, b in zip(after, before, strict=True)) < 3:
        return False
    order = sorted(zip(before, after, strict=True))
    steps = zip(order, order[1:], strict=False)
    return all(abs(y1 - y0) <= 40 * (x1 - x0) + 20 for (x0, y0), (x1, y1) in steps)


_DIMS = {
    0: (),
    1: ("size",),
    2: ("batch_size", "features"),
    3: ("batch_size", "length", "features"),
    4: ("batch_size", "channels", "height", "width"),
}
"""What authors call the dimensions of a tensor."""


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
        """Dimensions for which the input was made (its statistics vary from row to row along them)."""
        # authors either give sizes and hyper-parameters to the constructor or write them down where they are used
        self.uses_arguments = draw.chance(0.35 if draw.tiny else 0.6)
        self.modules = draw.chance(0.4)
        self.result_name = "x" if draw.tiny else draw.pick(("x", "x", "h", "input", "data"))
        self.named_dims = draw.chance(0.6)

    def attempt(self, make: Callable[[Builder, Value], Value], x: Value) -> Value | None:
        """`make(self, x)`, or None with everything as it was when that is refused."""
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
        name, number = base, 2
        while name in self.attributes:
            name, number = f"{base}{number}", number + 1
        self.attributes.add(name)
        return name

    def input_name(self, *preferred: str) -> str:
        taken = {item.value.name for item in self.inputs}
        pool = (*preferred, "x", "y", "z", "w", "u", *(f"x{k}" for k in range(2, 20)))
        return next(name for name in pool if name not in taken)

    def argument(self, name: str, value: object) -> str:
        """Python text of a constructor argument with this value, or the value itself where the author inlines it."""
        if not self.uses_arguments:
            return repr(value)
        free, number = name, 2
        while free in self.arguments and self.arguments[free] != value:
            free, number = f"{name}{number}", number + 1
        self.arguments[free] = value
        return free

    def scalar(self, name: str, value: float) -> Scalar:
        """A hyper-parameter: literal, or kept on the module."""
        if not self.uses_arguments or self.draw.chance(0.4):
            return Scalar(name, value, repr(value))
        if name in self.attributes and name not in self.arguments:
            name = f"{name}_value"  # a parameter has the name
        argument = self.argument(name, value)
        statement = Init(f"self.{argument} = {argument}")
        if statement not in self.init:
            self.attributes.add(argument)
            self.init.append(statement)
        return Scalar(argument, value, f"self.{argument}")

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
        """A tensor of get_inputs(); `dims` name its dimensions at module level where the author does that."""
        preferred = names or (self.draw.pick(("x", "x", "x", "input", "inputs", "inp", "data", "tensor")),)
        if self.draw.tiny and not names:
            preferred = ("x",)
        value = Value(shape, self.input_name(*preferred), "", dtype, probes, True)
        named = dims or _DIMS[len(shape)]
        texts = tuple(self._dim(name, size) for name, size in zip(named, shape, strict=True))
        self.inputs.append(Input(value, text, texts, statistics))
        return value

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
        buffer: bool = False,
        sizes: tuple[str, ...] = (),
    ) -> Value:
        """A learned tensor made in __init__; `sizes` are Python texts of its shape where not plain numbers."""
        name = self.attribute(base)
        made = text.format(s=", ".join(sizes or map(repr, shape)))
        self.init.append(
            Init(f'self.register_buffer("{name}", {made})' if buffer else f"self.{name} = nn.Parameter({made})")
        )
        return Value(shape, name, f"self.{name}", probes=probes)

    def module(self, base: str, made: str, stateful: bool = True) -> str:
        """An attribute that holds an nn module (`stateful`: with parameters); returns `self.name`."""
        name = self.attribute(base)
        self.init.append(Init(f"self.{name} = {made}", "both" if stateful else "model"))
        return f"self.{name}"

    def kept(self, text: str, name: str, value: float) -> Scalar:
        """A hyper-parameter that Model hands to a module as `text`: a literal, or what ModelNew keeps itself."""
        if text not in self.arguments:
            return Scalar(name, value, text)
        statement = Init(f"self.{text} = {text}", "new")
        if statement not in self.init:
            self.init.append(statement)
            self.attributes.add(text)
        return Scalar(text, value, f"self.{text}")

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
        label: str = "",
        exact: bool = False,
    ) -> Value:
        """Append an operator and return its result."""
        out = Value(inputs[0].shape if shape is None else shape, self.result_name, "", dtype, probes, exact)
        self.steps.append(Step(family, label or family, code, tuple(inputs), out, body))
        return out

    def map(
        self,
        family: str,
        code: str,
        body: Map,
        inputs: Sequence[Value],
        reference: Callable[..., float],
        label: str = "",
        exact: bool = False,
    ) -> Value:
        """Append an element-wise operator. Raises Refused when it would do nothing or too much to these values."""
        source = inputs[0]
        others = [operand.value.probes for operand in body.operands.values()]
        scalars = [scalar.value for scalar in body.scalars.values()]
        try:
            probes = tuple(reference(*values, *scalars) for values in zip(source.probes, *others, strict=True))
        except (ValueError, OverflowError, ZeroDivisionError) as error:
            raise Refused(family) from error
        if not effective(source.probes, probes):
            raise Refused(family)
        return self.step(family, code, body, inputs, None, probes, "float", label, exact and source.exact)

    def result_is_dead(self) -> bool:
        """Whether an input or a step does not reach the result."""
        read = {value for step in self.steps for value in step.inputs}
        ends = [item.value for item in self.inputs] + [step.out for step in self.steps[:-1]]
        return any(value not in read for value in ends)

    def program(self, level: int) -> Program:
        """What was collected."""
        return Program(level, self.inputs, self.arguments, self.init, self.steps, self.dims)
