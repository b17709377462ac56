"""Matrix products of many kinds, linear layers, and attention scores."""

from __future__ import annotations

import math
from collections.abc import Callable

from dice.data.synthetic.builder import Builder, Refused
from dice.data.synthetic.families.registry import HELDOUT, Family
from dice.data.synthetic.graph import NORMAL, Contract, Element, Pass, Rows, Value


def spread(width: float) -> tuple[float, ...]:
    """Probes of a centred value with this standard deviation."""
    return tuple(width * probe for probe in NORMAL)


def rms(x: Value) -> float:
    """Root mean square of the probes."""
    return math.sqrt(sum(probe * probe for probe in x.probes) / len(x.probes))


def side(b: Builder) -> int:
    """One dimension of a matrix product."""
    if b.draw.small:
        return b.draw.pick((8, 12, 16, 17, 20, 24, 30, 32, 33, 40, 48))
    return b.draw.pick((64, 96, 128, 192, 200, 256, 300, 384, 512, 513, 640, 768, 1000, 1024))


def matmul(b: Builder, x: Value, name: str) -> Value:
    """Append a product of `x` with a second input or a parameter, transposed in one of several ways."""
    d, (rows, columns) = b.draw, x.shape[-2:]
    if len(x.shape) != 2 or len(b.inputs) > 1:
        raise Refused(name)
    transposed_a, transposed_b = name == "matmul_transposed_a", name == "matmul_transposed_b"
    m, k = (columns, rows) if transposed_a else (rows, columns)
    n = k if name == "lower_triangular_matmul" else m if name == "gram" else side(b)
    if m * k > 4_000_000 or m * k * n > 2e9 or k < 4:
        raise Refused(name)
    width = math.sqrt(k) * rms(x)
    sizes = {"M": "{x}.size(0)", "K": "{x}.size(1)", "N": "{b}.size(1)"}
    if transposed_a:
        sizes = {"M": "{x}.size(1)", "K": "{x}.size(0)", "N": "{b}.size(1)"}
    if transposed_b:
        sizes["N"] = "{b}.size(0)"
    other_name = "y" if d.tiny else d.pick(("y", "other", "B", "weight", "rhs"))
    shape = (n, k) if transposed_b else (k, n)
    if d.chance(0.3) and not d.tiny and not transposed_a:
        y = b.parameter(shape, "weight", f"torch.randn({{s}}) * {round(k**-0.5, 4)!r}")
        width = rms(x)
    else:
        y = b.input(shape, other_name)
    forms = {
        "matmul": ("torch.matmul({0}, {1})", "{0} @ {1}", "torch.mm({0}, {1})"),
        "matmul_transposed_a": ("torch.matmul({0}.T, {1})", "{0}.t() @ {1}", "torch.mm({0}.T, {1})"),
        "matmul_transposed_b": ("torch.matmul({0}, {1}.T)", "{0} @ {1}.t()", "torch.mm({0}, {1}.T)"),
    }[name]
    body = Contract(y, sizes, ("{M}", "{N}"), transposed_a, transposed_b)
    return b.step(name, d.pick(forms), body, [x, y], (m, n), spread(width))


def lower_triangular_matmul(b: Builder, x: Value) -> Value:
    """Lower triangle of a square matrix times a matrix."""
    if len(b.inputs) > 1 or x.shape[0] != x.shape[1]:
        raise Refused("lower_triangular_matmul")
    y = b.input((x.shape[1], side(b)), "y")
    lines = (
        "int row = {i} / {N};",
        "int col = {i} % {N};",
        "float {v} = 0.0f;",
        "for (int k = 0; k <= row; ++k) {v} += {x}[row * {K} + k] * {b}[k * {N} + col];",
    )
    body = Element(lines, {"K": "{x}.size(1)", "N": "{b}.size(1)"}, ("{x}.size(0)", "{N}"), {"b": y})
    code = b.draw.pick(("torch.matmul(torch.tril({0}), {1})", "torch.tril({0}) @ {1}"))
    shape = (x.shape[0], y.shape[1])
    return b.step("lower_triangular_matmul", code, body, [x, y], shape, spread(math.sqrt(x.shape[1] / 2)))


