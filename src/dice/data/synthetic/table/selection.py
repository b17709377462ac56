"""Operators that select, count or scatter elements by an index, or by their order in a row."""

from __future__ import annotations

from collections.abc import Callable

from dice.data.synthetic.builder import Builder, Source, centred
from dice.data.synthetic.draw import Draw
from dice.data.synthetic.graph import Element, Value
from dice.data.synthetic.table.entry import Special
from dice.data.synthetic.table.index import MATRIX, Index, Numbers, Shape, dims

_W = {"W": "{x}.size(1)"}
_EDGES = Source("torch.linspace(-1.5, 1.5, {s})", (-1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.25, 1.5))
_DIGITS = Source("torch.randint(0, 10, {t})", tuple(range(8)), dtype="int64")
_DIFFERENT = Source("torch.rand({s}).argsort(dim=1)", dtype="int64")
"""Different indices in each row."""
_ANY = Source("torch.randint(0, {N}, {t})", dtype="int64")
_VECTOR = Source("torch.randint(0, {N}, ({s},))", dtype="int64")
_INDICES = Source("torch.randint(0, {N}, ({s}))", dtype="int64")


def embedding(b: Builder, tokens: Value) -> Value:
    """Rows of a table, selected by integer tokens, which are the program's first input."""
    d, last = b.draw, len(tokens.shape)
    rows, width = d.pick((16, 20, 32, 50) if d.small else (1000, 2000, 5000, 10000)), d.features()
    b.inputs[0].text = f"torch.randint(0, {rows}, ({{s}},))" if last == 1 else f"torch.randint(0, {rows}, ({{s}}))"
    made = f"nn.Embedding({b.argument('vocab_size', rows)}, {b.argument('embed_dim', width)})"
    layer = b.module(d.pick(("embedding", "embed", "emb", "table")), made)
    table = Value((rows, width), "table", f"{layer}.weight")
    lines = ("float {v} = {w}[{x}[{i} / {D}] * {D} + {i} % {D}];",)
    body = Element(lines, {"D": "{w}.size(1)"}, (*dims(last), "{D}"), {"w": table}, like="w")
    return b.step("embedding", f"{layer}({{0}})", body, [tokens], (*tokens.shape, width))


def _tokens(b: Builder) -> Value:
    d = b.draw
    length, batch = d.length(), d.pick((2, 3, 4, 6) if d.small else (8, 16, 32, 64))
    shape = (batch * length,) if d.chance(0.3) else (batch, length)
    return b.input(shape, "x", "tokens", dtype="int64", dims=("batch_size", "length")[: len(shape)])


