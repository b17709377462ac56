"""Kernels in which one thread (or one loop iteration) computes one output element: maps, movements, windows."""

from __future__ import annotations

from collections.abc import Callable

from dice.data.synthetic.cuda.scope import Function, Scope, block, ceil_div, indent
from dice.data.synthetic.graph import Element, Map, Value

MAP_STYLES = ("naive", "grid_stride", "float4", "unrolled")
ELEMENT_STYLES = ("naive", "grid_stride")
SLOW_STYLES = ("single_block", "chunked")
TILE = 32
_PER_THREAD = 4
_CHUNK = 64

Body = Callable[[str], list[str]]
"""Statements that compute and store the output element of an index."""


def lower_maps(_: None, maps: list[Map], after: list[Map], source: Value, style: str, scope: Scope) -> Function:
    """A chain of element-wise operators on one tensor."""
    x = scope.tensor(source)

    def body(index: str) -> list[str]:
        return scope.store(maps, index, x, f"{x}[{index}]")

    alloc = scope.empty_like(x)
    count = f"{x}.numel()"
    if style == "float4":
        return _vectorised(scope, maps, x, alloc, count)
    return _lower(scope, body, alloc, count, style)


def lower_element(
    anchor: Element, before: list[Map], maps: list[Map], source: Value, style: str, scope: Scope
) -> Function:
    """An indexed operator and the element-wise operators that follow it."""
    keys = scope.keys(anchor.sizes, anchor.operands, anchor.scalars, scope.tensor(source))
    alloc = scope.new(keys[anchor.like], anchor.alloc, keys)
    if style == "tiled" and anchor.transposes:
        return _transposed(scope, maps, keys, anchor.transposes, alloc)
    if style == "shared_weights" and anchor.conv:
        return _shared_weights(scope, anchor, maps, keys, alloc)
    words = scope.words
    simple = not maps and not anchor.when and anchor.lines[-1].startswith("float {v} = ")

    def body(index: str) -> list[str]:
        lines = [line.format(**keys, i=index, v=words.value) for line in anchor.lines]
        at = anchor.at.format(**keys, i=index)
        if simple:  # the last line only names the value: store it at once
            expression = lines.pop().partition(" = ")[2].removesuffix(";")
            return [*lines, f"{words.out}[{at}] = {expression};"]
        stored = scope.store(maps, at, words.out)
        when = anchor.when.format(**keys, i=index)
        return [*lines, *(block(f"if ({when})", stored) if when else stored)]

    return _lower(scope, body, alloc, anchor.over.format(**keys) or f"{words.out}.numel()", style)


def _lower(scope: Scope, body: Body, alloc: str, count: str, style: str) -> Function:
    w, i = scope.words, scope.words.index
    lines = body(i)  # declares every size before the element count, so that the count is the last argument
    n = scope.size(w.size, count, late=count.startswith(f"{w.out}."))
    threads, blocks = w.block, ceil_div(n, w.block)
    comment = ""
    if style == "naive":
        lines = scope.guarded(lines, n)
        comment = "// one thread for each element"
    elif style == "grid_stride":
        lines = block(f"for (int {i} = {scope.thread}; {i} < {n}; {i} += gridDim.x * blockDim.x)", lines)
        blocks = f"{blocks} < 4096 ? {blocks} : 4096" if w.early_return else "1024"
        comment = "// grid-stride loop"
    elif style == "unrolled":
        each = [f"int {i} = base + k * blockDim.x;", *block(f"if ({i} < {n})", lines)]
        first = f"int base = blockIdx.x * blockDim.x * {_PER_THREAD} + threadIdx.x;"
        lines = [first, "#pragma unroll", *block(f"for (int k = 0; k < {_PER_THREAD}; ++k)", each)]
        blocks = ceil_div(n, threads, _PER_THREAD)
        comment = f"// {_PER_THREAD} elements for each thread"
    elif style == "single_block":
        lines = block(f"for (int {i} = threadIdx.x; {i} < {n}; {i} += blockDim.x)", lines)
        blocks = "1"
    elif style == "chunked":
        loop = f"for (int {i} = base; {i} < base + {_CHUNK} && {i} < {n}; ++{i})"
        lines = [f"int base = ({scope.thread}) * {_CHUNK};", *block(loop, lines)]
        threads = 64
        blocks = ceil_div(n, threads, _CHUNK)
    else:
        raise KeyError(f"no element-wise style {style!r}")
    return scope.one_kernel([comment, *lines] if comment and w.comments else lines, alloc, blocks, threads)


