"""Operators that move, select or repeat elements."""

from __future__ import annotations

from collections.abc import Callable

from dice.data.synthetic.builder import Builder, Refused
from dice.data.synthetic.families.registry import HELDOUT, Family
from dice.data.synthetic.graph import Element, Value

Move = Callable[[Builder, Value], Value]


def _moved(b: Builder, name: str, code: str, body: Element, x: Value, shape: tuple[int, ...], *more: Value) -> Value:
    return b.step(name, code, body, [x, *more], shape, x.probes, exact=x.exact)


def transpose(b: Builder, x: Value) -> Value:
    """Swap the two dimensions of a matrix, in memory too."""
    forms = ("{0}.t().contiguous()", "{0}.transpose(0, 1).contiguous()", "{0}.T.contiguous()")
    lines = ("float {v} = {x}[({i} % {rows_in}) * {cols_in} + {i} / {rows_in}];",)
    sizes = {"rows_in": "{x}.size(0)", "cols_in": "{x}.size(1)"}
    body = Element(lines, sizes, ("{cols_in}", "{rows_in}"), transposes=("rows_in", "cols_in"))
    return _moved(b, "transpose", b.draw.pick(forms), body, x, x.shape[::-1])


def permute(b: Builder, x: Value) -> Value:
    """Channels first to channels last, in memory too."""
    if len(x.shape) == 3:
        lines = (
            "int ch = {i} % {C};",
            "int p = ({i} / {C}) % {L};",
            "int img = {i} / ({C} * {L});",
            "float {v} = {x}[(img * {C} + ch) * {L} + p];",
        )
        sizes = {"C": "{x}.size(1)", "L": "{x}.size(2)"}
        body = Element(lines, sizes, ("{x}.size(0)", "{L}", "{C}"))
        forms = ("{0}.transpose(1, 2).contiguous()", "{0}.permute(0, 2, 1).contiguous()")
        return _moved(b, "permute", b.draw.pick(forms), body, x, (x.shape[0], x.shape[2], x.shape[1]))
    lines = (
        "int ch = {i} % {C};",
        "int p = ({i} / {C}) % ({H} * {W});",
        "int img = {i} / ({C} * {H} * {W});",
        "float {v} = {x}[(img * {C} + ch) * {H} * {W} + p];",
    )
    sizes = {"C": "{x}.size(1)", "H": "{x}.size(2)", "W": "{x}.size(3)"}
    body = Element(lines, sizes, ("{x}.size(0)", "{H}", "{W}", "{C}"))
    n, c, h, w = x.shape
    return _moved(b, "permute", "{0}.permute(0, 2, 3, 1).contiguous()", body, x, (n, h, w, c))


def pad(b: Builder, x: Value) -> Value:
    """A constant border around the last one or two dimensions."""
    d = b.draw
    value = 0.0 if d.tiny or d.chance(0.5) else d.number(-2, 2, 0.5)
    left, right = d.pick(((1, 1), (2, 2), (0, 3), (1, 2), (2, 1), (3, 0)))
    option = "" if value == 0 else f", value={value!r}"
    if len(x.shape) == 4:
        code = f"F.pad({{0}}, ({left}, {right}, {left}, {right}){option})"
        lines = (
            f"int iw = {{i}} % {{OW}} - {left};",
            f"int ih = ({{i}} / {{OW}}) % {{OH}} - {left};",
            "int ch = {i} / ({OW} * {OH});",
            "bool inside = ih >= 0 && ih < {H} && iw >= 0 && iw < {W};",
            f"float {{v}} = inside ? {{x}}[(ch * {{H}} + ih) * {{W}} + iw] : {value!r}f;",
        )
        extra = left + right
        sizes = {"H": "{x}.size(2)", "W": "{x}.size(3)", "OH": f"{{H}} + {extra}", "OW": f"{{W}} + {extra}"}
        shape = (*x.shape[:2], x.shape[2] + extra, x.shape[3] + extra)
        alloc: tuple[str, ...] = ("{x}.size(0)", "{x}.size(1)", "{OH}", "{OW}")
    else:
        code = f"F.pad({{0}}, ({left}, {right}){option})"
        lines = (
            "int row = {i} / {OW};",
            f"int col = {{i}} % {{OW}} - {left};",
            f"float {{v}} = col >= 0 && col < {{W}} ? {{x}}[row * {{W}} + col] : {value!r}f;",
        )
        last = len(x.shape) - 1
        sizes = {"W": f"{{x}}.size({last})", "OW": f"{{W}} + {left + right}"}
        shape = (*x.shape[:-1], x.shape[-1] + left + right)
        alloc = (*(f"{{x}}.size({axis})" for axis in range(last)), "{OW}")
    return _moved(b, "pad", code, Element(lines, sizes, alloc), x, shape)


