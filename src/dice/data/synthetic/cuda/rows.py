"""Row-wise kernels: reductions, normalisations, arg-max and scans over [rows / inner, R, inner]."""

from __future__ import annotations

from dataclasses import dataclass

from dice.data.synthetic.cuda.scope import Function, Scope, ceil_div, indent
from dice.data.synthetic.draw import LOCAL_NAMES, Words
from dice.data.synthetic.graph import Arg, Map, Pass, Rows, Scan, Value

ROW_STYLES = ("warp", "block", "shared", "cached", "thread")
ARG_STYLES = ("warp", "shared", "thread")
SCAN_STYLES = ("warp", "block", "thread")
SLOW_STYLES = ("single_block",)
MASK = "0xffffffff"
MAX_CACHED = 8192
"""Floats of a row that are kept in shared memory (32 KiB)."""

_COMBINE = {
    "sum": "{a} += {b};",
    "prod": "{a} *= {b};",
    "max": "{a} = fmaxf({a}, {b});",
    "min": "{a} = fminf({a}, {b});",
}
_JOIN = {"sum": "{a} + {b}", "prod": "{a} * {b}", "max": "fmaxf({a}, {b})", "min": "fminf({a}, {b})"}


def start_of(how: str, words: Words) -> str:
    """Neutral element of a reduction."""
    lowest = words.negative_infinity
    return {"sum": "0.0f", "prod": "1.0f", "max": lowest, "min": lowest.removeprefix("-")}[how]


def warp_helper(how: str) -> tuple[str, str]:
    """Name and text of a device function that reduces over a warp; every lane gets the result."""
    name = f"warp_{how}"
    step = _JOIN[how].format(a="t", b=f"__shfl_xor_sync({MASK}, t, o)")
    text = f"""__device__ __forceinline__ float {name}(float t) {{
    for (int o = 16; o > 0; o >>= 1) t = {step};
    return t;
}}
"""
    return name, text


def block_helper(how: str, words: Words) -> tuple[str, str]:
    """The same over a block of whole warps, by shuffles and one shared array."""
    name, start = f"block_{how}", start_of(how, words)
    text = f"""__device__ __forceinline__ float {name}(float t) {{
    __shared__ float part[32];
    int lane = threadIdx.x % 32;
    t = warp_{how}(t);
    __syncthreads();
    if (lane == 0) part[threadIdx.x / 32] = t;
    __syncthreads();
    t = lane < blockDim.x / 32 ? part[lane] : {start};
    return warp_{how}(t);
}}
"""
    return name, text


@dataclass(slots=True)
class Team:
    """The threads that share one row: how they loop over it, combine results, and which one writes."""

    style: str
    threads: int
    head: list[str]
    """Statements that define the row."""
    loop: str
    """Header of the loop over the row, with {j} and {R}."""
    leader: str
    """Condition for the thread that writes; empty when every thread has its own row."""
    blocks: str


def team_of(style: str, scope: Scope, rows: str) -> Team:
    """Threads and launch shape of a style."""
    words = scope.words
    row, threads = words.row, max(words.block, 32)
    if style in ("thread", "single_block"):
        loop = "for (int {j} = 0; {j} < {R}; ++{j})"
        if style == "single_block":
            head = [f"for (int {row} = threadIdx.x; {row} < {rows}; {row} += blockDim.x) {{"]
            return Team(style, 256, head, loop, "", "1")
        head = [f"int {row} = {scope.thread};", f"if ({row} >= {rows}) return;"]
        threads = min(threads, 256)
        return Team(style, threads, head, loop, "", ceil_div(rows, threads))
    if style == "warp":
        threads = min(threads, 256)
        head = [
            f"int {row} = (blockIdx.x * blockDim.x + threadIdx.x) / 32;",
            "int lane = threadIdx.x % 32;",
            f"if ({row} >= {rows}) return;",
        ]
        return Team(
            style,
            threads,
            head,
            "for (int {j} = lane; {j} < {R}; {j} += 32)",
            "lane == 0",
            f"({rows} * 32 + {{{threads}}} - 1) / {{{threads}}}",
        )
    head = [f"int {row} = blockIdx.x;"]
    loop = "for (int {j} = threadIdx.x; {j} < {R}; {j} += blockDim.x)"
    return Team(style, threads, head, loop, "threadIdx.x == 0", rows)


