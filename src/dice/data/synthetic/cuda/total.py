"""Reductions of a whole tensor to one number: atomics, two kernels, or one block."""

from __future__ import annotations

from dice.data.synthetic.cuda.rows import Team, combine, team_of
from dice.data.synthetic.cuda.scope import Function, Scope, indent
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
    keys = {"v": v, "i": i}
    for key, operand in anchor.operands.items():
        keys[key] = scope.access(operand, i, x)
    keys |= {key: scope.scalar(scalar) for key, scalar in anchor.scalars.items()}
    body = [f"float {v} = {x}[{i}];", *scope.apply(before, i, x)]
    total = scope.local("sum")
    n = scope.size(w.size, f"{x}.numel()")
    body.append(f"{total} += {anchor.term.format(**keys)};")
    if style == "atomic" and (after or not anchor.linear):
        style = "two_kernels"
    if style == "one_thread":
        return _one_thread(
            scope, body, total, n, anchor.finish.format(s=total, n=n), after, f"torch::empty({{}}, {scope.options(x)})"
        )
    if style == "single_warp":
        team = Team("warp", 32, [], "", "threadIdx.x == 0", "1")
    else:
        team = team_of("shared" if w.synonyms % 2 else "block", scope, "1")
    several = style in ("atomic", "two_kernels")
    first, step = (
        ("blockIdx.x * blockDim.x + threadIdx.x", "gridDim.x * blockDim.x")
        if several
        else ("threadIdx.x", "blockDim.x")
    )
    buffer = [f"__shared__ float buf[{team.threads}];"] if team.style == "shared" else []
    lines = [*buffer, f"float {total} = 0.0f;"]
    lines += [f"for (int {i} = {first}; {i} < {n}; {i} += {step}) {{", *indent(body), "}"]
    lines += combine(scope, team, "sum", total)
    finished = anchor.finish.format(s=total, n=n)
    stored = scope.store(after, "0", w.out, finished)
    blocks = f"({n} + {{{team.threads}}} - 1) / {{{team.threads}}}"
    alloc = f"torch::empty({{}}, {scope.options(x)})"
    if style == "atomic":
        lines.append(f"if ({team.leader}) atomicAdd({w.out}, {finished});")
        alloc = f"torch::zeros({{}}, {scope.options(x)})"
        blocks = f"{blocks} < {PARTS} ? {blocks} : {PARTS}"
    elif style == "two_kernels":
        return _two_kernels(scope, team, lines, total, stored, buffer, n, alloc)
    else:
        lines += _led(team, stored)
        blocks = "1"
    name = scope.kernel_name()
    launch = scope.configured(scope.launch(name), blocks, team.threads)
    return scope.function(scope.kernel(name, lines), alloc, launch)


def _one_thread(
    scope: Scope, body: list[str], total: str, n: str, finished: str, after: list[Map], alloc: str
) -> Function:
    w, i = scope.words, scope.words.index
    lines = [f"float {total} = 0.0f;", f"for (int {i} = 0; {i} < {n}; ++{i}) {{", *indent(body), "}"]
    name = scope.kernel_name()
    text = scope.kernel(name, [*lines, *scope.store(after, "0", w.out, finished)])
    return scope.function(text, alloc, [scope.launch(name).replace("{config}", "1, 1")])


def _led(team: Team, stored: list[str]) -> list[str]:
    if len(stored) == 1:
        return [f"if ({team.leader}) {stored[0]}"]
    return [f"if ({team.leader}) {{", *indent(stored), "}"]


def _two_kernels(
    scope: Scope, team: Team, lines: list[str], total: str, stored: list[str], buffer: list[str], n: str, alloc: str
) -> Function:
    w, i = scope.words, scope.words.index
    partial = scope.fresh("partial")
    first, second = scope.kernel_name("_partial"), scope.kernel_name("_final")
    float_out = f"float*{' __restrict__' if w.restrict else ''} {partial}"
    text = scope.kernel(first, [*lines, f"if (threadIdx.x == 0) {partial}[blockIdx.x] = {total};"], float_out)
    gather = [f"for (int {i} = threadIdx.x; {i} < parts; {i} += blockDim.x) {total} += {partial}[{i}];"]
    # the second kernel reads only the partial sums and the inputs of its epilogue
    final = [*buffer, f"float {total} = 0.0f;", *gather, *combine(scope, team, "sum", total), *_led(team, stored)]
    last = Scope(w, scope.label, tensors=dict(scope.tensors), scalars=scope.scalars, sizes=scope.sizes)
    last_text = last.kernel(second, final, f"const float* {partial}, float* {w.out}, int parts")
    threads = team.threads
    launch = scope.launch(first, f"{partial}.data_ptr<float>()")
    again = last.launch(second, f"{partial}.data_ptr<float>(), {w.out}.data_ptr<float>(), parts")
    parts = f"({n} + {threads - 1}) / {threads}"
    body = [
        f"const int parts = {parts} < {PARTS} ? {parts} : {PARTS};",
        f"auto {partial} = torch::empty({{parts}}, {next(iter(scope.tensors.values()))}.options());",
        launch.replace("{config}", f"parts, {threads}"),
        again.replace("{config}", f"1, {threads}"),
    ]
    return scope.function(f"{text}\n{last_text}", alloc, body)