def bmm(b: Builder, x: Value, other: Value | None = None) -> Value:
    """Append a batched product with a second input, or with `other`."""
    if len(x.shape) != 3 or (other is None and len(b.inputs) > 1):
        raise Refused("bmm")
    z, m, k = x.shape
    n = other.shape[2] if other else min(side(b), 128)
    if z * m * k * n > 3e9:
        raise Refused("bmm")
    y = other or b.input((z, k, n), "y" if b.draw.tiny else b.draw.pick(("y", "other", "rhs")))
    sizes = {"Z": "{x}.size(0)", "M": "{x}.size(1)", "K": "{x}.size(2)", "N": "{b}.size(2)"}
    body = Contract(y, sizes, ("{Z}", "{M}", "{N}"), batch=True)
    code = b.draw.pick(("torch.bmm({0}, {1})", "torch.matmul({0}, {1})", "{0} @ {1}"))
    return b.step("bmm", code, body, [x, y], (z, m, n), spread(math.sqrt(k) * rms(x)))


def linear(
    b: Builder, x: Value, out_features: int | None = None, attribute: str = "", bias: bool | None = None
) -> Value:
    """Append a linear layer over the last dimension."""
    d, k = b.draw, x.shape[-1]
    n = out_features or side(b)
    rows = x.numel // k
    if rows * k * n > 4e9 or k < 4 or (b.draw.small and rows * k * n > 2e6):
        raise Refused("linear")
    base = attribute or d.pick(("fc", "linear", "proj", "dense", "lin"))
    bias = d.chance(0.8) if bias is None else bias
    options = "" if bias else ", bias=False"
    name = b.module(base, f"nn.Linear({b.argument('in_features', k)}, {b.argument('out_features', n)}{options})")
    weight = Value((n, k), "weight", f"{name}.weight")
    vector = Value((n,), "bias", f"{name}.bias") if bias else None
    sizes = {"M": "{x}.size(0)", "K": "{x}.size(1)", "N": "{b}.size(0)"}
    alloc: tuple[str, ...] = ("{M}", "{N}")
    if len(x.shape) > 2:
        last = len(x.shape) - 1
        sizes = {"K": f"{{x}}.size({last})", "M": "{x}.numel() / {K}", "N": "{b}.size(0)"}
        alloc = (*(f"{{x}}.size({axis})" for axis in range(last)), "{N}")
    body = Contract(weight, sizes, alloc, b_t=True, bias=vector)
    return b.step("linear", f"{name}({{0}})", body, [x], (*x.shape[:-1], n), spread(max(rms(x), 0.2) * 0.55))


def matvec(b: Builder, x: Value) -> Value:
    """Append the product of a matrix with a vector."""
    if len(x.shape) != 2 or len(b.inputs) > 1:
        raise Refused("matvec")
    rows, length = x.shape
    y = b.input((length,), "y" if b.draw.tiny else b.draw.pick(("vec", "y", "vector")))
    sizes = {"rows": "{x}.size(0)", "R": "{x}.size(1)"}
    body = Rows((Pass("sum", "sum", "{v} * {y}[{j}]"),), "{sum}", "row", sizes, length, rows, ("{rows}",), {"y": y})
    code = b.draw.pick(("torch.mv({0}, {1})", "torch.matmul({0}, {1})", "{0} @ {1}"))
    return b.step("matvec", code, body, [x, y], (rows,), spread(math.sqrt(length) * rms(x)))


