"""Gated linear units: one half of the last dimension gates the other half."""

from __future__ import annotations

import math
from collections.abc import Callable

from dice.data.synthetic.builder import Builder, Refused
from dice.data.synthetic.families.registry import HELDOUT, Family
from dice.data.synthetic.graph import Element, Value

_HALVES = ("{0}[..., :{h}]", "{0}[..., {h}:]")
_GATES: dict[str, tuple[str, Callable[[float, float], float], tuple[str, ...]]] = {
    "glu": (
        "a / (1.0f + expf(-b))",
        lambda a, b: a / (1 + math.exp(-b)),
        ("F.glu({0}, dim=-1)", "{p} * torch.sigmoid({q})"),
    ),
    "swiglu": ("a / (1.0f + expf(-a)) * b", lambda a, b: a / (1 + math.exp(-a)) * b, ("F.silu({p}) * {q}",)),
    "geglu": (
        "0.5f * a * (1.0f + erff(a * 0.7071067811865476f)) * b",
        lambda a, b: 0.5 * a * (1 + math.erf(a * math.sqrt(0.5))) * b,
        ("F.gelu({p}) * {q}",),
    ),
    "reglu": ("fmaxf(a, 0.0f) * b", lambda a, b: max(a, 0.0) * b, ("F.relu({p}) * {q}", "torch.relu({p}) * {q}")),
    "tanh_glu": ("tanhf(a) * b", lambda a, b: math.tanh(a) * b, ("torch.tanh({p}) * {q}",)),
    "half_difference": ("fabsf(a - b)", lambda a, b: abs(a - b), ("torch.abs({p} - {q})",)),
    "half_maximum": ("fmaxf(a, b)", max, ("torch.maximum({p}, {q})",)),
}


def gate(b: Builder, x: Value, name: str) -> Value:
    """Append gate `name`."""
    if x.shape[-1] % 2 or x.shape[-1] < 4:
        raise Refused(name)
    expression, reference, forms = _GATES[name]
    half, last = x.shape[-1] // 2, len(x.shape) - 1
    lines = (
        "int p = {i} / {D};",
        "int q = {i} % {D};",
        "float a = {x}[p * 2 * {D} + q];",
        "float b = {x}[p * 2 * {D} + {D} + q];",
        f"float {{v}} = {expression};",
    )
    alloc = (*(f"{{x}}.size({axis})" for axis in range(last)), "{D}")
    first, second = (text.replace("{h}", str(half)) for text in _HALVES)
    code = b.draw.pick(forms).replace("{p}", first).replace("{q}", second)
    other = (*x.probes[5:], *x.probes[:5])
    try:
        probes = tuple(reference(*both) for both in zip(x.probes, other, strict=True))
    except OverflowError as error:
        raise Refused(name) from error
    body = Element(lines, {"D": f"{{x}}.size({last}) / 2"}, alloc)
    return b.step(name, code, body, [x], (*x.shape[:-1], half), probes)


def families() -> list[Family]:
    """All gates as families."""

    def even(b: Builder) -> Value:
        shape = b.draw.shape(2 if b.draw.tiny else b.draw.pick((2, 2, 3)))
        return b.input((*shape[:-1], shape[-1] + shape[-1] % 2))

    def named(name: str) -> Callable[[Builder, Value], Value]:
        return lambda b, x: gate(b, x, name)

    return [Family(name, "gate", named(name), even, True, name in HELDOUT, ranks=(2, 3)) for name in _GATES]