def upsample(b: Builder, x: Value) -> Value:
    """Nearest-neighbour enlargement by a whole factor."""
    f = b.draw.pick((2, 2, 3, 4))
    if x.numel * f * f > 2e7:
        raise Refused("upsample")
    lines = (
        "int ow = {i} % {OW};",
        "int oh = ({i} / {OW}) % {OH};",
        "int ch = {i} / ({OW} * {OH});",
        f"float {{v}} = {{x}}[(ch * {{H}} + oh / {f}) * {{W}} + ow / {f}];",
    )
    sizes = {"H": "{x}.size(2)", "W": "{x}.size(3)", "OH": f"{{H}} * {f}", "OW": f"{{W}} * {f}"}
    code = f'F.interpolate({{0}}, scale_factor={f}, mode="nearest")'
    if b.modules and not b.draw.tiny:
        code = b.module("up", f'nn.Upsample(scale_factor={f}, mode="nearest")', stateful=False) + "({0})"
    body = Element(lines, sizes, ("{x}.size(0)", "{x}.size(1)", "{OH}", "{OW}"))
    return _moved(b, "upsample", code, body, x, (*x.shape[:2], x.shape[2] * f, x.shape[3] * f))


def flip(b: Builder, x: Value) -> Value:
    """Reverse the last dimension."""
    last = len(x.shape) - 1
    lines = ("int col = {i} % {W};", "float {v} = {x}[{i} - col + {W} - 1 - col];")
    code = b.draw.pick((f"torch.flip({{0}}, [{last}])", "torch.flip({0}, dims=(-1,))", f"{{0}}.flip({last})"))
    alloc = tuple(f"{{x}}.size({axis})" for axis in range(last + 1))
    return _moved(b, "flip", code, Element(lines, {"W": f"{{x}}.size({last})"}, alloc), x, x.shape)


def roll(b: Builder, x: Value) -> Value:
    """Shift the last dimension cyclically."""
    last = len(x.shape) - 1
    if x.shape[-1] < 4:
        raise Refused("roll")
    by = b.draw.rng.randrange(1, min(x.shape[-1], 32))
    lines = ("int col = {i} % {W};", f"float {{v}} = {{x}}[{{i}} - col + (col + {{W}} - {by}) % {{W}}];")
    code = b.draw.pick((f"torch.roll({{0}}, {by}, {last})", f"torch.roll({{0}}, shifts={by}, dims=-1)"))
    alloc = tuple(f"{{x}}.size({axis})" for axis in range(last + 1))
    return _moved(b, "roll", code, Element(lines, {"W": f"{{x}}.size({last})"}, alloc), x, x.shape)


def triangle(b: Builder, x: Value, name: str) -> Value:
    """Keep the lower or upper triangle."""
    shift = 0 if b.draw.tiny else b.draw.pick((0, 0, 1, -1, 2))
    option = f", diagonal={shift}" if shift else ""
    bound = "row" if shift == 0 else f"row + {shift}" if shift > 0 else f"row - {-shift}"
    lines = (
        "int row = ({i} / {W}) % {H};",
        "int col = {i} % {W};",
        f"float {{v}} = col {'<=' if name == 'tril' else '>='} {bound} ? {{x}}[{{i}}] : 0.0f;",
    )
    last = len(x.shape) - 1
    sizes = {"H": f"{{x}}.size({last - 1})", "W": f"{{x}}.size({last})"}
    alloc = tuple(f"{{x}}.size({axis})" for axis in range(last + 1))
    return _moved(b, name, f"torch.{name}({{0}}{option})", Element(lines, sizes, alloc), x, x.shape)


def repeat_rows(b: Builder, x: Value) -> Value:
    """Repeat every element of the last dimension several times."""
    times = b.draw.pick((2, 3, 4))
    if x.numel * times > 2e7:
        raise Refused("repeat_interleave")
    last = len(x.shape) - 1
    alloc = (*(f"{{x}}.size({axis})" for axis in range(last)), f"{{x}}.size({last}) * {times}")
    code = b.draw.pick(
        (f"torch.repeat_interleave({{0}}, {times}, dim={last})", f"{{0}}.repeat_interleave({times}, dim=-1)")
    )
    body = Element((f"float {{v}} = {{x}}[{{i}} / {times}];",), {}, alloc)
    return _moved(b, "repeat_interleave", code, body, x, (*x.shape[:-1], x.shape[-1] * times))


