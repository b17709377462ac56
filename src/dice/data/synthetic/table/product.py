"""Matrix products, linear layers, and products along rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

from dice.data.synthetic.builder import Builder, Refused, centred, rms
from dice.data.synthetic.graph import Contract, Element, Pass, Value
from dice.data.synthetic.table.entry import Entry, Special
from dice.data.synthetic.table.index import dims
from dice.data.synthetic.table.layout import of_rows

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def side(b: Builder) -> int:
    """One dimension of a matrix product."""
    if b.draw.small:
        return b.draw.pick((8, 12, 16, 17, 20, 24, 30, 32, 33, 40, 48))
    return b.draw.size((64, 96, 128, 192, 200, 256, 300, 384, 512, 513, 640, 768, 1000, 1024), 8192)


def _two(b: Builder, x: Value, name: str, rank: int) -> None:
    """Raises Refused unless `x` has this rank and there is room for a second input."""
    if len(x.shape) != rank or len(b.inputs) > 1:
        raise Refused(name)


@dataclass
class Product(Entry, group="contract", ranks=(2,)):
    """A product of a matrix with a second input or a parameter. `a_t`, `b_t`: whether they are transposed."""

    forms: tuple[str, ...]
    a_t: bool = False
    b_t: bool = False

    def __post_init__(self) -> None:
        self.weak = self.a_t

    def first(self, b: Builder) -> Value:
        return _matrix(b)

    def apply(self, b: Builder, x: Value) -> Value:
        d = b.draw
        _two(b, x, self.name, 2)
        m, k = x.shape[::-1] if self.a_t else x.shape
        n = side(b)
        self.refuse_if(m * k > 4_000_000 or m * k * n > 2e9 or k < 4)
        width = math.sqrt(k) * rms(x)
        sizes = {"M": f"{{x}}.size({int(self.a_t)})", "K": f"{{x}}.size({1 - self.a_t})"}
        sizes["N"] = f"{{b}}.size({1 - self.b_t})"
        shape = (n, k) if self.b_t else (k, n)
        if d.chance(0.3) and not d.tiny and not self.a_t:
            y, width = b.parameter(shape, "weight", f"torch.randn({{s}}) * {round(k**-0.5, 4)!r}"), rms(x)
        else:
            y = b.input(shape, "y", "other", "B", "weight", "rhs")
        body = Contract(y, sizes, ("{M}", "{N}"), self.a_t, self.b_t)
        return b.step(self.name, d.pick(self.forms), body, [x, y], (m, n), centred(0.0, width))


PRODUCTS = {
    "matmul": Product(("torch.matmul({0}, {1})", "{0} @ {1}", "torch.mm({0}, {1})")),
    "matmul_transposed_a": Product(("torch.matmul({0}.T, {1})", "{0}.t() @ {1}", "torch.mm({0}.T, {1})"), a_t=True),
    "matmul_transposed_b": Product(("torch.matmul({0}, {1}.T)", "{0} @ {1}.t()", "torch.mm({0}, {1}.T)"), b_t=True),
    "matmul_transposed_both": Product(
        ("torch.matmul({0}.T, {1}.T)", "{0}.t() @ {1}.t()", "torch.mm({0}.T, {1}.T)"), a_t=True, b_t=True
    ),
}


def batched(b: Builder, x: Value, name: str, other: Value | None = None) -> Value:
    """Append products of matrices in a batch with those of a second input, or of `other`; transposed for scores."""
    if len(x.shape) != 3 or (other is None and len(b.inputs) > 1):
        raise Refused(name)
    z, m, k = x.shape
    if name == "attention_scores":
        y = other or b.input((z, m, k), "k", "key", "keys")
        n, transposed = y.shape[1], True
        forms: tuple[str, ...] = ("torch.matmul({0}, {1}.transpose(-2, -1))", "torch.bmm({0}, {1}.transpose(1, 2))")
    else:
        n, transposed = other.shape[2] if other else min(side(b), 128), False
        y = other or b.input((z, k, n), "y", "other", "rhs")
        forms = ("torch.bmm({0}, {1})", "torch.matmul({0}, {1})", "{0} @ {1}")
    if z * m * k * n > 3e9 or z * m * n > 2e7:
        raise Refused(name)
    sizes = {"Z": "{x}.size(0)", "M": "{x}.size(1)", "K": "{x}.size(2)", "N": f"{{b}}.size({1 if transposed else 2})"}
    body = Contract(y, sizes, ("{Z}", "{M}", "{N}"), b_t=transposed, batch=True)
    return b.step(name, b.draw.pick(forms), body, [x, y], (z, m, n), centred(0.0, math.sqrt(k) * rms(x)))


def linear(
    b: Builder, x: Value, out_features: int | None = None, attribute: str = "", bias: bool | None = None
) -> Value:
    """Append a linear layer over the last dimension."""
    d, k = b.draw, x.shape[-1]
    n = out_features or side(b)
    work = x.numel * n
    if work > 4e9 or k < 4 or (d.small and work > 2e6):
        raise Refused("linear")
    base = attribute or d.pick(("fc", "linear", "proj", "dense", "lin"))
    bias = d.chance(0.8) if bias is None else bias
    options = "" if bias else ", bias=False"
    name = b.module(base, f"nn.Linear({b.argument('in_features', k)}, {b.argument('out_features', n)}{options})")
    weight = Value((n, k), "weight", f"{name}.weight")
    vector = Value((n,), "bias", f"{name}.bias") if bias else None
    sizes, alloc = _last_dimension(x, "{b}.size(0)")
    body = Contract(weight, sizes, alloc, b_t=True, bias=vector)
    return b.step("linear", f"{name}({{0}})", body, [x], (*x.shape[:-1], n), centred(0.0, max(rms(x), 0.2) * 0.55))


def _last_dimension(x: Value, n: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """Sizes of a product of the last dimension with a matrix, and those of the result."""
    last = len(x.shape) - 1
    if last == 1:
        return {"M": "{x}.size(0)", "K": "{x}.size(1)", "N": n}, ("{M}", "{N}")
    return {"K": f"{{x}}.size({last})", "M": "{x}.numel() / {K}", "N": n}, (*dims(last), "{N}")


def last_dimension(b: Builder, x: Value) -> Value:
    """Append the product of a tensor's last dimension with a matrix."""
    k, n, last = x.shape[-1], side(b), len(x.shape) - 1
    if len(b.inputs) > 1 or k < 4 or x.numel * n > (2e6 if b.draw.small else 2e9):
        raise Refused("matmul_last_dimension")
    y = b.input((k, n), "y")
    start = b.draw.pick((0, 1, 8, 23 - last))
    kept, summed, new = _LETTERS[start : start + last], _LETTERS[start + last], _LETTERS[start + last + 1]
    einsum = f"torch.einsum('{kept}{summed},{summed}{new}->{kept}{new}', {{0}}, {{1}})"
    code = b.draw.pick(("torch.matmul({0}, {1})", "{0} @ {1}", einsum))
    body, probes = Contract(y, *_last_dimension(x, "{b}.size(1)")), centred(0.0, math.sqrt(k) * rms(x))
    return b.step("matmul_last_dimension", code, body, [x, y], (*x.shape[:-1], n), probes)


