"""Operators that move or repeat elements (`dice.data.synthetic.table.index.Index`)."""

from __future__ import annotations

from collections.abc import Callable

from dice.data.synthetic.builder import Builder, Source
from dice.data.synthetic.draw import Draw
from dice.data.synthetic.graph import Value
from dice.data.synthetic.table.entry import Entry, Special, named
from dice.data.synthetic.table.grid import places
from dice.data.synthetic.table.index import MATRIX, Index, Numbers, Shape, dims

_W = {"W": "{x}.size({last})"}
_HW = {"H": "{x}.size(2)", "W": "{x}.size(3)"}
_AS_IT_IS = ("float {v} = {x}[{i}];",)
_SAME: tuple[Source, Callable[[Shape, Numbers], Shape], str] = (Source("torch.randn({s})"), lambda shape, _: shape, "y")


def _picked(**pools: tuple[float, ...]) -> Callable[[Draw, Shape], Numbers]:
    """Draws every parameter from its pool."""
    return lambda d, shape: {key: d.pick(pool) for key, pool in pools.items()}


def _borders(d: Draw, shape: Shape) -> Numbers:
    left, right = d.pick(((1, 1), (2, 2), (0, 3), (1, 2), (2, 1), (3, 0)))
    return {"l": left, "r": right, "e": left + right}


def _matrix_or_images(b: Builder) -> Value:
    return b.input(b.draw.shape(b.draw.pick((2, 4))))


def _square(b: Builder) -> Value:
    d = b.draw
    if not d.tiny and d.chance(0.4):
        return b.input(d.shape(3))
    size = d.pick((12, 16, 20, 24, 32, 40) if d.small else (512, 768, 1000, 1024, 1500, 2048))
    return b.input((size, size), dims=("rows", "rows"))


def _grid(b: Builder) -> Value:
    d = b.draw
    channels, side = d.pick((4, 8, 12, 16) if d.small else (16, 32, 36, 64)), d.side()
    return b.input((d.pick((1, 2) if d.small else (4, 8, 16)), channels, side, side))


def _triangle(name: str, sign: str) -> Index:
    """One triangle of the last two dimensions."""
    lines = (
        "int row = ({i} / {W}) % {H};",
        "int col = {i} % {W};",
        f"float {{v}} = col {sign} row ? {{x}}[{{i}}] : 0.0f;",
    )
    return Index(
        (f"torch.{name}({{x}})",), (), lines, (2, 3), {"H": "{x}.size({above})", **_W}, numbers=_above, begin=_square
    )


def _above(d: Draw, shape: Shape) -> Numbers:
    """The last dimension but one."""
    return {"above": len(shape) - 2}


_PADS = {
    2: Index(
        ("F.pad({x}, ({l}, {r}))",), ("...", "{OW}"),
        ("int row = {i} / {OW};", "int col = {i} % {OW} - {l};",
         "float {v} = col >= 0 && col < {W} ? {x}[row * {W} + col] : 0.0f;"),
        (2,), {**_W, "OW": "{W} + {e}"}, numbers=_borders,
    ),
    4: Index(
        ("F.pad({x}, ({l}, {r}, {l}, {r}))",), dims(4, _2="{OH}", _3="{OW}"),
        ("int iw = {i} % {OW} - {l};", "int ih = ({i} / {OW}) % {OH} - {l};", "int ch = {i} / ({OW} * {OH});",
         "bool inside = ih >= 0 && ih < {H} && iw >= 0 && iw < {W};",
         "float {v} = inside ? {x}[(ch * {H} + ih) * {W} + iw] : 0.0f;"),
        (4,), {**_HW, "OH": "{H} + {e}", "OW": "{W} + {e}"}, numbers=_borders,
    ),
}  # fmt: skip


def pad(b: Builder, x: Value) -> Value:
    """A border of zeros around the rows of a matrix, or around images."""
    return named("pad", _PADS[len(x.shape)]).apply(b, x)


