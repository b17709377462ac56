"""Tensors as rows along some dimensions, and inputs whose rows differ."""

from __future__ import annotations

import math

from dice.data.synthetic.builder import Builder
from dice.data.synthetic.graph import NORMAL, Pass, Rows, Scalar, Value

Axes = tuple[int, ...]
ROW_STATISTICS = "torch.randn({s}) * (0.5 + torch.rand({s1})) + torch.randn({s1})"
"""Every row has another mean and spread, so that no mean or norm of a row is constant."""
RANDOM_SCALE = "torch.randn({s}) * (0.5 + 2.0 * torch.rand(1))"
"""Every input has another spread, so that no number of a whole tensor is constant."""
WHOLE_PROBES = (0.4, 0.7, 1.1, 1.6, 2.3, 3.2, 4.5, 6.5)
"""Typical numbers of such a tensor."""


def axes_of(b: Builder, rank: int) -> Axes:
    """Dimension(s) to work along: those along which the input varies from row to row, or any."""
    if b.axis:
        return b.axis
    if rank == 1:
        return (0,)
    if b.draw.tiny:
        return b.draw.pick(((rank - 1,), (rank - 1,), (0 if rank == 2 else 1,)))
    if rank == 4:
        return b.draw.pick(((1,), (3,), (2, 3), (2, 3), (1,)))
    if rank == 3:
        return b.draw.pick(((2,), (2,), (1,)))
    return b.draw.pick(((1,), (1,), (1,), (1,), (0,)))


def layout(shape: tuple[int, ...], axes: Axes) -> tuple[dict[str, str], int, int]:
    """Size expressions of a row layout, the length of a row and the number of rows."""
    product = " * ".join(f"{{x}}.size({axis})" for axis in axes)
    length = math.prod(shape[axis] for axis in axes)
    atom = product if len(axes) == 1 else f"({product})"
    sizes = {"R": product, "rows": f"{{x}}.numel() / {atom}"}
    if len(shape) == 2:
        sizes["rows"] = f"{{x}}.size({1 - axes[0]})"
    if axes[-1] + 1 < len(shape):
        sizes["inner"] = " * ".join(f"{{x}}.size({axis})" for axis in range(axes[-1] + 1, len(shape)))
    return sizes, length, math.prod(shape) // length


def of_rows(
    x: Value,
    passes: tuple[Pass, ...],
    value: str,
    mode: str,
    operands: dict[str, Value],
    scalars: dict[str, Scalar] | None = None,
) -> Rows:
    """Work on the rows of a matrix and further tensors; `mode`: as in Rows, `row` or `total`."""
    sizes, (rows, length) = {"rows": "{x}.size(0)", "R": "{x}.size(1)"}, x.shape
    return Rows(passes, value, mode, sizes, length, rows, ("{rows}",) * (mode == "row"), operands, scalars or {})


def reduced(shape: tuple[int, ...], axes: Axes, keep: bool) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Shape after a reduction and the host expressions of its sizes."""
    kept = [(1, "1") if axis in axes else (size, f"{{x}}.size({axis})") for axis, size in enumerate(shape)]
    kept = [item for axis, item in enumerate(kept) if keep or axis not in axes]
    return tuple(size for size, _ in kept), tuple(text for _, text in kept)


def axis_text(b: Builder, axes: Axes, rank: int) -> str:
    """The dimension as PyTorch code."""
    if len(axes) != 1:
        return repr(axes)
    return repr(axes[0] - rank if axes[0] == rank - 1 and b.draw.chance(0.5) else axes[0])


def made_for(b: Builder, text: str, longest: int = 100_000) -> Value:
    """An input whose statistics vary from row to row; the operator then works along the same dimensions."""
    d = b.draw
    rank = 2 if d.tiny and d.chance(0.7) else d.pick((2, 2, 3, 4))
    shape = d.shape(rank)
    b.axis = axes_of(b, rank)
    if math.prod(shape[axis] for axis in b.axis) > longest:
        length = d.pick((16, 24, 32, 48, 64, 100)) if longest >= 100 else longest
        shape = tuple(length if axis == b.axis[-1] else size for axis, size in enumerate(shape))
        b.axis = b.axis[-1:]
    statistics = tuple(1 if axis in b.axis else size for axis, size in enumerate(shape))
    if "{s1}" in text:
        return b.input(shape, text="torch.randn({s}) + torch.randn({s1})" if d.tiny else text, statistics=statistics)
    probes = (0.82, 0.88, 0.94, 0.98, 1.03, 1.08, 1.13, 1.18) if "0.8" in text else NORMAL
    return b.input(shape, text=text, probes=probes)


def plain(b: Builder) -> Value:
    """A standard normal input of two to four dimensions."""
    return b.input(b.draw.shape(b.draw.rank((2, 3, 4))))