SELECTION: dict[str, Index] = {
    "index_select": Index(
        ("torch.index_select({x}, 0, {y})", "{x}[{y}]", "{x}.index_select(0, {y})"), ("{y}.size(0)", "{D}"),
        ("float {v} = {x}[{y}[{i} / {D}] * {D} + {i} % {D}];",), sizes={"D": "{x}.size(1)"},
        numbers=lambda d, shape: {"N": shape[0], "k": max(4, shape[0] // d.pick((1, 2, 4)))},
        other=(_VECTOR, lambda shape, numbers: (int(numbers["k"]),), "index"),
    ),
    "gather": Index(
        ("torch.gather({x}, 1, {y})", "torch.gather({x}, dim=1, index={y})", "{x}.gather(1, {y})"), ("{x}.size(0)", "{K}"),
        ("float {v} = {x}[({i} / {K}) * {D} + {y}[{i}]];",), sizes={"D": "{x}.size(1)", "K": "{y}.size(1)"},
        numbers=lambda d, shape: {"N": shape[1], "k": max(2, shape[1] // d.pick((1, 2, 4)))},
        other=(_INDICES, lambda shape, numbers: (shape[0], int(numbers["k"])), "index"),
    ),
    "one_hot": Index(
        ("F.one_hot({x}, {N})", "F.one_hot({x}, num_classes={N})"), ("{x}.size(0)", "{N}"),
        ("float {v} = {x}[{i} / {N}] == {i} % {N};",), (1,), numbers=lambda d, shape: {"N": 10},
        begin=lambda b: _DIGITS.input(b, (b.draw.features(),)),
        takes="int64", dtype="int64", probes=(0, 0, 1, 0, 0, 1, 0, 0),
    ),
    "bucketize": Index(
        ("torch.bucketize({x}, {y})", "torch.searchsorted({y}, {x})"), dims(2),
        ("float {v} = 0.0f;", "for (int k = 0; k < {N}; ++k) {v} += {y}[k] < {x}[{i}];"), sizes={"N": "{y}.size(0)"},
        other=(_EDGES, lambda shape, _: (13,), "y"), dtype="int64", exact_only=True, probes=(0, 1, 3, 5, 7, 9, 11, 13),
    ),
    "scatter": Index(
        ("torch.scatter({x}, 1, {y}, {a})", "{x}.scatter(1, {y}, {a})"), dims(2),
        ("float {v} = {x}[{i}];", "for (int k = 0; k < {K}; ++k)",
         "    if ({y}[({i} / {W}) * {K} + k] == {i} % {W}) {v} = {a}f;"),
        sizes={"W": "{x}.size(1)", "K": "{y}.size(1)"}, suits=lambda shape: shape[1] > 7,
        numbers=lambda d, shape: {"k": min(shape[1] // 2, 8), "a": d.pick((0.5, 1.0, 2.0))},
        other=(_DIFFERENT, lambda shape, numbers: (shape[0], int(numbers["k"])), "y"),
    ),
    "scatter_add": Index(
        ("torch.zeros_like({x}).scatter_add(1, {y}, {x})", "torch.scatter_add(torch.zeros_like({x}), 1, {y}, {x})"),
        dims(2),
        ("float {v} = 0.0f;", "for (int k = 0; k < {W}; ++k)",
         "    if ({y}[({i} / {W}) * {W} + k] == {i} % {W}) {v} += {x}[({i} / {W}) * {W} + k];"),
        sizes=_W, suits=lambda shape: shape[1] < 600, numbers=lambda d, shape: {"N": max(shape[1] // 2, 2)},
        other=(_ANY, lambda shape, _: shape, "y"), blurs=True,
    ),
    "index_add": Index(
        ("torch.index_add(torch.zeros_like({x}), 0, {y}, {x})", "torch.zeros_like({x}).index_add(0, {y}, {x})"),
        dims(2),
        ("float {v} = 0.0f;", "for (int k = 0; k < {H}; ++k)",
         "    if ({y}[k] == {i} / {W}) {v} += {x}[k * {W} + {i} % {W}];"),
        sizes=MATRIX, suits=lambda shape: 3 < shape[0] < 600, numbers=lambda d, shape: {"N": shape[0]},
        other=(_ANY, lambda shape, _: shape[:1], "y"), blurs=True,
    ),
    "take": Index(
        ("torch.take({x}, {y})",), ("{y}.size(0)",), ("float {v} = {x}[{y}[{i}]];",),
        numbers=lambda d, shape: {"N": shape[0] * shape[1]},
        other=(_ANY, lambda shape, _: (shape[1],), "y"),
    ),
    "index_fill": Index(
        ("torch.index_fill({x}, 1, {y}, {a})", "{x}.index_fill(1, {y}, {a})"), dims(2),
        ("float {v} = {x}[{i}];", "for (int k = 0; k < {K}; ++k) if ({y}[k] == {i} % {W}) {v} = {a}f;"),
        sizes={"W": "{x}.size(1)", "K": "{y}.size(0)"}, suits=lambda shape: shape[1] > 7,
        numbers=lambda d, shape: {"N": shape[1], "a": d.pick((-1.0, 0.5, 2.0))},
        other=(_ANY, lambda shape, _: (3,), "y"),
    ),
}  # fmt: skip

_ORDER = (
    "int first = {i} / ({R} * {inner}) * {R} * {inner} + {i} % {inner};",
    "int place = ({i} / {inner}) % {R};",
    "float t = {x}[{i}];",
    "int rank = 0;",
    "for (int k = 0; k < {R}; ++k) {{",
    "    float u = {x}[first + k * {inner}];",
    "    rank += u OVER t || (u == t && k < place);",
    "}}",
)
_ALONG = {"R": "{x}.size({d})", "inner": "{x}.stride({d})"}
_WHOLE = ("{x}.size(0)", "{x}.size(1)")
_ROW = "{i} / ({R} * {inner}) * {inner} + {i} % {inner}"
_TOP = "{i} / {R} * {k} + rank"


def _dimension(d: Draw, shape: Shape) -> Numbers:
    """A dimension, the other one, and how many of its elements are wanted."""
    axis = d.pick((1, 1, 0))
    return {"d": axis, "e": 1 - axis, "k": d.rng.randrange(2, min(shape[axis], 9))}


def _rows(d: Draw, shape: Shape) -> Numbers:
    return {"d": 1, "e": 0, "k": 3}


def _short(shape: Shape) -> bool:
    return min(shape) >= 4 and max(shape) <= 1100


def _order(
    forms: tuple[str, ...],
    value: str = "t",
    out: tuple[str, ...] = _WHOLE,
    over: str = "<",
    at: str = "first + rank * {inner}",
    when: str = "",
    dtype: str = "",
    numbers: Callable[[Draw, Shape], Numbers] = _dimension,
    probes: tuple[float, ...] | None = None,
) -> Index:
    """An operator that needs the rank of each element in its row, counted by one thread for each element."""
    lines = (*(line.replace("OVER", over) for line in _ORDER), f"float {{v}} = {value};")
    places = (0, 1, 3, 5, 8, 12, 30, 50) if dtype else probes
    return Index(
        forms, out, lines, sizes=_ALONG, suits=_short, numbers=numbers, dtype=dtype, over="{x}.numel()", at=at, when=when,
        exact_only=bool(dtype), probes=places, group="scan",
    )  # fmt: skip


ORDERS: dict[str, Index] = {
    "sort": _order(("torch.sort({x}, dim={d})[0]", "torch.sort({x}, dim={d}).values", "{x}.sort(dim={d}).values")),
    "sort_descending": _order(
        ("torch.sort({x}, dim={d}, descending=True)[0]", "torch.sort({x}, dim={d}, descending=True).values"), over=">"
    ),
    "argsort": _order(("torch.argsort({x}, dim={d})", "{x}.argsort(dim={d})"), "place", dtype="int64"),
    "median": _order(
        ("torch.median({x}, dim={d})[0]", "torch.median({x}, dim={d}).values", "{x}.median(dim={d}).values"),
        out=("{x}.size({e})",), at=_ROW, when="rank == ({R} - 1) / 2", probes=centred(0.0, 0.2),
    ),
    "kthvalue": _order(
        ("torch.kthvalue({x}, {k}, dim={d})[0]", "torch.kthvalue({x}, {k}, dim={d}).values"), out=("{x}.size({e})",),
        at=_ROW, when="rank == {k} - 1",
    ),
    "topk": _order(
        ("torch.topk({x}, {k}, dim={d})[0]", "torch.topk({x}, {k}, dim={d}).values", "torch.topk({x}, k={k})[0]"),
        out=("{x}.size(0)", "{k}"), over=">", at=_TOP, when="rank < {k}", numbers=_rows,
    ),
    "topk_indices": _order(
        ("torch.topk({x}, {k}, dim={d})[1]", "torch.topk({x}, {k}, dim={d}).indices"), "place", ("{x}.size(0)", "{k}"), ">",
        _TOP, "rank < {k}", "int64", _rows,
    ),
    "logcumsumexp": Index(
        ("torch.logcumsumexp({x}, dim={d})", "{x}.logcumsumexp(dim={d})"), _WHOLE,
        ("int first = {i} / ({R} * {inner}) * {R} * {inner} + {i} % {inner};", "float m = {x}[first];",
         "for (int k = first; k <= {i}; k += {inner}) m = fmaxf(m, {x}[k]);", "float t = 0.0f;",
         "for (int k = first; k <= {i}; k += {inner}) t += expf({x}[k] - m);", "float {v} = m + logf(t);"),
        sizes=_ALONG, suits=_short, numbers=_dimension, blurs=True, group="scan",
    ),
    "diff": Index(
        ("torch.diff({x}, dim=1)", "torch.diff({x})"), ("{x}.size(0)", "{W} - 1"),
        ("int at = {i} / ({W} - 1) * {W} + {i} % ({W} - 1);", "float {v} = {x}[at + 1] - {x}[at];"),
        sizes=_W, suits=lambda shape: shape[1] > 4, blurs=True, group="scan",
    ),
}  # fmt: skip


EMBEDDING = {"embedding": Special("move", embedding, _tokens, (1, 2), weak=True)}
