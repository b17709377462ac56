"""Poolings in one to three dimensions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

from dice.data.synthetic.builder import Builder, Refused
from dice.data.synthetic.graph import Element, Value
from dice.data.synthetic.table import window as sliding
from dice.data.synthetic.table.entry import Entry, Special
from dice.data.synthetic.table.grid import AXES, element, places, plane_out, plane_sizes
from dice.data.synthetic.table.window import Pools


@dataclass
class Pooling(Entry):
    """One operator: the largest element under a window, or the mean. `pools`: None where the output's size is given."""

    rank: int
    largest: bool
    pools: Pools | None = None
    group: str = "window"

    def __post_init__(self) -> None:
        self.ranks = (self.rank + 2,)

    def first(self, b: Builder) -> Value:
        return sliding.planes(b, self.rank)

    @property
    def kind(self) -> str:
        """Its name in PyTorch."""
        return "Max" if self.largest else "Avg"

    @property
    def start(self) -> str:
        """The value before the first element."""
        return f"float {{v}} = {'-INFINITY' if self.largest else '0.0f'};"

    def step(self, read: str) -> str:
        """The statement that takes one more element."""
        return f"{{v}} = fmaxf({{v}}, {read});" if self.largest else f"{{v}} += {read};"

    def probes(self, x: Value, taps: float) -> tuple[float, ...]:
        """Of the result, where a window has so many elements."""
        if self.largest:
            return tuple(0.7 * probe + 1.0 for probe in x.probes)
        return tuple(1 / math.sqrt(taps) * probe for probe in x.probes)

    def apply(self, b: Builder, x: Value) -> Value:
        if x.dtype != "float":
            raise Refused(self.name)
        if self.pools is None:
            return self._adaptive(b, x)
        window, rank = self.pools.draw(b.draw), self.rank
        texts = sliding.outputs(window, transposed=False)
        outs, taps = sliding.worked_out(texts, x.shape[2:]), math.prod(window.kernel)
        work = math.prod(outs) * taps * math.prod(x.shape[:2])
        if min(outs) < 1 or not sliding.fits(window, x.shape[2:]) or work > (1e6 if b.draw.small else 5e9):
            raise Refused(self.name)
        loops = sliding.taps(window, False, self.step(element(rank, "ch")))
        mean = [] if self.largest else [f"{{v}} /= {float(taps)!r}f;"]
        options = [("stride", window.stride, window.kernel), ("padding", window.padding, (0,) * rank)]
        options += [("dilation", window.dilation, (1,) * rank)] if self.largest else []
        given = sliding.arguments(b.draw, window.kernel, options)
        body = Element((*places(rank), self.start, *loops, *mean), plane_sizes(rank, texts), plane_out(rank))
        code = self._code(b, "", given)
        return b.step(self.name, code, body, [x], (*x.shape[:2], *outs), self.probes(x, taps))

    def _adaptive(self, b: Builder, x: Value) -> Value:
        """The same with windows that give a number of results."""
        outs = tuple(b.draw.pick((1, 1, 2, 2, 3, 4)) for _ in range(self.rank))
        count = math.prod(x.shape[2:])
        # the mean of very many independent numbers is zero within the tolerance
        vanishes = not self.largest and set(outs) == {1} and count > 60
        if vanishes or x.shape[2:] == outs or any(out > size for out, size in zip(outs, x.shape[2:], strict=True)):
            raise Refused(self.name)
        bounds, loops = [], []
        for depth, axis in enumerate(AXES[self.rank]):
            size, out = f"{{{axis.upper()}}}", f"{{O{axis.upper()}}}"
            bounds += [
                f"int {axis}0 = o{axis} * {size} / {out};",
                f"int {axis}1 = ((o{axis} + 1) * {size} + {out} - 1) / {out};",
            ]
            loops.append("    " * depth + f"for (int i{axis} = {axis}0; i{axis} < {axis}1; ++i{axis})")
        loops[-1] += " " + self.step(element(self.rank, "ch"))
        number = " * ".join(f"({axis}1 - {axis}0)" for axis in AXES[self.rank])
        mean = [] if self.largest else [f"{{v}} /= (float)({number});"]
        sizes = plane_sizes(self.rank, [str(out) for out in outs])
        body = Element((*places(self.rank), *bounds, self.start, *loops, *mean), sizes, plane_out(self.rank))
        code = self._code(b, "Adaptive", sliding.written(b.draw, outs))
        return b.step(self.name, code, body, [x], (*x.shape[:2], *outs), self.probes(x, count / math.prod(outs)))

    def _code(self, b: Builder, adaptive: str, given: str) -> str:
        """The program, as a function or a layer."""
        if b.draw.chance(0.6):
            made = f"nn.{adaptive}{self.kind}Pool{self.rank}d({given})"
            return b.module(b.draw.pick(("pool", "pool", f"{self.kind.lower()}pool")), made, stateful=False) + "({0})"
        return f"F.{'adaptive_' if adaptive else ''}{self.kind.lower()}_pool{self.rank}d({{0}}, {given})"