def combine(scope: Scope, team: Team, how: str, name: str) -> list[str]:
    """Statements that give every thread of the team the reduction of `name`."""
    if team.style in ("thread", "single_block"):
        return []
    if team.style == "shared":
        step = _COMBINE[how].format(a="buf[threadIdx.x]", b="buf[threadIdx.x + o]")
        return [
            f"buf[threadIdx.x] = {name};",
            "__syncthreads();",
            "for (int o = blockDim.x / 2; o > 0; o >>= 1) {",
            f"    if (threadIdx.x < o) {step}",
            "    __syncthreads();",
            "}",
            f"{name} = buf[0];",
            "__syncthreads();",
        ]
    if team.style == "warp" and not scope.words.helpers:
        step = _COMBINE[how].format(a=name, b=f"__shfl_xor_sync({MASK}, {name}, o)")
        return [f"for (int o = 16; o > 0; o >>= 1) {step}"]
    warp, text = warp_helper(how)
    scope.helpers[warp] = text
    if team.style == "warp":
        return [f"{name} = {warp}({name});"]
    block, text = block_helper(how, scope.words)
    scope.helpers[block] = text
    return [f"{name} = {block}({name});"]


def _base(row: str, keys: dict[str, str]) -> str:
    if "inner" not in keys:
        return f"{row} * {keys['R']}"
    return f"({row} / {keys['inner']}) * {keys['R']} * {keys['inner']} + {row} % {keys['inner']}"


def _offset(keys: dict[str, str], column: str) -> str:
    return f"base + {column} * {keys['inner']}" if "inner" in keys else f"base + {column}"


def finish(scope: Scope, name: str, lines: list[str], alloc: str, team: Team, shared: str = "") -> Function:
    """Print kernel, helpers and host function of a row-wise kernel."""
    if team.style == "single_block":
        lines = [*team.head, *indent(lines[len(team.head) :]), "}"]
    launch = scope.configured(scope.launch(name), team.blocks, team.threads, shared)
    return scope.function(scope.kernel(name, lines), alloc, launch)


def lower_rows(anchor: Rows, before: list[Map], after: list[Map], source: Value, style: str, scope: Scope) -> Function:
    """A row-wise operator; `before` applies to every element that is read, `after` to every value that is written."""
    x, w = scope.tensor(source), scope.words
    keys = scope.keys(anchor.sizes, anchor.operands, anchor.scalars, x)
    keys |= {"row": w.row, "j": w.column, "v": w.value}
    text = "".join((anchor.value, *(f"{{{one.name}}}{one.term}{''.join(one.then)}" for one in anchor.passes)))
    keys |= {name: scope.local(name) for name in LOCAL_NAMES if f"{{{name}}}" in text}
    team = team_of(style, scope, keys["rows"])
    cached = style == "cached"

    def load(offset: str, again: bool) -> list[str]:
        if cached and again:
            return [f"float {w.value} = cache[{w.column}];"]
        lines = [f"float {w.value} = {x}[{offset}];", *scope.apply(before, offset, x)]
        return [*lines, f"cache[{w.column}] = {w.value};"] if cached else lines

    lines = [*team.head]
    if cached:
        lines.append("extern __shared__ float cache[];")
    if style == "shared":
        lines.append(f"__shared__ float buf[{team.threads}];")
    if not anchor.at:
        lines.append(f"int base = {_base(w.row, keys)};")
    lines += [line.format(**keys) for line in anchor.row_lines]
    loop = team.loop.format(j=w.column, R=keys["R"])
    uses_index = any("{i}" in text for text in (anchor.value, *(one.term for one in anchor.passes)))
    uses_index = uses_index or any(operand.access != "one" for one in before for operand in one.operands.values())
    uses_index = uses_index or bool(anchor.at)
    offset = anchor.at.format(**keys) if anchor.at else _offset(keys, w.column)
    at = w.index if uses_index else offset
    keys["i"] = at
    index_line = [f"int {w.index} = {offset};"] if uses_index else []
    for number, one in enumerate(anchor.passes):
        lines += _pass(one, keys, w, loop, index_line, load(at, number > 0), cached, x, at, not before)
        lines += combine(scope, team, one.how, keys[one.name])
        lines += [line.format(**keys) for line in one.then]
    shared = f"{keys['R']} * sizeof(float)" if cached else ""
    if anchor.mode == "element":
        lines += [f"{loop} {{", *indent([*index_line, *load(at, True)])]
        value = anchor.value.format(**keys)
        store = scope.store(after, at, w.out) if after else [f"{w.out}[{at}] = {value};"]
        lines += [*indent([f"{w.value} = {value};", *store] if after else store), "}"]
        return finish(scope, scope.kernel_name(), lines, scope.empty_like(x), team, shared)
    value = anchor.value.format(**keys)
    if anchor.mode == "total":
        store = [f"atomicAdd({w.out}, ({value}) / {keys['rows']});"]
        alloc = f"torch::zeros({{}}, {scope.options(x)})"
    else:
        store = scope.store(after, w.row, w.out, value)
        alloc = f"torch::empty({{{', '.join(size.format(**keys) for size in anchor.alloc)}}}, {scope.options(x)})"
    if not team.leader:
        lines += store
    elif len(store) == 1:
        lines.append(f"if ({team.leader}) {store[0]}")
    else:
        lines += [f"if ({team.leader}) {{", *indent(store), "}"]
    return finish(scope, scope.kernel_name(), lines, alloc, team, shared)