def matvec(b: Builder, x: Value) -> Value:
    """Append the product of a matrix with a vector."""
    _two(b, x, "matvec", 2)
    rows, length = x.shape
    y = b.input((length,), "y", "vec", "vector")
    body = of_rows(x, (Pass("sum", "sum", "{v} * {y}[{j}]"),), "{sum}", "row", {"y": y})
    code = b.draw.pick(("torch.mv({0}, {1})", "torch.matmul({0}, {1})", "{0} @ {1}"))
    return b.step("matvec", code, body, [x, y], (rows,), centred(0.0, math.sqrt(length) * rms(x)))


def row_dot(b: Builder, x: Value) -> Value:
    """Append the dot product of each row with the same row of a second tensor."""
    _two(b, x, "row_dot", 2)
    y = b.input(x.shape, "y")
    body = of_rows(x, (Pass("sum", "sum", "{v} * {y}[{i}]"),), "{sum}", "row", {"y": y})
    code = b.draw.pick(("torch.sum({0} * {1}, dim=1)", "({0} * {1}).sum(dim=-1)", 'torch.einsum("ij,ij->i", {0}, {1})'))
    return b.step("row_dot", code, body, [x, y], (x.shape[0],), centred(0.0, math.sqrt(x.shape[1]) * rms(x)))