POOLING = {
    **{f"max_pooling{rank}d": Pooling(rank, True, Pools(rank, (1, 2, 2, 3))) for rank in (1, 2, 3)},
    **{f"dilated_max_pooling{rank}d": Pooling(rank, True, Pools(rank, (1, 2), (2, 3))) for rank in (1, 2, 3)},
    **{f"avg_pooling{rank}d": Pooling(rank, False, Pools(rank, (1, 2, 2, 3))) for rank in (1, 2, 3)},
    **{f"adaptive_max_pooling{rank}d": Pooling(rank, True) for rank in (1, 2, 3)},
    **{f"adaptive_avg_pooling{rank}d": Pooling(rank, False) for rank in (1, 2, 3)},
}


def plain_pool(b: Builder, x: Value, name: str) -> Value:
    """Append `max_pool2d`, `avg_pool2d` or `max_pool1d`: windows beside each other, without padding."""
    rank, k = int(name[-2]), b.draw.pick((2, 2, 3, 4))
    spec = Pooling(rank, largest=name.startswith("max"))
    outs = [size // k for size in x.shape[2:]]
    if min(outs) < 2:
        raise Refused(name)
    read, place = "{x}[ch * {W} + PLACE]", f"ow * {k} + kw"
    lines = ["int ow = {i} % {OW};", "int ch = {i} / {OW};", spec.start]
    if rank == 2:
        read = f"{{x}}[(ch * {{H}} + oh * {k} + kh) * {{W}} + PLACE]"
        lines[1:2] = ["int oh = ({i} / {OW}) % {OH};", "int ch = {i} / ({OW} * {OH});"]
        lines.append(f"for (int kh = 0; kh < {k}; ++kh)")
    indent = "    " * (rank - 1)
    lines.append(f"{indent}for (int kw = 0; kw < {k}; ++kw) " + spec.step(read.replace("PLACE", place)))
    if not spec.largest:
        lines.append(f"{{v}} /= {float(k**rank)!r}f;")
    inputs = {axis.upper(): f"{{x}}.size({2 + at})" for at, axis in enumerate(AXES[rank])}
    sizes = inputs | {f"O{axis}": f"({{{axis}}} - {k}) / {k} + 1" for axis in inputs}
    code = f"F.{name}({{0}}, {k})"
    body = Element(tuple(lines), sizes, plane_out(rank))
    return b.step(name, code, body, [x], (*x.shape[:2], *outs), spec.probes(x, k**rank))


def _images(b: Builder) -> Value:
    d = b.draw
    channels, side = d.channels(), d.side()
    batch = d.pick((1, 2, 3)) if d.small else max(2, min(d.batch(channels * side * side), 32))
    return b.input((batch, channels, side, side if d.chance(0.7) else d.side()))


def _signals(b: Builder) -> Value:
    d = b.draw
    channels, length = d.channels(), d.length() * (1 if d.small else d.pick((1, 4, 8)))
    batch = d.pick((1, 2, 3, 4)) if d.small else d.pick((4, 8, 16, 32))
    return b.input((batch, channels, length), dims=("batch_size", "channels", "length"))


PLAIN: dict[str, Entry] = {
    "max_pool2d": Special("window", partial(plain_pool, name="max_pool2d"), _images, (4,)),
    "avg_pool2d": Special("window", partial(plain_pool, name="avg_pool2d"), _images, (4,)),
    "max_pool1d": Special("window", partial(plain_pool, name="max_pool1d"), _signals, (3,)),
}
