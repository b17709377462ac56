"""Matrix products: one thread for each output, shared-memory tiles, several outputs for each thread."""

from __future__ import annotations

from dice.data.synthetic.cuda.scope import Function, Scope, ceil_div, indent
from dice.data.synthetic.graph import Contract, Map, Value

CONTRACT_STYLES = ("naive", "grid_2d", "tiled", "tiled_coarse")
SLOW_STYLES = ("row_per_thread",)
COARSE = 4
"""Outputs of one thread along M in the coarse form."""


def lower_contract(anchor: Contract, after: list[Map], source: Value, style: str, scope: Scope) -> Function:
    """A matrix product and the element-wise operators on its result."""
    a = scope.tensor(source)
    operands = {"b": anchor.b} | ({"bias": anchor.bias} if anchor.bias else {})
    keys = scope.keys(anchor.sizes, operands, {}, a)
    product = _Product(anchor, scope, keys, after)
    alloc = f"torch::empty({{{', '.join(size.format(**keys) for size in anchor.alloc)}}}, {scope.options(a)})"
    if style in ("tiled", "tiled_coarse"):
        lines, blocks, threads = product.tiled(COARSE if style == "tiled_coarse" else 1)
    elif style == "grid_2d":
        lines, blocks, threads = product.one_each_2d()
    elif style == "row_per_thread":
        lines, blocks, threads = product.row_each()
    elif style == "naive":
        lines, blocks, threads = product.one_each()
    else:
        raise KeyError(f"no matrix style {style!r}")
    name = scope.kernel_name()
    text = scope.kernel(name, lines)
    return scope.function(text, alloc, scope.configured(scope.launch(name), blocks, threads))


