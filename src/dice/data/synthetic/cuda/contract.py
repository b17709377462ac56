"""Matrix products: one thread for each output, shared-memory tiles, several outputs for each thread."""

from __future__ import annotations

from dice.data.synthetic.cuda.scope import Function, Scope, block, ceil_div
from dice.data.synthetic.graph import Contract, Map, Value

CONTRACT_STYLES = ("naive", "grid_2d", "tiled", "tiled_coarse")
SLOW_STYLES = ("row_per_thread",)
COARSE = 4
"""Outputs of one thread along M in the coarse form."""


def lower_contract(
    anchor: Contract, before: list[Map], after: list[Map], source: Value, style: str, scope: Scope
) -> Function:
    """A matrix product and the element-wise operators on its result."""
    a = scope.tensor(source)
    operands = {"b": anchor.b} | ({"bias": anchor.bias} if anchor.bias else {})
    keys = scope.keys(anchor.sizes, operands, {}, a)
    product = _Product(anchor, scope, keys, after)
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
    return scope.one_kernel(lines, scope.new(a, anchor.alloc, keys), blocks, threads)


class _Product:
    """Texts that the styles share."""

    def __init__(self, anchor: Contract, scope: Scope, keys: dict[str, str], after: list[Map]) -> None:
        self.anchor, self.scope, self.keys, self.after = anchor, scope, keys, after
        self.words = scope.words
        self.M, self.N, self.K = keys["M"], keys["N"], keys["K"]
        self.column = "col" if scope.words.row != "col" else "column"
        self.bias = f"{keys['bias']}[{self.column}]" if anchor.bias else ""
        self.matrix = ["int batch = blockIdx.z;"] if anchor.batch else []
        """Statement that finds the matrix in the batch, where blocks have three dimensions."""

    def at(self, row: str, column: str, rows: str, columns: str, transposed: bool = False) -> str:
        """Index of an element of a matrix of this size."""
        shift = f"batch * {rows} * {columns} + " if self.anchor.batch else ""
        return shift + (f"{column} * {rows} + {row}" if transposed else f"{row} * {columns} + {column}")

    def a(self, m: str, k: str) -> str:
        """Element of the left matrix."""
        return f"{self.keys['x']}[{self.at(m, k, self.M, self.K, self.anchor.a_t)}]"

    def b(self, k: str, n: str) -> str:
        """Element of the right matrix."""
        return f"{self.keys['b']}[{self.at(k, n, self.K, self.N, self.anchor.b_t)}]"

    def dot(self) -> list[str]:
        """Statements that compute the output of a row and a column into the value variable."""
        v, product = self.words.value, f"{self.a(self.words.row, 'k')} * {self.b('k', self.column)}"
        return [f"float {v} = {self.bias or '0.0f'};", f"for (int k = 0; k < {self.K}; ++k) {v} += {product};"]

    def stored(self) -> list[str]:
        """Statements that store it."""
        w, at = self.words, self.at(self.words.row, self.column, self.M, self.N)
        if not self.after:
            return [f"{w.out}[{at}] = {w.value};"]
        return [f"int {w.index} = {at};", *self.scope.store(self.after, w.index, w.out)]

    def one_each(self) -> tuple[list[str], str, int]:
        w, i, n, body = self.words, self.words.index, f"{self.M} * {self.N}", list[str]()
        row = f"{i} / {self.N}"
        if self.anchor.batch:
            body, row, n = [f"int batch = {i} / ({n});"], f"({row}) % {self.M}", f"{self.keys['Z']} * {n}"
        body += [f"int {w.row} = {row};", f"int {self.column} = {i} % {self.N};", *self.dot()]
        body += self.scope.store(self.after, i, w.out)
        return self.scope.guarded(body, n), ceil_div(n, w.block), w.block

    def one_each_2d(self) -> tuple[list[str], str, str]:
        w, side = self.words, 32 if self.words.block >= 512 else 16
        lines = [
            *self.matrix,
            f"int {w.row} = blockIdx.y * blockDim.y + threadIdx.y;",
            f"int {self.column} = blockIdx.x * blockDim.x + threadIdx.x;",
            *block(f"if ({w.row} < {self.M} && {self.column} < {self.N})", [*self.dot(), *self.stored()]),
        ]
        return lines, self._grid(side, side), f"{side}, {side}"

    def row_each(self) -> tuple[list[str], str, int]:
        row, count = self.words.row, self.M
        place = [f"int {row} = t;"]
        if self.anchor.batch:
            count = f"{self.keys['Z']} * {self.M}"
            place = [f"int batch = t / {self.M};", f"int {row} = t % {self.M};"]
        lines = [
            "int t = blockIdx.x * blockDim.x + threadIdx.x;",
            f"if (t >= {count}) return;",
            *place,
            *block(
                f"for (int {self.column} = 0; {self.column} < {self.N}; ++{self.column})", [*self.dot(), *self.stored()]
            ),
        ]
        return lines, ceil_div(count, 32), 32

    def _grid(self, width: int, height: int) -> str:
        blocks = f"({self.N} + {width - 1}) / {width}, ({self.M} + {height - 1}) / {height}"
        return f"{blocks}, {self.keys['Z']}" if self.anchor.batch else blocks

    def tiled(self, coarse: int) -> tuple[list[str], str, str]:
        """Square tiles of both matrices in shared memory; each thread makes `coarse` outputs, a tile apart."""
        w, column, v, M, N, K = self.words, self.column, self.words.value, self.M, self.N, self.K
        T = 32 if w.block >= 512 and coarse == 1 else 16
        each, row, tile_row, total, declared = "", w.row, "threadIdx.y", v, f"{v} = 0.0f"
        if coarse > 1:
            each = f"for (int r = 0; r < {coarse}; ++r)"
            row, tile_row = f"({w.row} + r * {T})", f"threadIdx.y + r * {T}"
            total, declared = "sums[r]", f"sums[{coarse}] = {{0.0f}}"
        b, inside, read, used = "t + threadIdx.y", f"b < {K} && {column} < {N}", self.b("b", column), "k][threadIdx.x"
        if self.anchor.b_t:  # neighbouring threads read neighbouring k
            b, inside = f"blockIdx.x * {T} + threadIdx.y", f"b < {N} && a < {K}"
            read, used = self.b("a", "b"), "threadIdx.x][k"
        steps = [
            "int a = t + threadIdx.x;",
            f"{each} As[{tile_row}][threadIdx.x] = {row} < {M} && a < {K} ? {self.a(row, 'a')} : 0.0f;".lstrip(),
            f"int b = {b};",
            f"Bs[threadIdx.y][threadIdx.x] = {inside} ? {read} : 0.0f;",
            "__syncthreads();",
            *(["#pragma unroll"] if w.synonyms % 2 else []),
            f"for (int k = 0; k < {T}; ++k) " + f"{each} {total} += As[{tile_row}][k] * Bs[{used}];".lstrip(),
            "__syncthreads();",
        ]
        lines = [
            f"__shared__ float As[{T * coarse}][{T}];",
            f"__shared__ float Bs[{T}][{T + 1 if self.anchor.b_t else T}];",
            *self.matrix,
            f"int {w.row} = blockIdx.y * {T * coarse} + threadIdx.y;",
            f"int {column} = blockIdx.x * {T} + threadIdx.x;",
            f"float {declared};",
            *(["// walk over K, one tile of both matrices at a time"] if w.comments else []),
            *block(f"for (int t = 0; t < {K}; t += {T})", steps),
        ]
        if coarse == 1:
            stored = [*([f"{v} += {self.bias};"] if self.bias else []), *self.stored()]
        else:
            value = f"sums[r] + {self.bias}" if self.bias else "sums[r]"
            at = f"int {w.index} = {self.at(row, column, M, N)};"
            stored = [at, *self.scope.store(self.after, w.index, w.out, value)]
        stored = block(f"if ({row} < {M} && {column} < {N})", stored)
        return [*lines, *(block(each, stored) if each else stored)], self._grid(T, T * coarse), f"{T}, {T}"