def concat(b: Builder, x: Value) -> Value:
    """Two matrices side by side."""
    if len(b.inputs) > 1:
        raise Refused("concat")
    y = b.input((x.shape[0], b.draw.features()), "y")
    lines = (
        "int row = {i} / ({A} + {B});",
        "int col = {i} % ({A} + {B});",
        "float {v} = col < {A} ? {x}[row * {A} + col] : {y}[row * {B} + col - {A}];",
    )
    body = Element(lines, {"A": "{x}.size(1)", "B": "{y}.size(1)"}, ("{x}.size(0)", "{A} + {B}"), {"y": y})
    code = b.draw.pick(("torch.cat([{0}, {1}], dim=1)", "torch.cat(({0}, {1}), dim=-1)"))
    return _moved(b, "concat", code, body, x, (x.shape[0], x.shape[1] + y.shape[1]), y)


def strided_slice(b: Builder, x: Value) -> Value:
    """Every second or third column."""
    step = b.draw.pick((2, 2, 3))
    columns = (x.shape[-1] + step - 1) // step
    last = len(x.shape) - 1
    lines = (f"float {{v}} = {{x}}[({{i}} / {{OW}}) * {{W}} + ({{i}} % {{OW}}) * {step}];",)
    sizes = {"W": f"{{x}}.size({last})", "OW": f"({{W}} + {step - 1}) / {step}"}
    alloc = (*(f"{{x}}.size({axis})" for axis in range(last)), "{OW}")
    code = f"{{0}}[..., ::{step}].contiguous()"
    return _moved(b, "strided_slice", code, Element(lines, sizes, alloc), x, (*x.shape[:-1], columns))


def channel_shuffle(b: Builder, x: Value) -> Value:
    """Channels of several groups interleaved."""
    options = [g for g in (2, 3, 4, 8) if x.shape[1] % g == 0 and x.shape[1] > g]
    if not options:
        raise Refused("channel_shuffle")
    groups = b.draw.pick(options)
    lines = (
        "int p = {i} % {P};",
        "int oc = ({i} / {P}) % {C};",
        "int img = {i} / ({P} * {C});",
        f"int ic = (oc % {groups}) * ({{C}} / {groups}) + oc / {groups};",
        "float {v} = {x}[(img * {C} + ic) * {P} + p];",
    )
    sizes = {"C": "{x}.size(1)", "P": "{x}.size(2) * {x}.size(3)"}
    alloc = tuple(f"{{x}}.size({axis})" for axis in range(4))
    return _moved(b, "channel_shuffle", f"F.channel_shuffle({{0}}, {groups})", Element(lines, sizes, alloc), x, x.shape)


