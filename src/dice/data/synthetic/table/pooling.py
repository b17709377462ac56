"""Poolings in one to three dimensions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from dice.data.synthetic.builder import Builder
from dice.data.synthetic.graph import Element, Value
from dice.data.synthetic.table import window as sliding
from dice.data.synthetic.table.entry import Entry
from dice.data.synthetic.table.grid import AXES, element, places, plane_out, plane_sizes
from dice.data.synthetic.table.window import Pools


@dataclass
class Pooling(Entry, group="window"):
    """One operator: the largest element under a window, or the mean. `pools`: what windows are drawn from; `beside`: makes
    the input where they lie beside each other, without padding; without both, the output's size is given."""

    rank: int
    largest: bool
    pools: Pools | None = None
    beside: Callable[[Builder], Value] | None = None

    def __post_init__(self) -> None:
        self.ranks = (self.rank + 2,)

    def first(self, b: Builder) -> Value:
        return self.beside(b) if self.beside else sliding.planes(b, self.rank)

    def apply(self, b: Builder, x: Value) -> Value:
        self.refuse_if(x.dtype != "float")
        if self.beside:
            return self._beside(b, x)
        return self._sliding(b, x, self.pools) if self.pools else self._adaptive(b, x)

    def _sliding(self, b: Builder, x: Value, pools: Pools) -> Value:
        window, rank = pools.draw(b.draw), self.rank
        texts = sliding.outputs(window, transposed=False)
        outs, taps = sliding.worked_out(texts, x.shape[2:]), math.prod(window.kernel)
        work = math.prod(outs) * taps * math.prod(x.shape[:2])
        self.refuse_if(not sliding.fits(window, x.shape[2:], outs, work, b.draw.small))
        loops = sliding.taps(window, False, self._takes(element(rank, "ch")))
        options = [("stride", window.stride, window.kernel), ("padding", window.padding, (0,) * rank)]
        options += [("dilation", window.dilation, (1,) * rank)] if self.largest else []
        code = self._code(b, "", sliding.arguments(b.draw, window.kernel, options))
        return self._pooled(b, x, code, [], loops, f"{float(taps)!r}f", texts, outs, taps)

    def _adaptive(self, b: Builder, x: Value) -> Value:
        """Windows that give a number of results."""
        outs = tuple(b.draw.pick((1, 1, 2, 2, 3, 4)) for _ in range(self.rank))
        count = math.prod(x.shape[2:])
        # the mean of very many independent numbers is zero within the tolerance
        vanishes = not self.largest and set(outs) == {1} and count > 60
        self.refuse_if(
            vanishes or x.shape[2:] == outs or any(out > size for out, size in zip(outs, x.shape[2:], strict=True))
        )
        bounds, loops = [], []
        for depth, axis in enumerate(AXES[self.rank]):
            size, out = f"{{{axis.upper()}}}", f"{{O{axis.upper()}}}"
            bounds += [
                f"int {axis}0 = o{axis} * {size} / {out};",
                f"int {axis}1 = ((o{axis} + 1) * {size} + {out} - 1) / {out};",
            ]
            loops.append("    " * depth + f"for (int i{axis} = {axis}0; i{axis} < {axis}1; ++i{axis})")
        loops[-1] += " " + self._takes(element(self.rank, "ch"))
        number = " * ".join(f"({axis}1 - {axis}0)" for axis in AXES[self.rank])
        code, texts = self._code(b, "Adaptive", sliding.written(b.draw, outs)), [str(out) for out in outs]
        return self._pooled(b, x, code, bounds, loops, f"(float)({number})", texts, outs, count / math.prod(outs))

    def _beside(self, b: Builder, x: Value) -> Value:
        k = b.draw.pick((2, 2, 3, 4))
        outs = tuple(size // k for size in x.shape[2:])
        self.refuse_if(min(outs) < 2)
        read, loops = element(self.rank, "ch"), []
        for depth, axis in enumerate(AXES[self.rank]):
            read = read.replace(f"i{axis}", f"o{axis} * {k} + k{axis}")
            loops.append("    " * depth + f"for (int k{axis} = 0; k{axis} < {k}; ++k{axis})")
        loops[-1] += " " + self._takes(read)
        code, texts, taps = f"F.{self.name}({{0}}, {k})", [f"(SIZE - {k}) / {k} + 1"] * self.rank, k**self.rank
        return self._pooled(b, x, code, [], loops, f"{float(taps)!r}f", texts, outs, taps)

    def _takes(self, read: str) -> str:
        """The statement that takes one more element."""
        return f"{{v}} = fmaxf({{v}}, {read});" if self.largest else f"{{v}} += {read};"

    def _code(self, b: Builder, adaptive: str, given: str) -> str:
        """The program, as a function or a layer."""
        kind = "Max" if self.largest else "Avg"
        if b.draw.chance(0.6):
            made = f"nn.{adaptive}{kind}Pool{self.rank}d({given})"
            return b.module(b.draw.pick(("pool", "pool", f"{kind.lower()}pool")), made, stateful=False) + "({0})"
        return f"F.{'adaptive_' if adaptive else ''}{kind.lower()}_pool{self.rank}d({{0}}, {given})"

    def _pooled(
        self, b: Builder, x: Value, code: str, bounds: list[str], loops: list[str], divisor: str, texts: list[str],
        outs: tuple[int, ...], taps: float,
    ) -> Value:  # fmt: skip
        """Append the operator. `texts`: of the output's sizes `outs`; `taps`: elements of a window."""
        start = f"float {{v}} = {'-INFINITY' if self.largest else '0.0f'};"
        mean = [] if self.largest else [f"{{v}} /= {divisor};"]
        sizes = plane_sizes(self.rank, texts)
        body = Element((*places(self.rank), *bounds, start, *loops, *mean), sizes, plane_out(self.rank))
        scale, shift = (0.7, 1.0) if self.largest else (1 / math.sqrt(taps), 0.0)
        probes = tuple(scale * probe + shift for probe in x.probes)
        return b.step(self.name, code, body, [x], (*x.shape[:2], *outs), probes)


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


POOLING = {
    **{f"max_pooling{rank}d": Pooling(rank, True, Pools(rank, (1, 2, 2, 3))) for rank in (1, 2, 3)},
    **{f"dilated_max_pooling{rank}d": Pooling(rank, True, Pools(rank, (1, 2), (2, 3))) for rank in (1, 2, 3)},
    **{f"avg_pooling{rank}d": Pooling(rank, False, Pools(rank, (1, 2, 2, 3))) for rank in (1, 2, 3)},
    **{f"adaptive_max_pooling{rank}d": Pooling(rank, True) for rank in (1, 2, 3)},
    **{f"adaptive_avg_pooling{rank}d": Pooling(rank, False) for rank in (1, 2, 3)},
    "max_pool2d": Pooling(2, True, beside=_images),
    "avg_pool2d": Pooling(2, False, beside=_images),
    "max_pool1d": Pooling(1, True, beside=_signals),
}
