"""Reductions of a whole tensor to one number: atomics, two kernels, or one block."""

from __future__ import annotations

from dice.data.synthetic.cuda.rows import SERIAL, Team, combine, team_of
from dice.data.synthetic.cuda.scope import Function, Scope, block, ceil_div
from dice.data.synthetic.graph import Map, Total, Value

TOTAL_STYLES = ("atomic", "two_kernels", "one_block")
SLOW_STYLES = ("single_warp",)
PARTS = 1024
"""Blocks of the first kernel of the two."""


def lower_total(
    anchor: Total, before: list[Map], after: list[Map], source: Value, style: str, scope: Scope
) -> Function:
    """Sum of a term over all elements, then a finishing expression."""
    w = scope.words
    x, i, v = scope.tensor(source), w.index, w.value
    keys = scope.element_keys(anchor, v, i, x)
    body = [f"float {v} = {x}[{i}];", *scope.apply(before, i, x)]
    total = scope.local("sum")
    n = scope.size(w.size, f"{x}.numel()")
    body.append(f"{total} += {anchor.term.format(**keys)};")
    if style == "atomic" and (after or not anchor.linear):
        style = "two_kernels"
    team = _team(style, scope)
    buffer = [f"__shared__ float buf[{team.threads}];"] if team.style == "shared" else []
    lines = [*buffer, f"float {total} = 0.0f;", *block(team.loop.format(j=i, R=n), body)]
    lines += combine(scope, team, "sum", total)
    finished, alloc, blocks = anchor.finish.format(s=total, n=n), scope.new(x), ceil_div(n, team.threads)
    if style == "atomic":
        lines.append(f"if ({team.leader}) atomicAdd({w.out}, {finished});")
        blocks = f"{blocks} < {PARTS} ? {blocks} : {PARTS}"
        return scope.one_kernel(lines, scope.new(x, made="zeros"), blocks, team.threads)
    stored = team.led(scope.store(after, "0", w.out, finished))
    if style == "two_kernels":
        return _two_kernels(scope, team, lines, total, [*combine(scope, team, "sum", total), *stored], buffer, n, alloc)
    return scope.one_kernel([*lines, *stored], alloc, "1", team.threads)


def _team(style: str, scope: Scope) -> Team:
    """The threads of a block, and how they loop over the tensor."""
    if style == "one_thread":
        return Team("thread", 1, [], SERIAL, "", "1")
    team = team_of("shared" if scope.words.synonyms % 2 else "block", scope, "1")
    if style == "single_warp":
        return Team("warp", 32, [], team.loop, team.leader, "1")
    if style != "one_block":
        team.loop = "for (int {j} = blockIdx.x * blockDim.x + threadIdx.x; {j} < {R}; {j} += gridDim.x * blockDim.x)"
    return team


def _two_kernels(
    scope: Scope, team: Team, lines: list[str], total: str, ends: list[str], buffer: list[str], n: str, alloc: str
) -> Function:
    w, i = scope.words, scope.words.index
    partial = scope.fresh("partial")
    first, second = scope.kernel_name("_partial"), scope.kernel_name("_final")
    float_out = f"float*{' __restrict__' if w.restrict else ''} {partial}"
    text = scope.kernel(first, [*lines, f"if (threadIdx.x == 0) {partial}[blockIdx.x] = {total};"], float_out)
    gather = [f"for (int {i} = threadIdx.x; {i} < parts; {i} += blockDim.x) {total} += {partial}[{i}];"]
    # the second kernel reads only the partial sums and the inputs of its epilogue
    final = [*buffer, f"float {total} = 0.0f;", *gather, *ends]
    last_text = scope.kernel(second, final, f"const float* {partial}, float* {w.out}, int parts")
    threads = team.threads
    launch = scope.launch(first, f"{partial}.data_ptr<float>()")
    again = scope.launch(second, f"{partial}.data_ptr<float>(), {w.out}.data_ptr<float>(), parts")
    parts = f"({n} + {threads - 1}) / {threads}"
    body = [
        f"const int parts = {parts} < {PARTS} ? {parts} : {PARTS};",
        f"auto {partial} = torch::empty({{parts}}, {next(iter(scope.tensors.values()))}.options());",
        launch.replace("{config}", f"parts, {threads}"),
        again.replace("{config}", f"1, {threads}"),
    ]
    return scope.function(f"{text}\n{last_text}", alloc, body)
