"""Row-wise kernels: reductions, normalisations, arg-max and scans over [rows / inner, R, inner]."""

from __future__ import annotations

from dataclasses import dataclass

from dice.data.synthetic.cuda.scope import Function, Scope, block, ceil_div, indent
from dice.data.synthetic.draw import LOCAL_NAMES, Words
from dice.data.synthetic.graph import Arg, Map, Rows, Scan, Value

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
SERIAL = "for (int {j} = 0; {j} < {R}; ++{j})"
"""The loop of a single thread."""


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

    def led(self, stored: list[str]) -> list[str]:
        """`stored` by the thread that writes."""
        if not self.leader:
            return stored
        condition = f"if ({self.leader})"
        return [f"{condition} {stored[0]}"] if len(stored) == 1 else block(condition, stored)


def team_of(style: str, scope: Scope, rows: str) -> Team:
    """Threads and launch shape of a style."""
    row, threads = scope.words.row, max(scope.words.block, 32)
    if style in ("thread", "warp"):
        threads = min(threads, 256)
    ends = f"if ({row} >= {rows}) return;"
    if style == "single_block":
        head = [f"for (int {row} = threadIdx.x; {row} < {rows}; {row} += blockDim.x) {{"]
        return Team(style, 256, head, SERIAL, "", "1")
    if style == "thread":
        return Team(style, threads, [f"int {row} = {scope.thread};", ends], SERIAL, "", ceil_div(rows, threads))
    if style == "warp":
        head = [f"int {row} = (blockIdx.x * blockDim.x + threadIdx.x) / 32;", "int lane = threadIdx.x % 32;", ends]
        loop = "for (int {j} = lane; {j} < {R}; {j} += 32)"
        return Team(style, threads, head, loop, "lane == 0", f"({rows} * 32 + {{{threads}}} - 1) / {{{threads}}}")
    loop = "for (int {j} = threadIdx.x; {j} < {R}; {j} += blockDim.x)"
    return Team(style, threads, [f"int {row} = blockIdx.x;"], loop, "threadIdx.x == 0", rows)


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


def finish(scope: Scope, lines: list[str], alloc: str, team: Team, shared: str = "") -> Function:
    """Host function of a row-wise kernel, whose statements follow those that define the row."""
    lines = [*team.head, *(lines if team.style != "single_block" else [*indent(lines), "}"])]
    return scope.one_kernel(lines, alloc, team.blocks, team.threads, shared)


def lower_rows(anchor: Rows, before: list[Map], after: list[Map], source: Value, style: str, scope: Scope) -> Function:
    """A row-wise operator; `before` applies to every element that is read, `after` to every value that is written."""
    x, w = scope.tensor(source), scope.words
    keys = scope.keys(anchor.sizes, anchor.operands, anchor.scalars, x)
    keys |= {"row": w.row, "j": w.column, "v": w.value}
    text = "".join((anchor.value, *(f"{{{one.name}}}{one.term}{''.join(one.then)}" for one in anchor.passes)))
    keys |= {name: scope.local(name) for name in LOCAL_NAMES if f"{{{name}}}" in text}
    team, cached = team_of(style, scope, keys["rows"]), style == "cached"
    indexed = anchor.at or any("{i}" in text for text in (anchor.value, *(one.term for one in anchor.passes)))
    indexed = indexed or any(operand.access != "one" for one in before for operand in one.operands.values())
    offset = anchor.at.format(**keys) if anchor.at else _offset(keys, w.column)
    at = keys["i"] = w.index if indexed else offset
    index = [f"int {w.index} = {offset};"] if indexed else []
    read = again = [*index, f"float {w.value} = {x}[{at}];", *scope.apply(before, at, x)]
    loop, lines, shared = team.loop.format(j=w.column, R=keys["R"]), list[str](), ""
    if cached:
        read = [*read, f"cache[{w.column}] = {w.value};"]
        again = [*index, f"float {w.value} = cache[{w.column}];"]
        lines, shared = ["extern __shared__ float cache[];"], f"{keys['R']} * sizeof(float)"
    if style == "shared":
        lines.append(f"__shared__ float buf[{team.threads}];")
    if not anchor.at:
        lines.append(f"int base = {_base(w.row, keys)};")
    lines += [line.format(**keys) for line in anchor.row_lines]
    for number, one in enumerate(anchor.passes):
        at_once = not before and not cached and one.term.count("{v}") == 1
        term = one.term.format(**(keys | {"v": f"{x}[{at}]"} if at_once else keys))
        body = index if at_once else again if number else read
        body = [*body, _COMBINE[one.how].format(a=keys[one.name], b=term)]
        lines.append(f"float {keys[one.name]} = {start_of(one.how, w)};")
        lines += [f"{loop} {body[0]}"] if len(body) == 1 else block(loop, body)
        lines += combine(scope, team, one.how, keys[one.name])
        lines += [line.format(**keys) for line in one.then]
    value, alloc = anchor.value.format(**keys), scope.new(x, anchor.alloc, keys)
    if anchor.mode == "element":
        stored = [f"{w.value} = {value};", *scope.store(after, at, w.out)] if after else [f"{w.out}[{at}] = {value};"]
        return finish(scope, [*lines, *block(loop, [*again, *stored])], scope.empty_like(x), team, shared)
    if anchor.mode == "total":
        stored = [f"atomicAdd({w.out}, ({value}) / {keys['rows']});"]
        alloc = scope.new(x, made="zeros")
    else:
        stored = scope.store(after, w.row, w.out, value)
    return finish(scope, [*lines, *team.led(stored)], alloc, team, shared)


