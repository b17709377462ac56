"""Gated linear units: one half of the last dimension gates the other half."""

from __future__ import annotations

from dataclasses import dataclass

from dice.data.synthetic.builder import Builder, Refused
from dice.data.synthetic.evaluate import function
from dice.data.synthetic.graph import Element, Value
from dice.data.synthetic.table.entry import Entry
from dice.data.synthetic.table.index import dims


@dataclass
class Gate(Entry, group="gate", ranks=(2, 3)):
    """A CUDA expression of both halves, {a} and {b}, and spellings in the halves {p} and {q}."""

    cuda: str
    forms: tuple[str, ...]

    def first(self, b: Builder) -> Value:
        *lead, last = b.draw.shape(2 if b.draw.tiny else b.draw.pick((2, 2, 3)))
        return b.input((*lead, last + last % 2))

    def apply(self, b: Builder, x: Value) -> Value:
        self.refuse_if(x.shape[-1] % 2 or x.shape[-1] < 4)
        half, last = x.shape[-1] // 2, len(x.shape) - 1
        lines = (
            "int p = {i} / {D};",
            "int q = {i} % {D};",
            "float a = {x}[p * 2 * {D} + q];",
            "float b = {x}[p * 2 * {D} + {D} + q];",
            f"float {{v}} = {self.cuda.format(a='a', b='b')};",
        )
        code = b.draw.pick(self.forms).replace("{p}", f"{{0}}[..., :{half}]").replace("{q}", f"{{0}}[..., {half}:]")
        other = (*x.probes[5:], *x.probes[:5])
        try:
            probes = tuple(map(function(self.cuda, ("a", "b")), x.probes, other))
        except OverflowError as error:
            raise Refused(self.name) from error
        body = Element(lines, {"D": f"{{x}}.size({last}) / 2"}, (*dims(last), "{D}"))
        return b.step(self.name, code, body, [x], (*x.shape[:-1], half), probes)


GATES = {
    "glu": Gate("{a} / (1.0f + expf(-{b}))", ("F.glu({0}, dim=-1)", "{p} * torch.sigmoid({q})")),
    "swiglu": Gate("{a} / (1.0f + expf(-{a})) * {b}", ("F.silu({p}) * {q}",)),
    "geglu": Gate("0.5f * {a} * (1.0f + erff({a} * 0.7071067811865476f)) * {b}", ("F.gelu({p}) * {q}",)),
    "reglu": Gate("fmaxf({a}, 0.0f) * {b}", ("F.relu({p}) * {q}", "torch.relu({p}) * {q}")),
    "tanh_glu": Gate("tanhf({a}) * {b}", ("torch.tanh({p}) * {q}",)),
    "half_difference": Gate("fabsf({a} - {b})", ("torch.abs({p} - {q})",)),
    "half_maximum": Gate("fmaxf({a}, {b})", ("torch.maximum({p}, {q})",)),
}