def pixel_shuffle(b: Builder, x: Value) -> Value:
    """Channels to a finer grid."""
    n, c, h, w = x.shape
    options = [r for r in (2, 3) if c % (r * r) == 0]
    if not options:
        raise Refused("pixel_shuffle")
    r = b.draw.pick(options)
    lines = (
        "int ow = {i} % {OW};",
        "int oh = ({i} / {OW}) % {OH};",
        "int ch = {i} / ({OW} * {OH});",
        f"int ic = ch * {r * r} + (oh % {r}) * {r} + ow % {r};",
        f"float {{v}} = {{x}}[(ic * {{H}} + oh / {r}) * {{W}} + ow / {r}];",
    )
    sizes = {"H": "{x}.size(2)", "W": "{x}.size(3)", "OH": f"{{H}} * {r}", "OW": f"{{W}} * {r}"}
    body = Element(lines, sizes, ("{x}.size(0)", f"{{x}}.size(1) / {r * r}", "{OH}", "{OW}"))
    return _moved(b, "pixel_shuffle", f"F.pixel_shuffle({{0}}, {r})", body, x, (n, c // (r * r), h * r, w * r))


def embedding(b: Builder, _: Value) -> Value:
    """Rows of a table, selected by integer tokens."""
    d = b.draw
    tokens = b.inputs[0].value
    rows, width = (
        (d.pick((16, 20, 32, 50)), d.features()) if d.small else (d.pick((1000, 2000, 5000, 10000)), d.features())
    )
    b.inputs[0].text = (
        f"torch.randint(0, {rows}, ({{s}},))" if len(tokens.shape) == 1 else f"torch.randint(0, {rows}, ({{s}}))"
    )
    made = f"nn.Embedding({b.argument('vocab_size', rows)}, {b.argument('embed_dim', width)})"
    layer = b.module(d.pick(("embedding", "embed", "emb", "table")), made)
    table = Value((rows, width), "table", f"{layer}.weight")
    lines = ("float {v} = {w}[{x}[{i} / {D}] * {D} + {i} % {D}];",)
    last = len(tokens.shape)
    body = Element(
        lines, {"D": "{w}.size(1)"}, (*(f"{{x}}.size({axis})" for axis in range(last)), "{D}"), {"w": table}, like="w"
    )
    return b.step("embedding", f"{layer}({{0}})", body, [tokens], (*tokens.shape, width))


def index_select(b: Builder, x: Value) -> Value:
    """Rows selected by an index vector."""
    if len(b.inputs) > 1:
        raise Refused("index_select")
    count = max(4, x.shape[0] // b.draw.pick((1, 2, 4)))
    name = "index" if b.draw.tiny else b.draw.pick(("index", "indices", "rows_wanted"))
    index = b.input((count,), name, dtype="int64", text=f"torch.randint(0, {x.shape[0]}, ({{s}},))")
    lines = ("float {v} = {x}[{y}[{i} / {D}] * {D} + {i} % {D}];",)
    body = Element(lines, {"D": "{x}.size(1)"}, ("{y}.size(0)", "{D}"), {"y": index})
    code = b.draw.pick(("torch.index_select({0}, 0, {1})", "{0}[{1}]", "{0}.index_select(0, {1})"))
    return _moved(b, "index_select", code, body, x, (count, x.shape[1]), index)


def gather(b: Builder, x: Value) -> Value:
    """Elements of each row, selected by an index matrix."""
    if len(b.inputs) > 1:
        raise Refused("gather")
    count = max(2, x.shape[1] // b.draw.pick((1, 2, 4)))
    index = b.input((x.shape[0], count), "index", dtype="int64", text=f"torch.randint(0, {x.shape[1]}, ({{s}}))")
    lines = ("float {v} = {x}[({i} / {K}) * {D} + {y}[{i}]];",)
    body = Element(lines, {"D": "{x}.size(1)", "K": "{y}.size(1)"}, ("{x}.size(0)", "{K}"), {"y": index})
    code = b.draw.pick(("torch.gather({0}, 1, {1})", "torch.gather({0}, dim=1, index={1})", "{0}.gather(1, {1})"))
    return _moved(b, "gather", code, body, x, (x.shape[0], count), index)


def families() -> list[Family]:
    """All movements as families."""

    def of_rank(*ranks: int) -> Callable[[Builder], Value]:
        return lambda b: b.input(b.draw.shape(b.draw.pick(ranks)))

    def square(b: Builder) -> Value:
        if b.draw.tiny or b.draw.chance(0.6):
            size = (
                b.draw.pick((12, 16, 20, 24, 32, 40))
                if b.draw.small
                else b.draw.pick((512, 768, 1000, 1024, 1500, 2048))
            )
            return b.input((size, size), dims=("rows", "rows"))
        return b.input(b.draw.shape(3))

    def tokens(b: Builder) -> Value:
        d = b.draw
        length = d.length()
        batch = d.pick((2, 3, 4, 6)) if d.small else d.pick((8, 16, 32, 64))
        shape = (batch * length,) if d.chance(0.3) else (batch, length)
        return b.input(
            shape, "tokens" if not d.tiny else "x", dtype="int64", dims=("batch_size", "length")[: len(shape)]
        )

    def grid(b: Builder) -> Value:
        d = b.draw
        channels = d.pick((4, 8, 12, 16)) if d.small else d.pick((16, 32, 36, 64))
        size = d.side()
        return b.input((d.pick((1, 2)) if d.small else d.pick((4, 8, 16)), channels, size, size))

    def tri(name: str) -> Move:
        return lambda b, x: triangle(b, x, name)

    def entry(
        name: str, make: Move, start: Callable[[Builder], Value], *ranks: int, tiny: bool = False, weak: bool = False
    ) -> Family:
        return Family(name, "move", make, start, tiny, name in HELDOUT, ranks, weak)

    return [
        entry("transpose", transpose, of_rank(2), 2, tiny=True),
        entry("permute", permute, of_rank(3, 4), 3, 4),
        entry("pad", pad, of_rank(2, 4), 2, 3, 4, tiny=True),
        entry("upsample", upsample, of_rank(4), 4),
        entry("flip", flip, of_rank(2, 3), 2, 3, 4),
        entry("roll", roll, of_rank(2, 3), 2, 3, tiny=True),
        entry("tril", tri("tril"), square, 2, 3, tiny=True),
        entry("triu", tri("triu"), square, 2, 3, tiny=True),
        entry("repeat_interleave", repeat_rows, of_rank(2), 2, tiny=True),
        entry("concat", concat, of_rank(2), 2, tiny=True),
        entry("strided_slice", strided_slice, of_rank(2), 2, 3),
        entry("channel_shuffle", channel_shuffle, grid, 4),
        entry("pixel_shuffle", pixel_shuffle, grid, 4),
        entry("embedding", embedding, tokens, 1, 2, tiny=True, weak=True),
        entry("index_select", index_select, of_rank(2), 2, tiny=True),
        entry("gather", gather, of_rank(2), 2, tiny=True),
    ]
