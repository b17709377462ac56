"""Windows that slide over planes: their parameters, loops over their taps, and the sizes of the result."""

from __future__ import annotations

from dataclasses import dataclass

from dice.data.synthetic.builder import Builder
from dice.data.synthetic.draw import Draw
from dice.data.synthetic.graph import Value
from dice.data.synthetic.table.entry import Ints
from dice.data.synthetic.table.grid import AXES
from dice.data.synthetic.table.index import shape_of_rank

LARGEST_WORK = (5e9, 1e6)
"""Multiplications of one operator: for large shapes, for small ones."""


@dataclass(frozen=True, slots=True)
class Window:
    """Parameters along each dimension. `extra`: the output padding of a transposed convolution."""

    kernel: Ints
    stride: Ints
    padding: Ints
    dilation: Ints
    extra: Ints


@dataclass(frozen=True, slots=True)
class Pools:
    """What windows are drawn from: `rank` dimensions, strides, dilations; `transposed`: of a transposed convolution."""

    rank: int
    strides: Ints
    dilations: Ints = (1,)
    transposed: bool = False

    def draw(self, d: Draw) -> Window:
        """A window, mostly the same along all dimensions."""

        def each(pool: Ints) -> Ints:
            one = d.pick(pool)
            return tuple(d.pick(pool) if d.chance(0.2) else one for _ in range(self.rank))

        kernel = each((2, 3, 3, 3, 3, 4, 5, 5, 7, 9, 11) if self.rank < 3 else (2, 3, 3, 3, 5))
        stride, dilation = each(self.strides), each(self.dilations)
        padding = (0,) * self.rank
        if d.chance(0.5):  # PyTorch's pools take no more than half a kernel
            share = d.pick((0.5, 1.0, 1.0))
            padding = tuple(max(1, round(share * (k // 2))) for k in kernel)
        extra = tuple(1 if s > 1 and self.transposed and d.chance(0.3) else 0 for s in stride)
        return Window(kernel, stride, padding, dilation, extra)


def outputs(window: Window, transposed: bool) -> list[str]:
    """Host expressions of the output's sizes in {SIZE}: with the numbers of the program, which is easier to follow, and to
    learn, than what is worked out beforehand."""
    texts = []
    for k, s, p, dilation, extra in zip(
        window.kernel, window.stride, window.padding, window.dilation, window.extra, strict=True
    ):
        if transposed:
            texts.append(f"(SIZE - 1) * {s} - 2 * {p} + {dilation} * ({k} - 1) + {extra} + 1")
        else:
            texts.append(f"(SIZE + 2 * {p} - {dilation} * ({k} - 1) - 1) / {s} + 1")
    return texts


def fits(window: Window, sizes: Ints, outs: Ints, work: float, small: bool) -> bool:
    """Whether the padded input of these sizes holds a whole window, and the multiplications, `work`, are not too many."""
    parts = zip(sizes, window.padding, window.dilation, window.kernel, strict=True)
    holds = all(size + 2 * p > dilation * (k - 1) for size, p, dilation, k in parts)
    return holds and min(outs) >= 1 and work <= LARGEST_WORK[small]


def worked_out(texts: list[str], sizes: Ints) -> Ints:
    """What the expressions of `outputs` amount to."""
    return tuple(eval(text.replace("/", "//"), {"SIZE": size}) for text, size in zip(texts, sizes, strict=True))


def taps(window: Window, transposed: bool, statement: str) -> list[str]:
    """Loops over the window around `statement`, with the input's places as `iw` and so on."""
    axes = AXES[len(window.kernel)]
    lines, tests = [], []
    for depth, axis in enumerate(axes):
        k, s, p, dilation = (part[depth] for part in (window.kernel, window.stride, window.padding, window.dilation))
        lines.append("    " * depth + f"for (int k{axis} = 0; k{axis} < {k}; ++k{axis})")
        place, size = f"i{axis}", f"{{{axis.upper()}}}"
        if transposed:
            tests += [
                f"int {place} = o{axis} + {p} - k{axis} * {dilation};",
                f"if ({place} < 0 || {place} % {s} || {place} / {s} >= {size}) continue;",
                f"{place} /= {s};",
            ]
        else:
            tests += [
                f"int {place} = o{axis} * {s} + k{axis} * {dilation} - {p};",
                f"if ({place} < 0 || {place} >= {size}) continue;",
            ]
    lines[-1] += " {{"
    inner = "    " * len(lines)
    return [*lines, *(inner + test for test in tests), inner + statement, "    " * (len(lines) - 1) + "}}"]


def written(d: Draw, numbers: Ints) -> str:
    """A number where all are the same, by most authors."""
    return repr(numbers[0] if len(set(numbers)) == 1 and d.chance(0.8) else numbers)


def arguments(d: Draw, kernel: Ints, options: list[tuple[str, Ints, Ints]]) -> str:
    """The kernel's size and `options` (name, value, default) as arguments; some authors write defaults down too."""
    whole = d.chance(0.3)
    size = ("kernel_size=" if d.chance(0.3) else "") + written(d, kernel)
    return size + "".join(
        f", {name}={written(d, value)}" for name, value, usual in options if value != usual or (whole and d.chance(0.8))
    )


def planes(b: Builder, rank: int) -> Value:
    """An input of few channels: sequences, images or volumes."""
    d = b.draw
    if rank == 3:
        return b.input(shape_of_rank(d, 5))
    channels, batch = d.channels(), d.pick((1, 2, 3, 4)) if d.small else d.pick((4, 8, 16, 32))
    if rank == 1:
        return b.input((batch, channels, d.length()))
    side = d.side()
    return b.input((batch, channels, side, side if d.chance(0.7) else d.side()))