class _Product:
    """Texts that the styles share."""

    def __init__(self, anchor: Contract, scope: Scope, keys: dict[str, str], after: list[Map]) -> None:
        self.anchor, self.scope, self.keys, self.after = anchor, scope, keys, after
        self.words = scope.words
        self.M, self.N, self.K = keys["M"], keys["N"], keys["K"]
        batch = anchor.batch
        self.a_shift = f"batch * {self.M} * {self.K} + " if batch else ""
        self.b_shift = f"batch * {self.K} * {self.N} + " if batch else ""
        self.out_shift = f"batch * {self.M} * {self.N} + " if batch else ""

    def a(self, m: str, k: str) -> str:
        """Element of the left matrix."""
        x = self.keys["x"]
        return (
            f"{x}[{self.a_shift}{k} * {self.M} + {m}]"
            if self.anchor.a_t
            else f"{x}[{self.a_shift}{m} * {self.K} + {k}]"
        )

    def b(self, k: str, n: str) -> str:
        """Element of the right matrix."""
        y = self.keys["b"]
        return (
            f"{y}[{self.b_shift}{n} * {self.K} + {k}]"
            if self.anchor.b_t
            else f"{y}[{self.b_shift}{k} * {self.N} + {n}]"
        )

    def start(self, column: str) -> str:
        """Start value of a sum."""
        return f"{self.keys['bias']}[{column}]" if self.anchor.bias else "0.0f"

    def dot(self, row: str, column: str) -> list[str]:
        """Statements that compute one output into the value variable."""
        v = self.words.value
        return [
            f"float {v} = {self.start(column)};",
            f"for (int k = 0; k < {self.K}; ++k) {v} += {self.a(row, 'k')} * {self.b('k', column)};",
        ]

    def store(self, index: str) -> list[str]:
        return self.scope.store(self.after, index, self.words.out)

    def one_each(self) -> tuple[list[str], str, int]:
        w, i = self.words, self.words.index
        n = f"{self.M} * {self.N}" if not self.anchor.batch else f"{self.keys['Z']} * {self.M} * {self.N}"
        column = "col" if w.row != "col" else "column"
        row = f"int {w.row} = ({i} / {self.N}) % {self.M};" if self.anchor.batch else f"int {w.row} = {i} / {self.N};"
        body = [f"int batch = {i} / ({self.M} * {self.N});"] if self.anchor.batch else []
        body += [row, f"int {column} = {i} % {self.N};", *self.dot(w.row, column), *self.store(i)]
        first = f"int {i} = {self.scope.thread};"
        if w.early_return:
            lines = [first, f"if ({i} >= {n}) return;", *body]
        else:
            lines = [first, f"if ({i} < {n}) {{", *indent(body), "}"]
        return lines, ceil_div(n, w.block), w.block

    def one_each_2d(self) -> tuple[list[str], str, str]:
        w, side = self.words, 32 if self.words.block >= 512 else 16
        column = "col" if w.row != "col" else "column"
        index = f"{self.out_shift}{w.row} * {self.N} + {column}"
        body = [*self.dot(w.row, column), *self._stored(index)]
        lines = ["int batch = blockIdx.z;"] if self.anchor.batch else []
        lines += [
            f"int {w.row} = blockIdx.y * blockDim.y + threadIdx.y;",
            f"int {column} = blockIdx.x * blockDim.x + threadIdx.x;",
            f"if ({w.row} < {self.M} && {column} < {self.N}) {{",
            *indent(body),
            "}",
        ]
        return lines, self._grid(side, side), f"{side}, {side}"

    def row_each(self) -> tuple[list[str], str, int]:
        w = self.words
        column, z = "col" if w.row != "col" else "column", self.keys.get("Z", "1")
        index = f"{self.out_shift}{w.row} * {self.N} + {column}"
        count = f"{z} * {self.M}" if self.anchor.batch else self.M
        lines = ["int t = blockIdx.x * blockDim.x + threadIdx.x;", f"if (t >= {count}) return;"]
        lines += [f"int batch = t / {self.M};"] if self.anchor.batch else []
        lines += [f"int {w.row} = t % {self.M};" if self.anchor.batch else f"int {w.row} = t;"]
        lines += [f"for (int {column} = 0; {column} < {self.N}; ++{column}) {{"]
        lines += [*indent([*self.dot(w.row, column), *self._stored(index)]), "}"]
        return lines, ceil_div(count, 32), 32

    def _stored(self, index: str) -> list[str]:
        if not self.after:
            return [f"{self.words.out}[{index}] = {self.words.value};"]
        return [f"int {self.words.index} = {index};", *self.store(self.words.index)]

    def _grid(self, width: int, height: int) -> str:
        blocks = f"({self.N} + {width - 1}) / {width}, ({self.M} + {height - 1}) / {height}"
        return f"{blocks}, {self.keys['Z']}" if self.anchor.batch else blocks

    def tiled(self, coarse: int) -> tuple[list[str], str, str]:
        """Square tiles of both matrices in shared memory; each thread makes `coarse` outputs, a tile apart."""
        w = self.words
        T = 32 if w.block >= 512 and coarse == 1 else 16
        column, v, M, N, K = "col" if w.row != "col" else "column", w.value, self.M, self.N, self.K
        sums = v if coarse == 1 else "sums[r]"
        each = f"for (int r = 0; r < {coarse}; ++r) " if coarse > 1 else ""
        row = w.row if coarse == 1 else f"({w.row} + r * {T})"
        a_row = "threadIdx.y" if coarse == 1 else f"threadIdx.y + r * {T}"
        lines = [
            f"__shared__ float As[{T * coarse}][{T}];",
            f"__shared__ float Bs[{T}][{T + 1 if self.anchor.b_t else T}];",
        ]
        lines += ["int batch = blockIdx.z;"] if self.anchor.batch else []
        lines += [
            f"int {w.row} = blockIdx.y * {T * coarse} + threadIdx.y;",
            f"int {column} = blockIdx.x * {T} + threadIdx.x;",
            f"float {v} = 0.0f;" if coarse == 1 else f"float sums[{coarse}] = {{0.0f}};",
            *(["// walk over K, one tile of both matrices at a time"] if w.comments else []),
            f"for (int t = 0; t < {K}; t += {T}) {{",
            "    int a = t + threadIdx.x;",
            f"    {each}As[{a_row}][threadIdx.x] = {row} < {M} && a < {K} ? {self.a(row, 'a')} : 0.0f;",
        ]
        if self.anchor.b_t:  # neighbouring threads read neighbouring k
            lines += [
                f"    int b = blockIdx.x * {T} + threadIdx.y;",
                f"    Bs[threadIdx.y][threadIdx.x] = b < {N} && a < {K} ? {self.b('a', 'b')} : 0.0f;",
            ]
        else:
            lines += [
                "    int b = t + threadIdx.y;",
                f"    Bs[threadIdx.y][threadIdx.x] = b < {K} && {column} < {N} ? {self.b('b', column)} : 0.0f;",
            ]
        b = "Bs[threadIdx.x][k]" if self.anchor.b_t else "Bs[k][threadIdx.x]"
        inner = f"{each}{sums} += As[{a_row}][k] * {b};"
        lines += ["    __syncthreads();"]
        lines += ["    #pragma unroll"] if w.synonyms % 2 else []
        lines += [f"    for (int k = 0; k < {T}; ++k) {inner}", "    __syncthreads();", "}"]
        index = f"{self.out_shift}{row} * {N} + {column}"
        bias = f" + {self.keys['bias']}[{column}]" if self.anchor.bias else ""
        if coarse == 1:
            body = [f"{v} += {self.keys['bias']}[{column}];"] if self.anchor.bias else []
            lines += [f"if ({w.row} < {M} && {column} < {N}) {{", *indent([*body, *self._stored(index)]), "}"]
        else:
            lines += [f"for (int r = 0; r < {coarse}; ++r) {{"]
            lines += [f"    if ({row} < {M} && {column} < {N}) {{", f"        int {w.index} = {index};"]
            stored = self.scope.store(self.after, w.index, w.out, f"sums[r]{bias}")
            lines += [*indent(stored, 8), "    }", "}"]
        return lines, self._grid(T, T * coarse), f"{T}, {T}"
