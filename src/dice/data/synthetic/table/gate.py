"""Gated linear units: one half of the last dimension gates the other half."""

from __future__ import annotations

from functools import partial

from dice.data.synthetic.builder import Builder, Refused
from dice.data.synthetic.evaluate import function
from dice.data.synthetic.graph import Element, Value
from dice.data.synthetic.table.entry import Entry
from dice.data.synthetic.table.index import dims

GATES: dict[str, tuple[str, tuple[str, ...]]] = {
    "glu": ("{a} / (1.0f + expf(-{b}))", ("F.glu({0}, dim=-1)", "{p} * torch.sigmoid({q})")),
    "swiglu": ("{a} / (1.0f + expf(-{a})) * {b}", ("F.silu({p}) * {q}",)),
    "geglu": ("0.5f * {a} * (1.0f + erff({a} * 0.7071067811865476f)) * {b}", ("F.gelu({p}) * {q}",)),
    "reglu": ("fmaxf({a}, 0.0f) * {b}", ("F.relu({p}) * {q}", "torch.relu({p}) * {q}")),
    "tanh_glu": ("tanhf({a}) * {b}", ("torch.tanh({p}) * {q}",)),
    "half_difference": ("fabsf({a} - {b})", ("torch.abs({p} - {q})",)),
    "half_maximum": ("fmaxf({a}, {b})", ("torch.maximum({p}, {q})",)),
}
"""CUDA expression of both halves, and spellings in the halves {p} and {q}."""


def gate(b: Builder, x: Value, name: str) -> Value:
    """Append gate `name` of GATES."""
    if x.shape[-1] % 2 or x.shape[-1] < 4:
        raise Refused(name)
    expression, forms = GATES[name]
    half, last = x.shape[-1] // 2, len(x.shape) - 1
    lines = (
        "int p = {i} / {D};",
        "int q = {i} % {D};",
        "float a = {x}[p * 2 * {D} + q];",
        "float b = {x}[p * 2 * {D} + {D} + q];",
        f"float {{v}} = {expression.format(a='a', b='b')};",
    )
    code = b.draw.pick(forms).replace("{p}", f"{{0}}[..., :{half}]").replace("{q}", f"{{0}}[..., {half}:]")
    other = (*x.probes[5:], *x.probes[:5])
    try:
        probes = tuple(function(expression, ("a", "b"))(*both) for both in zip(x.probes, other, strict=True))
    except OverflowError as error:
        raise Refused(name) from error
    body = Element(lines, {"D": f"{{x}}.size({last}) / 2"}, (*dims(last), "{D}"))
    return b.step(name, code, body, [x], (*x.shape[:-1], half), probes)


def _even(b: Builder) -> Value:
    *lead, last = b.draw.shape(2 if b.draw.tiny else b.draw.pick((2, 2, 3)))
    return b.input((*lead, last + last % 2))


def entries() -> list[Entry]:
    """All gates."""
    return [Entry(name, "gate", partial(gate, name=name), _even, (2, 3)) for name in GATES]