def row_dot(b: Builder, x: Value) -> Value:
    """Append the dot product of each row with the same row of a second tensor."""
    if len(x.shape) != 2 or len(b.inputs) > 1:
        raise Refused("row_dot")
    y = b.input(x.shape, "y")
    sizes = {"rows": "{x}.size(0)", "R": "{x}.size(1)"}
    passes = (Pass("sum", "sum", "{v} * {y}[{i}]"),)
    body = Rows(passes, "{sum}", "row", sizes, x.shape[1], x.shape[0], ("{rows}",), {"y": y})
    code = b.draw.pick(("torch.sum({0} * {1}, dim=1)", "({0} * {1}).sum(dim=-1)", 'torch.einsum("ij,ij->i", {0}, {1})'))
    return b.step("row_dot", code, body, [x, y], (x.shape[0],), spread(math.sqrt(x.shape[1]) * rms(x)))


def outer(b: Builder, x: Value) -> Value:
    """Append the outer product of two vectors."""
    if len(x.shape) != 1 or len(b.inputs) > 1:
        raise Refused("outer")
    y = b.input((side(b) + b.draw.pick((0, 1, 8)),), "y")
    lines = ("float {v} = {x}[{i} / {N}] * {y}[{i} % {N}];",)
    body = Element(lines, {"N": "{y}.size(0)"}, ("{x}.size(0)", "{N}"), {"y": y})
    code = b.draw.pick(("torch.outer({0}, {1})", "{0}.unsqueeze(1) * {1}.unsqueeze(0)", "{0}[:, None] * {1}[None, :]"))
    return b.step("outer", code, body, [x, y], (x.shape[0], y.shape[0]))


def gram(b: Builder, x: Value) -> Value:
    """Append the products of all pairs of rows."""
    if (
        len(x.shape) != 2
        or x.shape[0] ** 2 * x.shape[1] > 3e9
        or not 2 <= x.shape[0] <= (128 if b.draw.small else 2048)
    ):
        raise Refused("gram")
    lines = (
        "int row = {i} / {M};",
        "int col = {i} % {M};",
        "float {v} = 0.0f;",
        "for (int k = 0; k < {K}; ++k) {v} += {x}[row * {K} + k] * {x}[col * {K} + k];",
    )
    body = Element(lines, {"M": "{x}.size(0)", "K": "{x}.size(1)"}, ("{M}", "{M}"))
    code = b.draw.pick(("{0} @ {0}.T", "torch.matmul({0}, {0}.t())", "torch.mm({0}, {0}.T)"))
    return b.step("gram", code, body, [x], (x.shape[0], x.shape[0]), spread(math.sqrt(x.shape[1]) * rms(x)))


def pairwise_distance(b: Builder, x: Value) -> Value:
    """Append squared distances between the rows of two matrices."""
    if len(x.shape) != 2 or len(b.inputs) > 1 or x.shape[0] > 2048:
        raise Refused("pairwise_distance")
    y = b.input((side(b), x.shape[1]), "y")
    if x.shape[0] * y.shape[0] * x.shape[1] > 2e8:
        raise Refused("pairwise_distance")
    lines = (
        "int row = {i} / {N};",
        "int col = {i} % {N};",
        "float {v} = 0.0f;",
        "for (int k = 0; k < {K}; ++k) {{",
        "    float a = {x}[row * {K} + k] - {y}[col * {K} + k];",
        "    {v} += a * a;",
        "}}",
    )
    sizes = {"K": "{x}.size(1)", "N": "{y}.size(0)"}
    body = Element(lines, sizes, ("{x}.size(0)", "{N}"), {"y": y})
    code = b.draw.pick(
        (
            "({0}[:, None, :] - {1}[None, :, :]).pow(2).sum(-1)",
            "((({0}.unsqueeze(1) - {1}.unsqueeze(0)) ** 2).sum(dim=-1))",
        )
    )
    length = x.shape[1]
    probes = tuple(2 * length + math.sqrt(8 * length) * probe for probe in NORMAL)
    return b.step("pairwise_distance", code, body, [x, y], (x.shape[0], y.shape[0]), probes)


