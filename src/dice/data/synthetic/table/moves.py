"""Operators that move, repeat, select or interpolate elements (`dice.data.synthetic.table.index.Index`)."""

from __future__ import annotations

from collections.abc import Callable

from dice.data.synthetic.builder import Source
from dice.data.synthetic.draw import Draw
from dice.data.synthetic.families.registry import Family
from dice.data.synthetic.table.index import Index, Shape, family


def dims(rank: int, **changed: str) -> tuple[str, ...]:
    """The input's sizes, some of them changed: `_1` is dimension 1."""
    return tuple(changed.get(f"_{axis}", f"{{x}}.size({axis})") for axis in range(rank))


_HW = {"H": "{x}.size(2)", "W": "{x}.size(3)"}
_PIXEL = ("int ow = {i} % {OW};", "int oh = ({i} / {OW}) % {OH};", "int ch = {i} / ({OW} * {OH});")
_AS_IT_IS = ("float {v} = {x}[{i}];",)


def _picked(**pools: tuple[float, ...]) -> Callable[[Draw, Shape], dict[str, float] | None]:
    """Draws every parameter from its pool."""
    return lambda d, shape: {key: d.pick(pool) for key, pool in pools.items()}


def _count(least: int, axis: int) -> Callable[[Draw, Shape], dict[str, float] | None]:
    """A count `k` of at most the size of a dimension."""
    return lambda d, shape: {"k": d.rng.randrange(least, shape[axis])} if shape[axis] > least else None


def _padded(lines: str) -> dict[str, object]:
    """Parts of a padding of images by `a` on every side; `lines` bend the row and the column back."""
    bend = tuple(lines.replace("P", one).replace("N", size) for one, size in (("oh", "{H}"), ("ow", "{W}")))
    read = "float {v} = {x}[(ch * {H} + oh) * {W} + ow];"
    first = tuple(line.replace("};", "} - {a};") if "ch" not in line else line for line in _PIXEL)
    return {
        "out": dims(4, _2="{H} + 2 * {a}", _3="{W} + 2 * {a}"),
        "lines": (*first, *bend, read),
        "ranks": (4,),
        "sizes": {**_HW, "OH": "{H} + 2 * {a}", "OW": "{W} + 2 * {a}"},
        "numbers": lambda d, shape: {"a": d.pick((1, 2, 3))} if min(shape[2:]) > 3 else None,
    }


def _bend_1d(lines: str) -> dict[str, object]:
    """The same for sequences."""
    first = ("int row = {i} / {OW};", "int ow = {i} % {OW} - {a};")
    return {
        "out": dims(3, _2="{W} + 2 * {a}"),
        "lines": (*first, lines.replace("P", "ow").replace("N", "{W}"), "float {v} = {x}[row * {W} + ow];"),
        "ranks": (3,),
        "sizes": {"W": "{x}.size(2)", "OW": "{W} + 2 * {a}"},
        "numbers": lambda d, shape: {"a": d.pick((1, 2, 3))} if shape[2] > 3 else None,
    }


_REFLECT = "P = P < 0 ? -P : (P >= N ? 2 * N - 2 - P : P);"
_REPLICATE = "P = min(max(P, 0), N - 1);"
_CIRCULAR = "P = (P + N) % N;"


def _borders(title: str, mode: str, bend: str) -> dict[str, Index]:
    """A padding mode in one and two dimensions."""
    pads = {1: "({a}, {a})", 2: "({a}, {a}, {a}, {a})"}
    made = {}
    for rank, parts in ((1, _bend_1d(bend)), (2, _padded(bend))):
        forms = (f'F.pad({{x}}, {pads[rank]}, mode="{mode}")',)
        made[f"{mode}_pad{rank}d"] = Index(forms, modules=(f"nn.{title}Pad{rank}d({{a}})",), **parts)  # type: ignore[arg-type]
    return made


def _linear(align: bool) -> Index:
    """Bilinear enlargement of images by a whole factor."""
    option = ", align_corners=True" if align else ""

    def place(out: str, size: str, large: str) -> str:
        if align:
            return f"{out} * ({size} - 1.0f) / ({large} - 1)"
        return f"fmaxf(({out} + 0.5f) / {{f}} - 0.5f, 0.0f)"

    lines = (
        *_PIXEL,
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
        (f"F.interpolate{form}",) if align else (f"F.interpolate{form}", f"F.interpolate{form[:-1]}, align_corners=False)"),
        dims(4, _2="{OH}", _3="{OW}"), lines, (4,), {**_HW, "OH": "{H} * {f}", "OW": "{W} * {f}"}, _picked(f=(2, 2, 3, 4)),
        (f'nn.Upsample(scale_factor={{f}}, mode="bilinear"{option})',), blurs=True,
    )  # fmt: skip


