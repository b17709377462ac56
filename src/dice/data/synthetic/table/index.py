"""Operators of which each output element is computed from its index: the output's sizes and which elements each one reads."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from dice.data.synthetic.builder import Builder, Refused, Source, distinct
from dice.data.synthetic.draw import Draw
from dice.data.synthetic.graph import Element, Value
from dice.data.synthetic.table.entry import Entry, Start

Shape = tuple[int, ...]
Numbers = dict[str, float]
LARGEST = 2e7
"""Most elements of a result."""


@dataclass(frozen=True, slots=True)
class Index:
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
    begin: Start | None = None
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


def index(b: Builder, x: Value, name: str, spec: Index) -> Value:
    """Append operator `name`. Raises Refused where it does not suit."""
    d = b.draw
    fits = len(x.shape) in spec.ranks and spec.suits(x.shape) and x.dtype == spec.takes
    # elements that it selects by their order would often be the same ones
    alike = bool(spec.when) and distinct(x.probes) < 5
    if not fits or alike or (spec.exact_only and not x.exact) or (spec.other and len(b.inputs) > 1):
        raise Refused(name)
    numbers = {"last": len(x.shape) - 1, **spec.numbers(d, x.shape)}
    inputs = [x, *_other(b, x.shape, spec, numbers)]
    sizes = {key: _filled(text, numbers) for key, text in spec.sizes.items()}
    lead = dims(len(x.shape) - 1)
    texts = [part for text in spec.out for part in (lead if text == "..." else (text,))] or [*dims(len(x.shape))]
    out = tuple(_filled(text, numbers) for text in texts)
    shape = evaluated(out, sizes, {key: value.shape for key, value in zip("xy", inputs, strict=False)})
    if min(shape, default=1) < 1 or math.prod(shape) > LARGEST:
        raise Refused(name)
    *lines, at, over, when = (_filled(line, numbers) for line in (*spec.lines, spec.at, spec.over, spec.when))
    operands = dict(zip("y", inputs[1:], strict=False))
    body = Element(tuple(lines), sizes, out, operands, transposes=spec.transposes, over=over, at=at, when=when)
    if spec.modules and b.modules:
        code = b.module(name, _filled(d.pick(spec.modules), numbers), stateful=False) + "({x})"
    else:
        code = _filled(spec.forms[0] if len(spec.forms) == 1 else d.pick(spec.forms), numbers)
    code = code.replace("{x}", "{0}").replace("{y}", "{1}")
    made = b.step(
        name, code, body, inputs, shape, spec.probes or x.probes, spec.dtype or x.dtype, x.exact and not spec.blurs
    )
    if not spec.dtype:
        made.low, made.high = min(x.low, 0.0), max(x.high, 0.0)
    return made


def _other(b: Builder, shape: Shape, spec: Index, numbers: Numbers) -> list[Value]:
    """The second input, if there is one."""
    if not spec.other:
        return []
    source, shape_of, name = spec.other
    source = replace(source, text=_filled(source.text, numbers))
    return [source.input(b, shape_of(shape, numbers), name)]


def entry(name: str, spec: Index, group: str = "move") -> Entry:
    """The entry of an operator."""

    def start(b: Builder) -> Value:
        shape = shape_of_rank(b.draw, b.draw.pick(spec.ranks))
        for _ in range(20):
            if spec.suits(shape):
                break
            shape = shape_of_rank(b.draw, b.draw.pick(spec.ranks))
        return spec.start.input(b, shape) if spec.start else b.input(shape)

    weak = spec.takes != "float" or spec.exact_only
    return Entry(name, group, lambda b, x: index(b, x, name, spec), spec.begin or start, spec.ranks, weak)


def shape_of_rank(d: Draw, rank: int) -> Shape:
    """A plausible shape; also of volumes."""
    if rank < 5:
        return d.shape(rank)
    sides = (d.pick((4, 5, 6, 8)) if d.small else d.pick((8, 12, 16, 24)) for _ in range(3))
    return (
        d.pick((1, 2)) if d.small else d.pick((4, 8, 16)),
        d.pick((2, 3, 4)) if d.small else d.pick((8, 16, 32)),
        *sides,
    )
