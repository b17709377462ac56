"""Operators of which each output element is computed from its index: the output's sizes and which elements each one reads."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from dice.data.synthetic.builder import Builder, Source, distinct
from dice.data.synthetic.draw import Draw
from dice.data.synthetic.graph import Element, Value
from dice.data.synthetic.table.entry import Entry

Shape = tuple[int, ...]
Numbers = dict[str, float]
MATRIX = {"H": "{x}.size(0)", "W": "{x}.size(1)"}
"""Sizes of a matrix."""
LARGEST = 2e7
"""Most elements of a result."""


@dataclass
class Index(Entry):
    """One operator. Texts are templates in {x}, {y}, {last} (the last dimension) and the keys of `sizes` and of `numbers`.

    `out`: host expressions of the output's sizes, of which `...` stands for all dimensions but the last, and nothing for
    the input's sizes. `lines` define {v} for output index {i}. `suits`: whether it can be applied to a shape. `numbers`:
    draws the parameters. `start`: the input, where a standard normal one does not suit; `begin`: makes it, where the shape
    is a special one. `other`: a second input, its sizes and its name. `over`, `at`, `when`, `transposes`: as in
    `dice.data.synthetic.graph.Element`. `dtype`: of the result, where it is not the input's. `blurs`: the results are sums
    of elements rather than elements. `probes`: of the result, where not the input's.
    """

    forms: tuple[str, ...]
    out: tuple[str, ...]
    lines: tuple[str, ...]
    ranks: tuple[int, ...] = (2,)
    sizes: Mapping[str, str] = field(default_factory=dict)
    suits: Callable[[Shape], bool] = lambda shape: True
    numbers: Callable[[Draw, Shape], Numbers] = lambda d, shape: {}
    modules: tuple[str, ...] = ()
    start: Source | None = None
    begin: Callable[[Builder], Value] | None = None
    other: tuple[Source, Callable[[Shape, Numbers], Shape], str] | None = None
    takes: str = "float"
    dtype: str = ""
    over: str = ""
    at: str = "{i}"
    when: str = ""
    transposes: tuple[str, str] | None = None
    exact_only: bool = False
    blurs: bool = False
    probes: tuple[float, ...] | None = None
    group: str = "move"

    def __post_init__(self) -> None:
        self.weak = self.takes != "float" or self.exact_only

    def first(self, b: Builder) -> Value:
        if self.begin:
            return self.begin(b)
        shapes = (shape_of_rank(b.draw, b.draw.pick(self.ranks)) for _ in range(21))
        shape = next(filter(self.suits, shapes), ())
        return self.start.input(b, shape) if self.start else b.input(shape)

    def apply(self, b: Builder, x: Value) -> Value:
        d = b.draw
        fits = len(x.shape) in self.ranks and self.suits(x.shape) and x.dtype == self.takes
        # elements that it selects by their order would often be the same ones
        alike = bool(self.when) and distinct(x.probes) < 5
        self.refuse_if(not fits or alike or (self.exact_only and not x.exact) or (self.other and len(b.inputs) > 1))
        numbers = {"last": len(x.shape) - 1, **self.numbers(d, x.shape)}
        inputs = [x, *self._other(b, x.shape, numbers)]
        sizes = {key: _filled(text, numbers) for key, text in self.sizes.items()}
        lead = dims(len(x.shape) - 1)
        texts = [part for text in self.out for part in (lead if text == "..." else (text,))] or [*dims(len(x.shape))]
        out = tuple(_filled(text, numbers) for text in texts)
        shape = evaluated(out, sizes, {key: value.shape for key, value in zip("xy", inputs, strict=False)})
        self.refuse_if(min(shape, default=1) < 1 or math.prod(shape) > LARGEST)
        *lines, at, over, when = (_filled(line, numbers) for line in (*self.lines, self.at, self.over, self.when))
        operands = dict(zip("y", inputs[1:], strict=False))
        body = Element(tuple(lines), sizes, out, operands, transposes=self.transposes, over=over, at=at, when=when)
        if self.modules and b.modules:
            code = b.module(self.name, _filled(d.pick(self.modules), numbers), stateful=False) + "({x})"
        else:
            code = _filled(self.forms[0] if len(self.forms) == 1 else d.pick(self.forms), numbers)
        code = code.replace("{x}", "{0}").replace("{y}", "{1}")
        probes, exact = self.probes or x.probes, x.exact and not self.blurs
        made = b.step(self.name, code, body, inputs, shape, probes, self.dtype or x.dtype, exact)
        if not self.dtype:
            made.low, made.high = min(x.low, 0.0), max(x.high, 0.0)
        return made

    def _other(self, b: Builder, shape: Shape, numbers: Numbers) -> list[Value]:
        """The second input, if there is one."""
        if not self.other:
            return []
        source, shape_of, name = self.other
        source = replace(source, text=_filled(source.text, numbers))
        return [source.input(b, shape_of(shape, numbers), name)]


def dims(rank: int, **changed: str) -> tuple[str, ...]:
    """The input's sizes, some of them changed: `_1` is dimension 1."""
    return tuple(changed.get(f"_{axis}", f"{{x}}.size({axis})") for axis in range(rank))


class _Sizes:
    """Sizes of a tensor, as the host's expressions read them."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape

    def size(self, axis: int) -> int:
        return self.shape[axis]

    def numel(self) -> int:
        return math.prod(self.shape)

    def stride(self, axis: int) -> int:
        return math.prod(self.shape[axis + 1 :])


def evaluated(texts: tuple[str, ...], sizes: Mapping[str, str], shapes: Mapping[str, Shape]) -> Shape:
    """The numbers that host expressions stand for."""
    known: dict[str, object] = {key: _Sizes(shape) for key, shape in shapes.items()}
    names = {key: key for key in (*shapes, *sizes)}

    def number(text: str) -> int:
        python = text.format(**names).replace("/", "//").replace("std::min<int64_t>", "min")
        return eval(python, {"__builtins__": {}, "min": min}, known)  # a text of our own table

    for key, text in sizes.items():
        known[key] = number(text)
    return tuple(number(text) for text in texts)


def _filled(text: str, numbers: Numbers) -> str:
    """`text` with the drawn parameters in it and the other keys kept."""
    return re.sub(r"\{(\w+)\}", lambda key: f"{numbers[key[1]]!r}" if key[1] in numbers else key[0], text)


def shape_of_rank(d: Draw, rank: int) -> Shape:
    """A plausible shape; also of volumes."""
    if rank < 5:
        return d.shape(rank)
    sides = (d.pick((4, 5, 6, 8)) if d.small else d.pick((8, 12, 16, 24)) for _ in range(3))
    return (
        d.pick((1, 2)) if d.small else d.pick((4, 8, 16)),
        d.pick((2, 3, 4)) if d.small else d.size((8, 16, 32), 64),
        *sides,
    )