def lower_arg(anchor: Arg, before: list[Map], after: list[Map], source: Value, style: str, scope: Scope) -> Function:
    """Index of the best element of each row; of equal ones the first."""
    x, w = scope.tensor(source), scope.words
    keys = scope.keys(anchor.sizes, {}, {}, x)
    team, better, v = team_of(style, scope, keys["rows"]), anchor.better, w.value

    def take(best: str, at: str) -> list[str]:
        """Statements that put `t` and its index `k` in the place of worse ones."""
        found = f"if (t {better} {best} || (t == {best} && k < {at}))"
        return block(found, [f"{best} = t;", f"{at} = k;"])

    combined = list[str]()
    if style == "warp":
        other = [f"float t = __shfl_xor_sync({MASK}, best, o);", f"int k = __shfl_xor_sync({MASK}, at, o);"]
        combined = block("for (int o = 16; o > 0; o >>= 1)", [*other, *take("best", "at")])
    elif style == "shared":
        team.head[1:] = [f"__shared__ float buf[{team.threads}];", f"__shared__ int src[{team.threads}];"]
        other = ["float t = buf[threadIdx.x + o];", "int k = src[threadIdx.x + o];"]
        half = block("if (threadIdx.x < o)", [*other, *take("buf[threadIdx.x]", "src[threadIdx.x]")])
        combined = [
            "buf[threadIdx.x] = best;",
            "src[threadIdx.x] = at;",
            "__syncthreads();",
            *block("for (int o = blockDim.x / 2; o > 0; o >>= 1)", [*half, "__syncthreads();"]),
            "at = src[0];",
        ]
    each = [f"float {v} = {x}[{_offset(keys, w.column)}];"]
    each += block(f"if ({v} {better} best)", [f"best = {v};", f"at = {w.column};"])
    lines = [
        f"int base = {_base(w.row, keys)};",
        f"float best = {start_of('max' if better == '>' else 'min', w)};",
        "int at = 0;",
        *block(team.loop.format(j=w.column, R=keys["R"]), each),
        *combined,
        *team.led([f"{w.out}[{w.row}] = at;"]),
    ]
    return finish(scope, lines, scope.new(x, anchor.alloc, keys), team)


def lower_scan(anchor: Scan, before: list[Map], after: list[Map], source: Value, style: str, scope: Scope) -> Function:
    """Running reduction along rows: serial, by warp shuffles with a carry, or a whole row in shared memory."""
    x, w = scope.tensor(source), scope.words
    keys = scope.keys(anchor.sizes, {}, {}, x)
    i, j, v, length, start = w.index, w.column, w.value, keys["R"], start_of(anchor.how, w)
    team = team_of(style, scope, keys["rows"])
    base, carry = f"int base = {_base(w.row, keys)};", f"float carry = {start};"
    at = f"int {i} = {_offset(keys, f'({length} - 1 - {j})' if anchor.reverse else j)};"
    inside, applied = f"if ({j} < {length})", scope.apply(before, i, x)
    read = [at, f"float {v} = {start};", *block(inside, [f"{v} = {x}[{i}];", *applied])]
    stored = scope.store(after, i, x)

    def collect(a: str, b: str) -> str:
        return _COMBINE[anchor.how].format(a=a, b=b)

    if style in ("thread", "single_block"):
        stored = [f"{v} = carry;", *stored] if after else scope.store(after, i, x, "carry")
        each = [at, f"float {v} = {x}[{i}];", *applied, collect("carry", v), *stored]
        lines = [base, carry, *block(f"for (int {j} = 0; {j} < {length}; ++{j})", each)]
    elif style == "warp":
        shuffles = [f"float t = __shfl_up_sync({MASK}, {v}, o);", f"if (lane >= o) {collect(v, 't')}"]
        each = [
            f"int {j} = k + lane;",
            *read,
            *block("for (int o = 1; o < 32; o <<= 1)", shuffles),
            collect(v, "carry"),
            f"carry = __shfl_sync({MASK}, {v}, 31);",
            *block(inside, stored),
        ]
        lines = [base, carry, *block(f"for (int k = 0; k < {length}; k += 32)", each)]
    else:
        team.threads = max(32, 1 << (anchor.length - 1).bit_length())
        team.head.insert(0, f"__shared__ float buf[{team.threads}];")
        sync = "__syncthreads();"
        steps = [f"float t = {j} >= o ? buf[{j} - o] : {start};", sync, collect(f"buf[{j}]", "t"), sync]
        lines = [f"int {j} = threadIdx.x;", base, *read, f"buf[{j}] = {v};", sync]
        lines += block("for (int o = 1; o < blockDim.x; o <<= 1)", steps)
        lines += [f"{v} = buf[{j}];", *block(inside, stored)]
    return finish(scope, lines, scope.empty_like(x), team)
