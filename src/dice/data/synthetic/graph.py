"""A program as a list of operator steps: what PyTorch computes, and how a CUDA kernel can compute the same.

Operators (`dice.data.synthetic.table`) append steps through a `builder.Builder`; `torch_writer` prints the
PyTorch program, the `cuda` package lowers the same steps to kernels. Texts are `str.format` templates; each field's
description names the keys.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

NORMAL = (-1.8, -1.1, -0.6, -0.2, 0.25, 0.7, 1.2, 1.9)
"""Quantiles that stand for a standard normal variable."""
OTHER_NORMAL = (0.7, -1.1, 1.9, 0.25, -0.6, 1.2, -0.2, -1.8)
"""The same in another order, for a second, independent one."""


@dataclass(eq=False, slots=True)
class Value:
    """A tensor. `code`: its Python text where that is fixed (`self.bias`); empty for inputs and results."""

    shape: tuple[int, ...]
    name: str
    code: str = ""
    dtype: str = "float"
    probes: tuple[float, ...] = NORMAL
    exact: bool = False
    """No rounding happened to it, so a comparison with a threshold is safe."""
    low: float = -math.inf
    high: float = math.inf
    """Bounds of its elements, as far as they are known."""

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
    """A further tensor that an operator reads. `access`: how it broadcasts: same, last, channel, row, one."""

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
    `over`: number of threads as host expression, where not one for each output element; then `at` is the output index
    that a thread writes to, if `when` is true.
    `transposes`: (rows, columns) size keys when it is a plain matrix transpose, which has a tiled form.
    `conv`: for convolutions, the texts of the form with weights in shared memory.
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
    over: str = ""
    at: str = "{i}"
    when: str = ""


@dataclass(frozen=True, slots=True)
class ConvTile:
    """Texts of the shared-memory form of a convolution, where a block computes one (image, output channel).

    `weights`: floats of one output channel, as C expression; `lines`: {v} for output pixel {p} of block {image},
    {channel}, reading the weights from {cache}.
    """

    weights: str
    n_weights: int
    pixels: str
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
    """Row-wise work on [rows / inner, R, inner].

    `mode`: `row` (one value per row), `element` (a value per element) or `total` (the mean of the rows' values). Keys of
    texts: v, i, j, row, R, names of passes, operands, scalars.
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
    at: str = ""
    """Index of element {j} of {row} where rows are not laid out as above."""
    row_lines: tuple[str, ...] = ()
    """Statements at the start of a row (e.g. its label)."""


@dataclass(frozen=True, slots=True)
class Arg:
    """Index of the largest (`better` is >) or smallest (<) element of each row; sizes as in Rows."""

    better: str
    sizes: dict[str, str]
    alloc: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Scan:
    """Running reduction along R of [rows / inner, R, inner]. `how`: sum, prod, max or min. `reverse`: from the end."""

    how: str
    sizes: dict[str, str]
    length: int
    reverse: bool = False


@dataclass(frozen=True, slots=True)
class Total:
    """One number from a whole tensor: `term` of every element summed, then `finish` in {s} and {n}."""

    term: str
    finish: str
    linear: bool
    """Whether `finish` is linear in {s}, so that atomics can add partial sums."""
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
    a_t: bool = False
    b_t: bool = False
    batch: bool = False
    bias: Value | None = None


Body = Map | Element | Rows | Arg | Scan | Total | Contract


@dataclass(frozen=True, slots=True)
class Step:
    """One operator. `code`: Python expression with {0}, {1}, ... for `inputs`; parameters are plain text in it."""

    family: str
    code: str
    inputs: tuple[Value, ...]
    out: Value
    body: Body


@dataclass(slots=True)
class Input:
    """One tensor of get_inputs(). `text` has {s} for its sizes, {t} for these as a tuple, {s1} for its statistics' sizes.

    `dims`: Python texts of the sizes. `statistics`: the shape with ones where rows are alike.
    """

    value: Value
    text: str
    dims: tuple[str, ...]
    statistics: tuple[int, ...] = ()


Where = Literal["both", "model", "new"]


@dataclass(slots=True)
class Init:
    """A statement of __init__, in Model, in ModelNew or in both; statements that make parameters are in both."""

    text: str
    where: Where = "both"


@dataclass(slots=True)
class Program:
    """A whole program. Made by a Builder."""

    level: int
    anchor: str
    """The family around which it was drawn."""
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
