"""Inline PTX of one instruction, as C++. What is not listed here is unsupported on the CPU."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from dice.kernels.source.lexer import Token, at_commas, matching, shallow, source_of

_FLAGS = re.compile(
    r"\.(approx|ftz|rn|full|volatile|relaxed|weak|nc|ca|cg|cs|lu|cv|L1::\w+|L2::\w+|wb|wt|global|shared|cta|gl|sys|lo)\b"
)
_WAITING = {"relaxed", "acquire", "mmio", "cv"}
"""Of a load: what another thread writes meanwhile is seen, so a loop may wait for it. g++ would load once."""
_SPECIAL = {
    "%laneid": "dice_cpu_thread()->lane",
    "%warpid": "dice_cpu_thread()->linear / 32",
    "%smid": "0",
    "%lanemask_lt": "((1u << dice_cpu_thread()->lane) - 1)",
    "%lanemask_le": "((2u << dice_cpu_thread()->lane) - 1)",
    "%lanemask_gt": "~((2u << dice_cpu_thread()->lane) - 1)",
    "%lanemask_ge": "~((1u << dice_cpu_thread()->lane) - 1)",
    "%lanemask_eq": "(1u << dice_cpu_thread()->lane)",
    "%globaltimer": "clock64()",
    "%clock64": "clock64()",
    "%clock": "static_cast<unsigned>(clock64())",
}
_SPECIAL |= {
    f"%{name}.{axis}": f"dice_cpu_thread()->{member}.{axis}"
    for name, member in (
        ("tid", "thread_index"),
        ("ctaid", "block_index"),
        ("ntid", "block_dim"),
        ("nctaid", "grid_dim"),
    )
    for axis in "xyz"
}
_UNARY = {
    "ex2.f32": "exp2f({0})",
    "lg2.f32": "log2f({0})",
    "rcp.f32": "1.0f / ({0})",
    "sqrt.f32": "sqrtf({0})",
    "rsqrt.f32": "rsqrtf({0})",
    "sin.f32": "sinf({0})",
    "cos.f32": "cosf({0})",
    "tanh.f32": "tanhf({0})",
    "abs.f32": "fabsf({0})",
    "neg.f32": "-({0})",
    "popc.b32": "__popc({0})",
    "clz.b32": "__clz({0})",
    "brev.b32": "__brev({0})",
    "bfind.u32": "31 - __clz({0})",
}
_SAME_BITS = {
    ("f", "r"): "__float_as_uint({0})",
    ("r", "f"): "__uint_as_float({0})",
    ("d", "l"): "__double_as_longlong({0})",
    ("l", "d"): "__longlong_as_double({0})",
}
"""What `mov` does between registers: constraints of source and destination -> C++. An assignment would convert."""
_BINARY = {"add": "({0}) + ({1})", "sub": "({0}) - ({1})", "mul": "({0}) * ({1})"}
_TYPES = {"f32": "float", "u32": "unsigned", "s32": "int", "b32": "unsigned", "f64": "double", "u64": "unsigned long long", "s64": "long long", "b64": "unsigned long long"}  # fmt: skip  # noqa: E501


def translate(tokens: Sequence[Token], text: str) -> str | None:
    """C++ for `asm volatile("..." : outputs : inputs : clobbers)` without the final `;`, or None when unknown."""
    opening = next((i for i, token in enumerate(tokens) if token.text == "("), None)
    if opening is None:
        return None
    inside = tokens[opening + 1 : matching(tokens, opening)]
    sections: list[Sequence[Token]] = []
    start = 0
    for i in shallow(inside):  # a `:` in an operand's parentheses is the operand's own
        if inside[i].text in (":", "::"):
            sections += [inside[start:i], *([()] if inside[i].text == "::" else [])]
            start = i + 1
    sections.append(inside[start:])
    template = "".join(token.text[1:-1] for token in sections[0] if token.kind == "string")
    template = (
        re.sub(r"\s+", " ", template.replace("\\n", " ").replace("\\t", " ").replace("%%", "%"))
        .strip()
        .strip("{} ")
        .rstrip("; ")
    )
    if ";" in template:
        return None
    operands = [
        (group[0].text.strip('"=+&'), source_of(text, group[2:-1]))
        for section in sections[1:3]
        for group in at_commas(section)
        if len(group) > 2
    ]
    return _instruction(template, operands)


def _instruction(template: str, operands: Sequence[tuple[str, str]]) -> str | None:
    """C++ for one instruction. operands: constraint (`r`, `l`, `f`, ...) and expression of each, in order."""
    name, _, rest = template.partition(" ")
    if name.startswith(("membar", "fence", "prefetch", "griddepcontrol", "discard", "applypriority", "createpolicy")):
        return "__threadfence()"
    if name in ("bar.sync", "barrier.sync") and rest.strip() == "0":
        return "__syncthreads()"
    if name == "trap":
        return "__trap()"
    parts = [part.strip() for part in _at_commas(rest)]
    expressions = [expression for _, expression in operands]
    arguments = [_operand(part, expressions) for part in parts]
    plain = _FLAGS.sub("", name)
    kind = plain.rsplit(".", 1)[-1]
    if any(argument is None for argument in arguments) or not arguments:
        return None
    to, *given = [str(argument) for argument in arguments]
    constraints = [_constraint(part, operands) for part in parts]
    if plain.startswith("mov.") and len(given) == 1:
        return _move(to, given[0], constraints[0], constraints[1])
    if plain in _UNARY and len(given) == 1 and not (kind == "b32" and constraints[1] == "f"):
        return f"{to} = {_UNARY[plain].format(*given)}"
    if plain.split(".")[0] in _BINARY and kind in _TYPES and len(given) == 2 and plain.count(".") == 1:
        return f"{to} = {_BINARY[plain.split('.')[0]].format(*given)}"
    if plain in ("fma.f32", "mad.f32") and len(given) == 3:
        return f"{to} = fmaf({', '.join(given)})"
    if plain in ("max.f32", "min.f32") and len(given) == 2:
        return f"{to} = f{plain[:3]}f({', '.join(given)})"
    if (
        plain.split(".")[0] in ("ld", "st")
        and kind in _TYPES
        and ".v" not in name
        and "shared" not in name
        and len(given) == 1
    ):
        value = constraints[0 if plain.startswith("ld") else 1]
        type_name = {("b32", "f"): "float", ("b64", "d"): "double"}.get((kind, value), _TYPES[kind])
        words = set(name.split("."))
        if plain.startswith("ld"):
            volatile = "volatile " if words & _WAITING else ""
            load = f"{to} = *reinterpret_cast<const {volatile}{type_name}*>({given[0]})"
            return f"{load}, __threadfence()" if "acquire" in words else load
        store = f"*reinterpret_cast<{type_name}*>({to}) = {given[0]}"
        return f"__threadfence(), {store}" if "release" in words else store
    return None


def _move(to: str, given: str, into: str, out_of: str) -> str | None:
    if into == out_of or not (into and out_of):
        return f"{to} = {given}"
    bits = _SAME_BITS.get((out_of, into))
    return bits and f"{to} = {bits.format(given)}"


def _at_commas(text: str) -> list[str]:
    """The text in parts, between commas that the next brace does not close in."""
    ends, closed = [len(text)], False
    for place in range(len(text) - 1, -1, -1):
        if text[place] in "{}":
            closed = text[place] == "}"
        elif text[place] == "," and not closed:
            ends.append(place)
    return [text[begin + 1 : end] for begin, end in pairwise([-1, *reversed(ends)])]


def _constraint(text: str, operands: Sequence[tuple[str, str]]) -> str:
    """The constraint of an operand by its place in the instruction; "" of a constant or a special register."""
    match = re.fullmatch(r"\[?%(\d+)\]?", text)
    if match is None:
        return "f" if text[:2] in ("0f", "0F") else ""
    return operands[int(match.group(1))][0]


def _operand(text: str, operands: Sequence[str]) -> str | None:
    if text in _SPECIAL:
        return _SPECIAL[text]
    match = re.fullmatch(r"\[?%(\d+)\]?", text)
    if match and int(match.group(1)) < len(operands):
        return f"({operands[int(match.group(1))]})"
    if re.fullmatch(r"-?\d+|0x[0-9a-fA-F]+", text):
        return text
    match = re.fullmatch(r"0[fF]([0-9a-fA-F]{8})", text)
    return f"__uint_as_float(0x{match.group(1)}u)" if match else None
