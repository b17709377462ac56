"""Planes made larger: borders of several kinds, and interpolation."""

from __future__ import annotations

from dice.data.synthetic.table.grid import AXES, element, places, plane_out, plane_sizes
from dice.data.synthetic.table.index import Index

_BENDS = {
    ("reflect", "Reflection"): "P = P < 0 ? -P : (P >= N ? 2 * N - 2 - P : P);",
    ("replicate", "Replication"): "P = min(max(P, 0), N - 1);",
    ("circular", "Circular"): "P = (P + N) % N;",
}
"""Mode and name of a layer -> how a place P outside of N elements is bent back."""


def _border(mode: str, title: str, bend: str, rank: int) -> Index:
    """A border of `k` elements on every side."""
    lines = [*places(rank)]
    for axis in AXES[rank]:
        lines += [f"int i{axis} = o{axis} - {{k}};", bend.replace("P", f"i{axis}").replace("N", f"{{{axis.upper()}}}")]
    return Index(
        (f'F.pad({{x}}, ({", ".join(["{k}"] * 2 * rank)}), mode="{mode}")',),
        plane_out(rank),
        (*lines, f"float {{v}} = {element(rank, 'ch')};"),
        (rank + 2,),
        plane_sizes(rank, ["SIZE + 2 * {k}"] * rank),
        lambda shape: min(shape[2:]) > 3,
        lambda d, shape: {"k": d.pick((1, 2, 3))},
        (f"nn.{title}Pad{rank}d({{k}})",),
    )


def _nearest(rank: int) -> Index:
    """Nearest-neighbour enlargement by a whole factor."""
    lines = (*places(rank), *(f"int i{axis} = o{axis} / {{f}};" for axis in AXES[rank]))
    return Index(
        ("F.interpolate({x}, scale_factor={f})", 'F.interpolate({x}, scale_factor={f}, mode="nearest")'),
        plane_out(rank),
        (*lines, f"float {{v}} = {element(rank, 'ch')};"),
        (rank + 2,),
        plane_sizes(rank, ["SIZE * {f}"] * rank),
        numbers=lambda d, shape: {"f": d.pick((2, 2, 3))},
        modules=("nn.Upsample(scale_factor={f})", 'nn.Upsample(scale_factor={f}, mode="nearest")'),
    )


def _linear(align: bool) -> Index:
    """Bilinear enlargement of images by a whole factor."""
    option = ", align_corners=True" if align else ""

    def place(out: str, size: str, large: str) -> str:
        if align:
            return f"{out} * ({size} - 1.0f) / ({large} - 1)"
        return f"fmaxf(({out} + 0.5f) / {{f}} - 0.5f, 0.0f)"

    lines = (
        *places(2),
        f"float r = {place('oh', '{H}', '{OH}')};",
        f"float q = {place('ow', '{W}', '{OW}')};",
        "int h0 = min((int)r, {H} - 1);",
        "int w0 = min((int)q, {W} - 1);",
        "int h1 = min(h0 + 1, {H} - 1);",
        "int w1 = min(w0 + 1, {W} - 1);",
        "const float* p = {x} + ch * {H} * {W};",
        "float a = p[h0 * {W} + w0] * (1.0f - q + w0) + p[h0 * {W} + w1] * (q - w0);",
        "float b = p[h1 * {W} + w0] * (1.0f - q + w0) + p[h1 * {W} + w1] * (q - w0);",
        "float {v} = a * (1.0f - r + h0) + b * (r - h0);",
    )
    form = f'({{x}}, scale_factor={{f}}, mode="bilinear"{option})'
    return Index(
        (f"F.interpolate{form}",) + (() if align else (f"F.interpolate{form[:-1]}, align_corners=False)",)),
        plane_out(2),
        lines,
        (4,),
        plane_sizes(2, ["SIZE * {f}"] * 2),
        numbers=lambda d, shape: {"f": d.pick((2, 2, 3, 4))},
        modules=(f'nn.Upsample(scale_factor={{f}}, mode="bilinear"{option})',),
        blurs=True,
    )


RESIZE: dict[str, Index] = {
    **{
        f"{mode}_pad{rank}d": _border(mode, title, bend, rank)
        for (mode, title), bend in _BENDS.items()
        for rank in (1, 2)
    },
    **{f"upsample_nearest{rank}d": _nearest(rank) for rank in (1, 2, 3)},
    "bilinear": _linear(False),
    "bilinear_aligned": _linear(True),
}