def attention_scores(b: Builder, x: Value, keys: Value | None = None) -> Value:
    """Append the scores of queries `x` against keys, [Z, T, D] by [Z, S, D] to [Z, T, S]."""
    if len(x.shape) != 3:
        raise Refused("attention_scores")
    z, m, k = x.shape
    y = keys or b.input((z, m, k), "k" if b.draw.tiny else b.draw.pick(("k", "key", "keys")))
    n = y.shape[1]
    if z * m * n * k > 3e9 or z * m * n > 2e7:
        raise Refused("attention_scores")
    sizes = {"Z": "{x}.size(0)", "M": "{x}.size(1)", "K": "{x}.size(2)", "N": "{b}.size(1)"}
    body = Contract(y, sizes, ("{Z}", "{M}", "{N}"), b_t=True, batch=True)
    code = b.draw.pick(
        ("torch.matmul({0}, {1}.transpose(-2, -1))", "torch.bmm({0}, {1}.transpose(1, 2))", "{0} @ {1}.transpose(1, 2)")
    )
    return b.step("attention_scores", code, body, [x, y], (z, m, n), spread(math.sqrt(k) * rms(x)))


def families() -> list[Family]:
    """All products as families."""

    def matrix(b: Builder) -> Value:
        if b.draw.tiny or b.draw.chance(0.5):
            return b.input((side(b), side(b)), dims=("rows", "inner"))
        features = side(b)
        return b.input((min(b.draw.batch(features), 4096), features))

    def square(b: Builder) -> Value:
        size = side(b)
        return b.input((size, size), dims=("rows", "rows"))

    def vector(b: Builder) -> Value:
        return b.input((side(b) * (1 if b.draw.small else 4) + b.draw.pick((0, 1, 3)),))

    def batched(b: Builder) -> Value:
        batch = b.draw.pick((2, 3, 4)) if b.draw.small else b.draw.pick((4, 8, 12, 16, 32))
        return b.input((batch, min(side(b), 512), min(side(b), 128)), *(("q",) if b.draw.chance(0.3) else ()))

    def sequence(b: Builder) -> Value:
        if b.draw.chance(0.6) or b.draw.tiny:
            return matrix(b)
        length, features = b.draw.length(), side(b)
        batch = b.draw.pick((2, 3)) if b.draw.small else b.draw.pick((4, 8, 16))
        return b.input((batch, length, features))

    def named(name: str) -> Callable[[Builder, Value], Value]:
        return lambda b, x: matmul(b, x, name)

    def entry(
        name: str,
        make: Callable[[Builder, Value], Value],
        start: Callable[[Builder], Value],
        *ranks: int,
        tiny: bool = False,
        weak: bool = False,
        layer: bool = False,
    ) -> Family:
        return Family(name, "contract", make, start, tiny, name in HELDOUT, ranks or (2,), weak, layer)

    return [
        entry("matmul", named("matmul"), matrix, tiny=True),
        entry("matmul_transposed_a", named("matmul_transposed_a"), matrix, tiny=True, weak=True),
        entry("matmul_transposed_b", named("matmul_transposed_b"), matrix, tiny=True),
        entry("lower_triangular_matmul", lower_triangular_matmul, square, weak=True),
        entry("bmm", bmm, batched, 3, tiny=True),
        entry("linear", linear, sequence, 2, 3, tiny=True, layer=True),
        entry("matvec", matvec, matrix, tiny=True, weak=True),
        entry("row_dot", row_dot, matrix, tiny=True, weak=True),
        entry("outer", outer, vector, 1, tiny=True, weak=True),
        entry("gram", gram, matrix, weak=True),
        entry("pairwise_distance", pairwise_distance, matrix, weak=True),
        entry("attention_scores", attention_scores, batched, 3, weak=True),
    ]