MOVES: dict[str, Entry] = {
    "transpose": Index(
        ("{x}.t().contiguous()", "{x}.transpose(0, 1).contiguous()", "{x}.T.contiguous()"), ("{cols_in}", "{rows_in}"),
        ("float {v} = {x}[({i} % {rows_in}) * {cols_in} + {i} / {rows_in}];",),
        sizes={"rows_in": "{x}.size(0)", "cols_in": "{x}.size(1)"}, transposes=("rows_in", "cols_in"),
    ),
    "swap_last": Index(
        ("{x}.transpose(1, 2).contiguous()", "{x}.permute(0, 2, 1).contiguous()"), ("{x}.size(0)", "{L}", "{C}"),
        ("int ch = {i} % {C};", "int p = ({i} / {C}) % {L};", "int img = {i} / ({C} * {L});",
         "float {v} = {x}[(img * {C} + ch) * {L} + p];"), (3,), {"C": "{x}.size(1)", "L": "{x}.size(2)"},
    ),
    "permute": Index(
        ("{x}.permute(0, 2, 3, 1).contiguous()",), ("{x}.size(0)", "{H}", "{W}", "{C}"),
        ("int ch = {i} % {C};", "int p = ({i} / {C}) % ({H} * {W});", "int img = {i} / ({C} * {H} * {W});",
         "float {v} = {x}[(img * {C} + ch) * {H} * {W} + p];"), (4,), {"C": "{x}.size(1)", **_HW},
    ),
    "flip": Index(
        ("torch.flip({x}, [{last}])", "torch.flip({x}, dims=(-1,))", "{x}.flip({last})"), (),
        ("int col = {i} % {W};", "float {v} = {x}[{i} - col + {W} - 1 - col];"), (2, 3, 4), _W,
    ),
    "roll": Index(
        ("torch.roll({x}, {k}, {last})", "torch.roll({x}, shifts={k}, dims=-1)"), (),
        ("int col = {i} % {W};", "float {v} = {x}[{i} - col + (col + {W} - {k}) % {W}];"), (2, 3), _W,
        lambda shape: shape[-1] >= 4, lambda d, shape: {"k": d.rng.randrange(1, min(shape[-1], 32))},
    ),
    "tril": _triangle("tril", "<="),
    "triu": _triangle("triu", ">="),
    "repeat_interleave": Index(
        ("torch.repeat_interleave({x}, {k}, dim={last})", "{x}.repeat_interleave({k}, dim=-1)"),
        ("...", "{x}.size({last}) * {k}"), ("float {v} = {x}[{i} / {k}];",), numbers=_picked(k=(2, 3, 4)),
    ),
    "concat": Index(
        ("torch.cat([{x}, {y}], dim=1)", "torch.cat(({x}, {y}), dim=-1)"), ("{x}.size(0)", "{A} + {B}"),
        ("int row = {i} / ({A} + {B});", "int col = {i} % ({A} + {B});",
         "float {v} = col < {A} ? {x}[row * {A} + col] : {y}[row * {B} + col - {A}];"),
        sizes={"A": "{x}.size(1)", "B": "{y}.size(1)"}, numbers=lambda d, shape: {"wide": d.features()},
        other=(Source("torch.randn({s})"), lambda shape, numbers: (shape[0], int(numbers["wide"])), "y"),
    ),
    "strided_slice": Index(
        ("{x}[..., ::{k}].contiguous()",), ("...", "{OW}"),
        ("float {v} = {x}[({i} / {OW}) * {W} + ({i} % {OW}) * {k}];",), (2, 3),
        {**_W, "OW": "({W} + {k} - 1) / {k}"}, numbers=_picked(k=(2, 2, 3)),
    ),
    "channel_shuffle": Index(
        ("F.channel_shuffle({x}, {k})",), (),
        ("int p = {i} % {P};", "int oc = ({i} / {P}) % {C};", "int img = {i} / ({P} * {C});",
         "int ic = (oc % {k}) * ({C} / {k}) + oc / {k};", "float {v} = {x}[(img * {C} + ic) * {P} + p];"),
        (4,), {"C": "{x}.size(1)", "P": "{x}.size(2) * {x}.size(3)"}, lambda shape: shape[1] % 2 == 0 and shape[1] > 2,
        lambda d, shape: {"k": d.pick([k for k in (2, 3, 4, 8) if shape[1] % k == 0 and shape[1] > k])}, begin=_grid,
    ),
    "pixel_shuffle": Index(
        ("F.pixel_shuffle({x}, {k})",), dims(4, _1="{x}.size(1) / {k} / {k}", _2="{OH}", _3="{OW}"),
        (*places(2), "int ic = (ch * {k} + oh % {k}) * {k} + ow % {k};",
         "float {v} = {x}[(ic * {H} + oh / {k}) * {W} + ow / {k}];"),
        (4,), {**_HW, "OH": "{H} * {k}", "OW": "{W} * {k}"}, lambda shape: shape[1] % 4 == 0,
        lambda d, shape: {"k": 3 if shape[1] % 9 == 0 and d.chance(0.5) else 2}, begin=_grid,
    ),
    "diagonal": Index(
        ("torch.diag({x})", "torch.diagonal({x})"), ("{N}",), ("float {v} = {x}[{i} * {W} + {i}];",),
        sizes={"W": "{x}.size(1)", "N": "std::min<int64_t>({x}.size(0), {x}.size(1))"},
        suits=lambda shape: min(shape) > 3,
    ),
    "diag_embed": Index(
        ("torch.diag({x})", "torch.diag_embed({x})"), ("{N}", "{N}"),
        ("float {v} = {i} / {N} == {i} % {N} ? {x}[{i} % {N}] : 0.0f;",), (1,), {"N": "{x}.size(0)"},
        suits=lambda shape: shape[0] < 300, begin=lambda b: b.input((min(b.draw.features(), 256),)),
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
        ("float {v} = {x}[({i} / ({W} * {k})) * {W} + {i} % {W}];",), sizes=_W, numbers=_picked(k=(2, 3)),
    ),
    "repeat_interleave_rows": Index(
        ("torch.repeat_interleave({x}, {k}, dim=0)", "torch.repeat_interleave({x}, repeats={k}, dim=0)"),
        dims(2, _0="{x}.size(0) * {k}"), ("float {v} = {x}[({i} / {W} / {k}) * {W} + {i} % {W}];",), sizes=_W,
        numbers=_picked(k=(2, 3)),
    ),
    "rot90": Index(
        ("torch.rot90({x})", "torch.rot90({x}, 1, [0, 1])", "torch.rot90({x}, k=1, dims=(0, 1))"), ("{W}", "{H}"),
        ("float {v} = {x}[({i} % {H}) * {W} + {W} - 1 - {i} / {H}];",), sizes=MATRIX,
    ),
    "stack": Index(
        ("torch.stack([{x}, {y}], dim=1)", "torch.stack(({x}, {y}), dim=1)"), ("{x}.size(0)", "2", "{W}"),
        ("int row = {i} / (2 * {W});", "int at = row * {W} + {i} % {W};",
         "float {v} = ({i} / {W}) % 2 == 0 ? {x}[at] : {y}[at];"),
        sizes=_W, other=_SAME,
    ),
    "concat_rows": Index(
        ("torch.cat([{x}, {y}], dim=0)", "torch.cat(({x}, {y}), dim=0)"), ("{x}.size(0) + {y}.size(0)", "{x}.size(1)"),
        ("float {v} = {i} < {N} ? {x}[{i}] : {y}[{i} - {N}];",), sizes={"N": "{x}.size(0) * {x}.size(1)"}, other=_SAME,
    ),
    "first_columns": Index(
        ("{x}[:, :{k}]", "torch.narrow({x}, 1, 0, {k})", "torch.split({x}, {k}, dim=1)[0]"), ("{x}.size(0)", "{k}"),
        ("float {v} = {x}[({i} / {k}) * {W} + {i} % {k}];",), sizes=_W, suits=lambda shape: shape[1] > 4,
        numbers=lambda d, shape: {"k": d.rng.randrange(4, shape[1])},
    ),
    "first_half": Index(
        ("torch.chunk({x}, 2, dim=1)[0]", "{x}.chunk(2, dim=1)[0]"), ("{x}.size(0)", "{K}"),
        ("float {v} = {x}[({i} / {K}) * {W} + {i} % {K}];",), sizes={"W": "{x}.size(1)", "K": "({W} + 1) / 2"},
        suits=lambda shape: shape[1] > 7,
    ),
    "roll_all": Index(
        ("torch.roll({x}, {k})", "torch.roll({x}, shifts={k})"), dims(2),
        ("float {v} = {x}[({i} + {N} - {k}) % {N}];",), sizes={"N": "{x}.size(0) * {x}.size(1)"},
        numbers=_picked(k=(1, 2, 3, 5)),
    ),
    "flip_rows": Index(
        ("torch.flip({x}, [0])", "torch.flip({x}, dims=[0])", "{x}.flip(0)"), dims(2),
        ("float {v} = {x}[({H} - 1 - {i} / {W}) * {W} + {i} % {W}];",), sizes=MATRIX,
    ),
    "pixel_unshuffle": Index(
        ("F.pixel_unshuffle({x}, {f})",), dims(4, _1="{x}.size(1) * {f} * {f}", _2="{OH}", _3="{OW}"),
        (*places(2), "int ic = ch / ({f} * {f});", "int sub = ch % ({f} * {f});",
         "float {v} = {x}[(ic * {H} + oh * {f} + sub / {f}) * {W} + ow * {f} + sub % {f}];"),
        (4,), {**_HW, "OH": "{H} / {f}", "OW": "{W} / {f}"}, suits=lambda shape: shape[2] % 2 == shape[3] % 2 == 0,
        numbers=lambda d, shape: {"f": 2}, modules=("nn.PixelUnshuffle({f})",),
    ),
    "im2col": Index(
        ("F.unfold({x}, {k})", "F.unfold({x}, kernel_size={k})"), ("{x}.size(0)", "{C} * {k} * {k}", "{P}"),
        ("int p = {i} % {P};", "int row = ({i} / {P}) % ({C} * {k} * {k});",
         "int img = {i} / ({P} * {C} * {k} * {k});", "int ch = row / ({k} * {k});",
         "int oh = p / {OW} + (row / {k}) % {k};", "int ow = p % {OW} + row % {k};",
         "float {v} = {x}[((img * {C} + ch) * {H} + oh) * {W} + ow];"),
        (4,), {"C": "{x}.size(1)", **_HW, "OW": "{W} - {k} + 1", "P": "({H} - {k} + 1) * {OW}"},
        suits=lambda shape: min(shape[2:]) > 4, numbers=lambda d, shape: {"k": d.pick((2, 3))},
        modules=("nn.Unfold({k})", "nn.Unfold(kernel_size={k})"),
    ),
    "pad": Special("move", pad, _matrix_or_images, (2, 4)),
}  # fmt: skip