def _rows_of(shape: Shape, numbers: dict[str, float]) -> Shape:
    return (shape[0], int(numbers["k"]))


_EDGES = Source("torch.linspace(-1.5, 1.5, {s})", (-1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.25, 1.5))
_PLACES = "torch.rand({s}).argsort(dim=1)"
_SAME: tuple[Source, Callable[[Shape, dict[str, float]], Shape]] = (Source("torch.randn({s})"), lambda shape, _: shape)


def _enlarged(rank: int) -> Index:
    """Nearest-neighbour enlargement of sequences and volumes."""
    axes = tuple(range(2, 2 + rank))
    names = ("W",) if rank == 1 else ("D", "H", "W")
    sizes = {key: f"{{x}}.size({axis})" for key, axis in zip(names, axes, strict=True)}
    sizes |= {f"O{key}": f"{{{key}}} * {{f}}" for key in names}
    if rank == 1:
        lines: tuple[str, ...] = ("float {v} = {x}[({i} / {OW}) * {W} + ({i} % {OW}) / {f}];",)
    else:
        lines = (
            "int ow = {i} % {OW};", "int oh = ({i} / {OW}) % {OH};", "int od = ({i} / ({OW} * {OH})) % {OD};",
            "int ch = {i} / ({OW} * {OH} * {OD});",
            "float {v} = {x}[((ch * {D} + od / {f}) * {H} + oh / {f}) * {W} + ow / {f}];",
        )  # fmt: skip
    changed = {f"_{axis}": f"{{O{key}}}" for key, axis in zip(names, axes, strict=True)}
    return Index(
        ('F.interpolate({x}, scale_factor={f})', 'F.interpolate({x}, scale_factor={f}, mode="nearest")'),
        dims(2 + rank, **changed), lines, (2 + rank,), sizes, _picked(f=(2, 2, 3)), ("nn.Upsample(scale_factor={f})",),
    )  # fmt: skip