def outer(b: Builder, x: Value) -> Value:
    """Append the outer product of two vectors."""
    _two(b, x, "outer", 1)
    y = b.input((side(b) + b.draw.pick((0, 1, 8)),), "y")
    lines = ("float {v} = {x}[{i} / {N}] * {y}[{i} % {N}];",)
    body = Element(lines, {"N": "{y}.size(0)"}, ("{x}.size(0)", "{N}"), {"y": y})
    code = b.draw.pick(("torch.outer({0}, {1})", "{0}.unsqueeze(1) * {1}.unsqueeze(0)", "{0}[:, None] * {1}[None, :]"))
    return b.step("outer", code, body, [x, y], (x.shape[0], y.shape[0]))


def scaled_rows(b: Builder, x: Value) -> Value:
    """Append a diagonal matrix times a matrix."""
    _two(b, x, "scaled_rows", 1)
    y = b.input((x.shape[0], side(b)), "y")
    body = Element(("float {v} = {x}[{i} / {N}] * {y}[{i}];",), {"N": "{y}.size(1)"}, ("{x}.size(0)", "{N}"), {"y": y})
    code = b.draw.pick(("{0}.unsqueeze(1) * {1}", "{0}[:, None] * {1}", "torch.diag({0}) @ {1}"))
    return b.step("scaled_rows", code, body, [x, y], y.shape)


def _matrix(b: Builder) -> Value:
    if b.draw.tiny or b.draw.chance(0.5):
        return b.input((side(b), side(b)), dims=("rows", "inner"))
    features = side(b)
    return b.input((min(b.draw.batch(features), 4096), features))


def _vector(b: Builder) -> Value:
    return b.input((side(b) * (1 if b.draw.small else 4) + b.draw.pick((0, 1, 3)),))


def _batch(b: Builder) -> Value:
    batch = b.draw.pick((2, 3, 4) if b.draw.small else (4, 8, 12, 16, 32))
    return b.input((batch, min(side(b), 512), min(side(b), 128)), *(("q",) if b.draw.chance(0.3) else ()))


def _sequences(b: Builder) -> Value:
    if b.draw.chance(0.6) or b.draw.tiny:
        return _matrix(b)
    length, features = b.draw.length(), side(b)
    return b.input((b.draw.pick((2, 3) if b.draw.small else (4, 8, 16)), length, features))


def _tensor(b: Builder) -> Value:
    d = b.draw
    lead = [d.pick((2, 3, 4, 5) if d.small else (4, 8, 16, 32)) for _ in range(d.pick((1, 2, 2)) + 1)]
    return b.input((*lead, side(b)))


FURTHER = {
    "bmm": Special("contract", partial(batched, name="bmm"), _batch, (3,)),
    "attention_scores": Special("contract", partial(batched, name="attention_scores"), _batch, (3,), weak=True),
    "linear": Special("contract", linear, _sequences, (2, 3), layer=True),
    "matmul_last_dimension": Special("contract", last_dimension, _tensor, (3, 4)),
    "matvec": Special("contract", matvec, _matrix, weak=True),
    "row_dot": Special("contract", row_dot, _matrix, weak=True),
    "outer": Special("contract", outer, _vector, (1,), weak=True),
    "scaled_rows": Special("contract", scaled_rows, _vector, (1,), weak=True),
}