def _pass(
    one: Pass, keys: dict[str, str], words: Words, loop: str, index: list[str], load: list[str], cached: bool, x: str,
    at: str, plain: bool,
) -> list[str]:  # fmt: skip
    name = keys[one.name]
    start = f"float {name} = {start_of(one.how, words)};"
    if plain and not cached and one.term.count("{v}") == 1:  # read and use at once
        term = one.term.format(**{**keys, "v": f"{x}[{at}]"})
        step = _COMBINE[one.how].format(a=name, b=term)
        if not index:
            return [start, f"{loop} {step}"]
        return [start, f"{loop} {{", *indent([*index, step]), "}"]
    step = _COMBINE[one.how].format(a=name, b=one.term.format(**keys))
    return [start, f"{loop} {{", *indent([*index, *load, step]), "}"]


def lower_arg(anchor: Arg, source: Value, style: str, scope: Scope) -> Function:
    """Index of the best element of each row; of equal ones the first."""
    x, w = scope.tensor(source), scope.words
    keys = scope.keys(anchor.sizes, {}, {}, x)
    team = team_of(style, scope, keys["rows"])
    start = start_of("max" if anchor.better == ">" else "min", w)
    loop = team.loop.format(j=w.column, R=keys["R"])
    better = anchor.better
    lines = [*team.head]
    if style == "shared":
        lines += [f"__shared__ float buf[{team.threads}];", f"__shared__ int src[{team.threads}];"]
    lines += [
        f"int base = {_base(w.row, keys)};",
        f"float best = {start};",
        "int at = 0;",
        f"{loop} {{",
        f"    float {w.value} = {x}[{_offset(keys, w.column)}];",
        f"    if ({w.value} {better} best) {{",
        f"        best = {w.value};",
        f"        at = {w.column};",
        "    }",
        "}",
    ]
    if style == "warp":
        lines += [
            "for (int o = 16; o > 0; o >>= 1) {",
            f"    float t = __shfl_xor_sync({MASK}, best, o);",
            f"    int k = __shfl_xor_sync({MASK}, at, o);",
            f"    if (t {better} best || (t == best && k < at)) {{",
            "        best = t;",
            "        at = k;",
            "    }",
            "}",
        ]
    elif style == "shared":
        lines += [
            "buf[threadIdx.x] = best;",
            "src[threadIdx.x] = at;",
            "__syncthreads();",
            "for (int o = blockDim.x / 2; o > 0; o >>= 1) {",
            "    if (threadIdx.x < o) {",
            "        float t = buf[threadIdx.x + o];",
            "        int k = src[threadIdx.x + o];",
            f"        if (t {better} buf[threadIdx.x] || (t == buf[threadIdx.x] && k < src[threadIdx.x])) {{",
            "            buf[threadIdx.x] = t;",
            "            src[threadIdx.x] = k;",
            "        }",
            "    }",
            "    __syncthreads();",
            "}",
            "at = src[0];",
        ]
    store = f"{w.out}[{w.row}] = at;"
    lines.append(f"if ({team.leader}) {store}" if team.leader else store)
    sizes = ", ".join(size.format(**keys) for size in anchor.alloc)
    alloc = f"torch::empty({{{sizes}}}, {scope.options(x)})"
    return finish(scope, scope.kernel_name(), lines, alloc, team)