INDEX: dict[str, Index] = {
    "diagonal": Index(
        ("torch.diag({x})", "torch.diagonal({x})"), ("{N}",), ("float {v} = {x}[{i} * {W} + {i}];",),
        sizes={"W": "{x}.size(1)", "N": "std::min<int64_t>({x}.size(0), {x}.size(1))"},
        numbers=lambda d, shape: {} if min(shape) > 3 else None,
    ),
    "diag_embed": Index(
        ("torch.diag({x})", "torch.diag_embed({x})"), ("{N}", "{N}"),
        ("float {v} = {i} / {N} == {i} % {N} ? {x}[{i} % {N}] : 0.0f;",), (1,), {"N": "{x}.size(0)"},
        lambda d, shape: {} if shape[0] < 300 else None, start=Source("torch.randn({s})"),
        probes=(0.0, 0.0, 0.7, 0.0, -1.1, 0.0, 0.0, 1.9),
    ),
    "flatten": Index(
        ("torch.flatten({x}, 1)", "{x}.flatten(1)", "torch.flatten({x}, start_dim=1)", "{x}.view({x}.size(0), -1)"),
        ("{x}.size(0)", "{x}.numel() / {x}.size(0)"), _AS_IT_IS, (3, 4), modules=("nn.Flatten()",),
    ),
    "unsqueeze": Index(
        ("torch.unsqueeze({x}, dim=1)", "{x}.unsqueeze(1)", "torch.unsqueeze({x}, 1)"),
        ("{x}.size(0)", "1", "{x}.size(1)"), _AS_IT_IS,
    ),
    "tile": Index(
        ("torch.tile({x}, (1, {k}))", "{x}.repeat(1, {k})"), dims(2, _1="{W} * {k}"),
        ("float {v} = {x}[({i} / ({W} * {k})) * {W} + {i} % {W}];",), sizes={"W": "{x}.size(1)"}, numbers=_picked(k=(2, 3)),
    ),
    "repeat_interleave_rows": Index(
        ("torch.repeat_interleave({x}, {k}, dim=0)", "torch.repeat_interleave({x}, repeats={k}, dim=0)"),
        dims(2, _0="{x}.size(0) * {k}"), ("float {v} = {x}[({i} / {W} / {k}) * {W} + {i} % {W}];",),
        sizes={"W": "{x}.size(1)"}, numbers=_picked(k=(2, 3)),
    ),
    "rot90": Index(
        ("torch.rot90({x})", "torch.rot90({x}, 1, [0, 1])", "torch.rot90({x}, k=1, dims=(0, 1))"), ("{W}", "{H}"),
        ("float {v} = {x}[({i} % {H}) * {W} + {W} - 1 - {i} / {H}];",), sizes={"H": "{x}.size(0)", "W": "{x}.size(1)"},
    ),
    "stack": Index(
        ("torch.stack([{x}, {y}], dim=1)", "torch.stack(({x}, {y}), dim=1)"), ("{x}.size(0)", "2", "{W}"),
        ("int row = {i} / (2 * {W});", "int at = row * {W} + {i} % {W};",
         "float {v} = ({i} / {W}) % 2 == 0 ? {x}[at] : {y}[at];"), sizes={"W": "{x}.size(1)"}, other=_SAME,
    ),
    "concat_rows": Index(
        ("torch.cat([{x}, {y}], dim=0)", "torch.cat(({x}, {y}), dim=0)"),
        ("{x}.size(0) + {y}.size(0)", "{x}.size(1)"), ("float {v} = {i} < {N} ? {x}[{i}] : {y}[{i} - {N}];",),
        sizes={"N": "{x}.size(0) * {x}.size(1)"}, other=_SAME,
    ),
    "first_columns": Index(
        ("{x}[:, :{k}]", "torch.narrow({x}, 1, 0, {k})", "torch.split({x}, {k}, dim=1)[0]"), ("{x}.size(0)", "{k}"),
        ("float {v} = {x}[({i} / {k}) * {W} + {i} % {k}];",), sizes={"W": "{x}.size(1)"}, numbers=_count(4, 1),
    ),
    "first_half": Index(
        ("torch.chunk({x}, 2, dim=1)[0]", "{x}.chunk(2, dim=1)[0]"), ("{x}.size(0)", "{K}"),
        ("float {v} = {x}[({i} / {K}) * {W} + {i} % {K}];",),
        sizes={"W": "{x}.size(1)", "K": "({W} + 1) / 2"}, numbers=lambda d, shape: {} if shape[1] > 7 else None,
    ),
    "roll_all": Index(
        ("torch.roll({x}, {k})", "torch.roll({x}, shifts={k})"), dims(2),
        ("float {v} = {x}[({i} + {N} - {k}) % {N}];",), sizes={"N": "{x}.size(0) * {x}.size(1)"},
        numbers=_picked(k=(1, 2, 3, 5)),
    ),
    "flip_rows": Index(
        ("torch.flip({x}, [0])", "torch.flip({x}, dims=[0])", "{x}.flip(0)"), dims(2),
        ("float {v} = {x}[({H} - 1 - {i} / {W}) * {W} + {i} % {W}];",), sizes={"H": "{x}.size(0)", "W": "{x}.size(1)"},
    ),
    "pixel_unshuffle": Index(
        ("F.pixel_unshuffle({x}, {f})",), dims(4, _1="{x}.size(1) * {f} * {f}", _2="{OH}", _3="{OW}"),
        (*_PIXEL, "int ic = ch / ({f} * {f});", "int sub = ch % ({f} * {f});",
         "float {v} = {x}[(ic * {H} + oh * {f} + sub / {f}) * {W} + ow * {f} + sub % {f}];"),
        (4,), {**_HW, "OH": "{H} / {f}", "OW": "{W} / {f}"},
        lambda d, shape: {"f": 2} if shape[2] % 2 == shape[3] % 2 == 0 else None, ("nn.PixelUnshuffle({f})",),
    ),
    "im2col": Index(
        ("F.unfold({x}, {k})", "F.unfold({x}, kernel_size={k})"), ("{x}.size(0)", "{C} * {k} * {k}", "{P}"),
        ("int p = {i} % {P};", "int row = ({i} / {P}) % ({C} * {k} * {k});", "int img = {i} / ({P} * {C} * {k} * {k});",
         "int ch = row / ({k} * {k});", "int oh = p / {OW} + (row / {k}) % {k};", "int ow = p % {OW} + row % {k};",
         "float {v} = {x}[((img * {C} + ch) * {H} + oh) * {W} + ow];"),
        (4,), {"C": "{x}.size(1)", **_HW, "OW": "{W} - {k} + 1", "P": "({H} - {k} + 1) * {OW}"},
        lambda d, shape: {"k": d.pick((2, 3))} if min(shape[2:]) > 4 else None,
        ("nn.Unfold({k})", "nn.Unfold(kernel_size={k})"),
    ),
    **_borders("Reflection", "reflect", _REFLECT),
    **_borders("Replication", "replicate", _REPLICATE),
    **_borders("Circular", "circular", _CIRCULAR),
    "bilinear": _linear(False),
    "bilinear_aligned": _linear(True),
    "upsample_nearest1d": _enlarged(1),
    "upsample_nearest3d": _enlarged(3),
    "one_hot": Index(
        ("F.one_hot({x}, {N})", "F.one_hot({x}, num_classes={N})"), ("{x}.size(0)", "{N}"),
        ("float {v} = {x}[{i} / {N}] == {i} % {N};",), (1,),
        numbers=lambda d, shape: {"N": 10} if shape[0] < 10_000 else None,
        start=Source("torch.randint(0, 10, {t})", tuple(range(8)), dtype="int64"), takes="int64", dtype="int64",
        probes=(0, 0, 1, 0, 0, 1, 0, 0),
    ),
    "bucketize": Index(
        ("torch.bucketize({x}, {y})", "torch.searchsorted({y}, {x})"), dims(2),
        ("float {v} = 0.0f;", "for (int k = 0; k < {N}; ++k) {v} += {y}[k] < {x}[{i}];"), sizes={"N": "{y}.size(0)"},
        other=(_EDGES, lambda shape, _: (13,)), dtype="int64", exact_only=True, probes=(0, 1, 3, 5, 7, 9, 11, 13),
    ),
    "scatter": Index(
        ("torch.scatter({x}, 1, {y}, {a})", "{x}.scatter(1, {y}, {a})"), dims(2),
        ("float {v} = {x}[{i}];", "for (int k = 0; k < {K}; ++k)",
         "    if ({y}[({i} / {W}) * {K} + k] == {i} % {W}) {v} = {a}f;"),
        sizes={"W": "{x}.size(1)", "K": "{y}.size(1)"},
        numbers=lambda d, shape: {"k": min(shape[1] // 2, 8), "a": d.pick((0.5, 1.0, 2.0))} if shape[1] > 7 else None,
        other=(Source(_PLACES, dtype="int64"), _rows_of),
    ),
    "scatter_add": Index(
        ("torch.zeros_like({x}).scatter_add(1, {y}, {x})", "torch.scatter_add(torch.zeros_like({x}), 1, {y}, {x})"), dims(2),
        ("float {v} = 0.0f;", "for (int k = 0; k < {W}; ++k)",
         "    if ({y}[({i} / {W}) * {W} + k] == {i} % {W}) {v} += {x}[({i} / {W}) * {W} + k];"),
        sizes={"W": "{x}.size(1)"}, numbers=lambda d, shape: {"N": max(shape[1] // 2, 2)} if shape[1] < 600 else None,
        other=(Source("torch.randint(0, {N}, {t})", dtype="int64"), lambda shape, _: shape), blurs=True,
    ),
    "index_add": Index(
        ("torch.index_add(torch.zeros_like({x}), 0, {y}, {x})", "torch.zeros_like({x}).index_add(0, {y}, {x})"), dims(2),
        ("float {v} = 0.0f;", "for (int k = 0; k < {H}; ++k)",
         "    if ({y}[k] == {i} / {W}) {v} += {x}[k * {W} + {i} % {W}];"),
        sizes={"H": "{x}.size(0)", "W": "{x}.size(1)"},
        numbers=lambda d, shape: {"N": shape[0]} if 3 < shape[0] < 600 else None,
        other=(Source("torch.randint(0, {N}, {t})", dtype="int64"), lambda shape, _: shape[:1]), blurs=True,
    ),
    "take": Index(
        ("torch.take({x}, {y})",), ("{y}.size(0)",), ("float {v} = {x}[{y}[{i}]];",),
        numbers=lambda d, shape: {"N": shape[0] * shape[1]},
        other=(Source("torch.randint(0, {N}, {t})", dtype="int64"), lambda shape, _: (shape[1],)),
    ),
    "index_fill": Index(
        ("torch.index_fill({x}, 1, {y}, {a})", "{x}.index_fill(1, {y}, {a})"), dims(2),
        ("float {v} = {x}[{i}];", "for (int k = 0; k < {K}; ++k) if ({y}[k] == {i} % {W}) {v} = {a}f;"),
        sizes={"W": "{x}.size(1)", "K": "{y}.size(0)"},
        numbers=lambda d, shape: {"N": shape[1], "a": d.pick((-1.0, 0.5, 2.0))} if shape[1] > 7 else None,
        other=(Source("torch.randint(0, {N}, {t})", dtype="int64"), lambda shape, _: (3,)),
    ),
}  # fmt: skip


def families(held: frozenset[str]) -> list[Family]:
    """The table as families; those in `held` are held out."""
    return [family(name, spec, held) for name, spec in INDEX.items()]
