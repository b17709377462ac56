"""Operators of which each output element is computed from its index: the output's sizes and which elements each one reads."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from dice.data.synthetic.builder import Builder, Refused, Source, distinct
from dice.data.synthetic.draw import Draw
from dice.data.synthetic.families.registry import Family
from dice.data.synthetic.graph import Element, Value

Shape = tuple[int, ...]
LARGEST = 2e7
"""Most elements of a result."""


@dataclass(frozen=True, slots=True)
class Index:
    """One operator. Texts are templates in {x}, {y} and the keys of `sizes` and of `numbers`.

    `out`: host expressions of the output's sizes; the keys of sizes and numbers may be used. `lines` define {v} for output
    index {i}. `numbers`: draws the parameters for an input shape, None where the shape does not suit. `other`: a second
    input and its sizes. `over`, `at`, `when`: as in `dice.data.synthetic.graph.Element`. `dtype`: of the result, where it is
    not the input's. `blurs`: the results are sums of elements rather than elements. `probes`: of the result, where not the
    input's.
    """

    forms: tuple[str, ...]
    out: tuple[str, ...]
    lines: tuple[str, ...]
    ranks: tuple[int, ...] = (2,)
    sizes: dict[str, str] | None = None
    numbers: Callable[[Draw, Shape], dict[str, float] | None] = lambda d, shape: {}
    modules: tuple[str, ...] = ()
    start: Source | None = None
    other: tuple[Source, Callable[[Shape, dict[str, float]], Shape]] | None = None
    takes: str = "float"
    dtype: str = ""
    over: str = ""
    at: str = "{i}"
    when: str = ""
    exact_only: bool = False
    blurs: bool = False
    probes: tuple[float, ...] | None = None


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


def evaluated(texts: tuple[str, ...], sizes: dict[str, str], shapes: dict[str, Shape]) -> Shape:
    """The numbers that host expressions stand for."""
    known: dict[str, object] = {key: _Sizes(shape) for key, shape in shapes.items()}
    names = {key: key for key in (*shapes, *sizes)}

    def number(text: str) -> int:
        python = text.format(**names).replace("/", "//").replace("std::min<int64_t>", "min")
        return eval(python, {"__builtins__": {}, "min": min}, known)  # a text of our own table

    for key, text in sizes.items():
        known[key] = number(text)
    return tuple(number(text) for text in texts)


def _filled(text: str, numbers: dict[str, float]) -> str:
    """`text` with the drawn parameters in it and the other keys kept."""
    return re.sub(r"\{(\w+)\}", lambda key: f"{numbers[key[1]]!r}" if key[1] in numbers else key[0], text)


def index(b: Builder, x: Value, name: str, spec: Index) -> Value:
    """Append operator `name`. Raises Refused where it does not suit."""
    d = b.draw
    numbers = spec.numbers(d, x.shape) if len(x.shape) in spec.ranks else None
    if (
        numbers is None
        or x.dtype != spec.takes
        or (spec.exact_only and not x.exact)
        or (spec.other and len(b.inputs) > 1)
    ):
        raise Refused(name)
    inputs, shapes = [x], {"x": x.shape}
    if spec.other:
        source, shape_of = spec.other
        text = _filled(source.text, numbers)
        y = Source(text, source.probes, source.low, source.high, source.dtype).input(b, shape_of(x.shape, numbers), "y")
        inputs.append(y)
        shapes["y"] = y.shape
    if spec.when and distinct(x.probes) < 5:
        raise Refused(name)  # the elements that it selects would often be the same ones
    sizes = {key: _filled(text, numbers) for key, text in (spec.sizes or {}).items()}
    out = tuple(_filled(text, numbers) for text in spec.out)
    shape = evaluated(out, sizes, shapes)
    if min(shape, default=1) < 1 or Value(shape, "").numel > LARGEST:
        raise Refused(name)
    operands = {"y": inputs[1]} if spec.other else {}
    texts = [_filled(line, numbers) for line in (*spec.lines, spec.at, spec.over, spec.when)]
    body = Element(tuple(texts[:-3]), sizes, out, operands, over=texts[-2], at=texts[-3], when=texts[-1])
    if spec.modules and b.modules:
        code = b.module(name, _filled(d.pick(spec.modules), numbers), stateful=False) + "({x})"
    else:
        code = _filled(d.pick(spec.forms), numbers)
    code = code.replace("{x}", "{0}").replace("{y}", "{1}")
    dtype = spec.dtype or x.dtype
    made = b.step(name, code, body, inputs, shape, spec.probes or x.probes, dtype, x.exact and not spec.blurs)
    if not spec.dtype:
        made.low, made.high = min(x.low, 0.0), max(x.high, 0.0)
    return made


def family(name: str, spec: Index, held: frozenset[str], group: str = "move") -> Family:
    """One entry as a family."""

    def start(b: Builder) -> Value:
        shape = shape_of_rank(b.draw, b.draw.pick(spec.ranks))
        for _ in range(20):
            if spec.numbers(b.draw, shape) is not None:
                break
            shape = shape_of_rank(b.draw, b.draw.pick(spec.ranks))
        return spec.start.input(b, shape) if spec.start else b.input(shape)

    weak = spec.takes != "float" or spec.exact_only
    return Family(name, group, lambda b, x: index(b, x, name, spec), start, True, name in held, spec.ranks, weak)


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
