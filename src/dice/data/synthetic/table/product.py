"""Matrix products beyond those of the first families: both sides transposed, a tensor times a matrix, scaled rows."""

from __future__ import annotations

import math

from dice.data.synthetic.builder import Builder, Refused
from dice.data.synthetic.families.contraction import rms, side, spread
from dice.data.synthetic.families.registry import Family
from dice.data.synthetic.graph import Contract, Element, Value

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_MOST_WORK = {True: 2e6, False: 2e9}
"""Multiplications of one product, for small shapes or not."""


def transposed_both(b: Builder, x: Value) -> Value:
    """Append x.T @ y.T."""
    k, m = x.shape
    n = side(b)
    if len(b.inputs) > 1 or k < 4 or m * k * n > _MOST_WORK[b.draw.small]:
        raise Refused("matmul_transposed_both")
    y = b.input((n, k), "y")
    sizes = {"M": "{x}.size(1)", "K": "{x}.size(0)", "N": "{b}.size(0)"}
    body = Contract(y, sizes, ("{M}", "{N}"), a_t=True, b_t=True)
    code = b.draw.pick(("torch.matmul({0}.T, {1}.T)", "{0}.t() @ {1}.t()", "torch.mm({0}.T, {1}.T)"))
    return b.step("matmul_transposed_both", code, body, [x, y], (m, n), spread(math.sqrt(k) * rms(x)))


def last_dimension(b: Builder, x: Value) -> Value:
    """Append the product of a tensor's last dimension with a matrix."""
    k, n = x.shape[-1], side(b)
    if len(b.inputs) > 1 or k < 4 or x.numel * n > _MOST_WORK[b.draw.small]:
        raise Refused("matmul_last_dimension")
    y = b.input((k, n), "y")
    last = len(x.shape) - 1
    sizes = {"K": f"{{x}}.size({last})", "M": "{x}.numel() / {K}", "N": "{b}.size(1)"}
    alloc = (*(f"{{x}}.size({axis})" for axis in range(last)), "{N}")
    start = b.draw.pick((0, 1, 8, 23 - last))
    kept, summed, new = _LETTERS[start : start + last], _LETTERS[start + last], _LETTERS[start + last + 1]
    einsum = f"torch.einsum('{kept}{summed},{summed}{new}->{kept}{new}', {{0}}, {{1}})"
    code = b.draw.pick(("torch.matmul({0}, {1})", "{0} @ {1}", einsum))
    shape = (*x.shape[:-1], n)
    return b.step(
        "matmul_last_dimension", code, Contract(y, sizes, alloc), [x, y], shape, spread(math.sqrt(k) * rms(x))
    )


def scaled_rows(b: Builder, x: Value) -> Value:
    """Append a diagonal matrix times a matrix."""
    if len(b.inputs) > 1:
        raise Refused("scaled_rows")
    y = b.input((x.shape[0], side(b)), "y")
    body = Element(("float {v} = {x}[{i} / {N}] * {y}[{i}];",), {"N": "{y}.size(1)"}, ("{x}.size(0)", "{N}"), {"y": y})
    code = b.draw.pick(("{0}.unsqueeze(1) * {1}", "{0}[:, None] * {1}", "torch.diag({0}) @ {1}"))
    return b.step("scaled_rows", code, body, [x, y], y.shape)


def families(held: frozenset[str]) -> list[Family]:
    """The products as families; those in `held` are held out."""

    def matrix(b: Builder) -> Value:
        return b.input((side(b), side(b)), dims=("rows", "inner"))

    def tensor(b: Builder) -> Value:
        small = b.draw.small
        lead = tuple(b.draw.pick((2, 3, 4, 5) if small else (4, 8, 16, 32)) for _ in range(b.draw.pick((1, 2, 2)) + 1))
        return b.input((*lead, side(b)))

    def vector(b: Builder) -> Value:
        return b.input((side(b),))

    return [
        Family("matmul_transposed_both", "contract", transposed_both, matrix, True, False, (2,), True),
        Family("matmul_last_dimension", "contract", last_dimension, tensor, True, False, (3, 4)),
        Family("scaled_rows", "contract", scaled_rows, vector, True, False, (1,), True),
    ]