def lower_scan(anchor: Scan, before: list[Map], after: list[Map], source: Value, style: str, scope: Scope) -> Function:
    """Running reduction along rows: serial, by warp shuffles with a carry, or a whole row in shared memory."""
    x, w = scope.tensor(source), scope.words
    keys = scope.keys(anchor.sizes, {}, {}, x)
    j, v, row, length = w.column, w.value, w.row, keys["R"]
    start = start_of(anchor.how, w)
    offset = _offset(keys, f"({length} - 1 - {j})" if anchor.reverse else j)
    base = f"int base = {_base(row, keys)};"
    load = [f"float {v} = {x}[{w.index}];", *scope.apply(before, w.index, x)]
    team = team_of(style, scope, keys["rows"])
    shared = ""
    if style in ("thread", "single_block"):
        step = _COMBINE[anchor.how].format(a="carry", b=v)
        lines = [*team.head, base, f"float carry = {start};", f"for (int {j} = 0; {j} < {length}; ++{j}) {{"]
        inner = [f"int {w.index} = {offset};", *load, step]
        inner += (
            scope.store(after, w.index, x, "carry") if not after else [f"{v} = carry;", *scope.store(after, w.index, x)]
        )
        lines += [*indent(inner), "}"]
    elif style == "warp":
        lines = [*team.head, base, f"float carry = {start};", f"for (int k = 0; k < {length}; k += 32) {{"]
        inner = [f"int {j} = k + lane;", f"int {w.index} = {offset};", f"float {v} = {start};"]
        inner += [f"if ({j} < {length}) {{", *indent([f"{v} = {x}[{w.index}];", *scope.apply(before, w.index, x)]), "}"]
        inner += ["for (int o = 1; o < 32; o <<= 1) {", f"    float t = __shfl_up_sync({MASK}, {v}, o);"]
        inner += [f"    if (lane >= o) {_COMBINE[anchor.how].format(a=v, b='t')}", "}"]
        inner += [_COMBINE[anchor.how].format(a=v, b="carry"), f"carry = __shfl_sync({MASK}, {v}, 31);"]
        inner += [f"if ({j} < {length}) {{", *indent(scope.store(after, w.index, x)), "}"]
        lines += [*indent(inner), "}"]
    else:
        threads = max(32, 1 << (anchor.length - 1).bit_length())
        team.threads = threads
        lines = [f"__shared__ float buf[{threads}];", *team.head, f"int {j} = threadIdx.x;", base]
        lines += [f"int {w.index} = {offset};", f"float {v} = {start};"]
        lines += [f"if ({j} < {length}) {{", *indent([f"{v} = {x}[{w.index}];", *scope.apply(before, w.index, x)]), "}"]
        lines += [f"buf[{j}] = {v};", "__syncthreads();", "for (int o = 1; o < blockDim.x; o <<= 1) {"]
        lines += [f"    float t = {j} >= o ? buf[{j} - o] : {start};", "    __syncthreads();"]
        lines += [f"    {_COMBINE[anchor.how].format(a=f'buf[{j}]', b='t')}", "    __syncthreads();", "}"]
        lines += [f"{v} = buf[{j}];", f"if ({j} < {length}) {{", *indent(scope.store(after, w.index, x)), "}"]
    return finish(scope, scope.kernel_name(), lines, scope.empty_like(x), team, shared)