def _vectorised(scope: Scope, maps: list[Map], x: str, alloc: str, count: str) -> Function:
    w, i, v = scope.words, scope.words.index, scope.words.value
    inner = scope.apply(maps, f"{i} + k", x)
    tail = scope.store(maps, i, x, f"{x}[{i}]")
    n = scope.size(w.size, count)
    lines = [
        f"int {i} = (blockIdx.x * blockDim.x + threadIdx.x) * 4;",
        f"if ({i} + 3 < {n}) {{",
        f"    float4 pack = *reinterpret_cast<const float4*>({x} + {i});",
        "    float r[4] = {pack.x, pack.y, pack.z, pack.w};",
        "    #pragma unroll",
        *indent(block("for (int k = 0; k < 4; ++k)", [f"float {v} = r[k];", *inner, f"r[k] = {v};"])),
        f"    *reinterpret_cast<float4*>({w.out} + {i}) = make_float4(r[0], r[1], r[2], r[3]);",
        "} else {",
        *(["    // the last elements, when the count is no multiple of four"] if w.comments else []),
        *indent(block(f"for (; {i} < {n}; ++{i})", tail)),
        "}",
    ]
    return scope.one_kernel(lines, alloc, ceil_div(n, w.block, 4), w.block, suffix="_vec4" if w.synonyms % 2 else "")


def _transposed(scope: Scope, maps: list[Map], keys: dict[str, str], axes: tuple[str, str], alloc: str) -> Function:
    """Matrix transpose through shared memory, padded against bank conflicts."""
    w, x = scope.words, keys["x"]
    rows, columns = keys[axes[0]], keys[axes[1]]
    tile = TILE if w.block >= 256 else 16
    lines = [
        f"__shared__ float tile[{tile}][{tile + 1}];",
        f"int tx = blockIdx.x * {tile} + threadIdx.x;",
        f"int ty = blockIdx.y * {tile} + threadIdx.y;",
        f"if (tx < {columns} && ty < {rows}) tile[threadIdx.y][threadIdx.x] = {x}[ty * {columns} + tx];",
        "__syncthreads();",
        f"tx = blockIdx.y * {tile} + threadIdx.x;",
        f"ty = blockIdx.x * {tile} + threadIdx.y;",
        f"if (tx < {rows} && ty < {columns}) {{",
        f"    int {w.index} = ty * {rows} + tx;",
        *indent(scope.store(maps, w.index, w.out, "tile[threadIdx.x][threadIdx.y]")),
        "}",
    ]
    blocks = f"({columns} + {tile - 1}) / {tile}, ({rows} + {tile - 1}) / {tile}"
    return scope.one_kernel(lines, alloc, blocks, f"{tile}, {tile}")


def _shared_weights(scope: Scope, anchor: Element, maps: list[Map], keys: dict[str, str], alloc: str) -> Function:
    """A convolution whose block keeps the weights of its output channel in shared memory."""
    w, conv = scope.words, anchor.conv
    assert conv is not None
    keys = {**keys, "v": w.value, "p": "t", "image": "a", "channel": "o", "cache": "cache"}
    weights, pixels = conv.weights.format(**keys), conv.pixels.format(**keys)
    channels = keys["OC"]
    pixel = [line.format(**keys) for line in conv.lines]
    at = f"int {w.index} = (a * {channels} + o) * {pixels} + t;"
    lines = [
        "extern __shared__ float cache[];",
        f"int o = blockIdx.x % {channels};",
        f"int a = blockIdx.x / {channels};",
        f"for (int k = threadIdx.x; k < {weights}; k += blockDim.x) cache[k] = {keys['w']}[o * {weights} + k];",
        "__syncthreads();",
        *block(
            f"for (int t = threadIdx.x; t < {pixels}; t += blockDim.x)",
            [*pixel, at, *scope.store(maps, w.index, w.out)],
        ),
    ]
    blocks = f"{w.out}.size(0) * {channels}"
    return scope.one_kernel(lines, alloc, blocks, min(w.block, 256), f"{weights} * sizeof(float)")
