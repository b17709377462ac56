"""Prints a program as a KernelBench problem: Model, get_inputs, get_init_inputs."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from dice.data.synthetic.draw import Draw, Words
from dice.data.synthetic.graph import Input, Program, Scalar, Value


def call_names(
    order: Sequence[tuple[Sequence[Value], Value]], inputs: Sequence[Value], pool: Sequence[str]
) -> dict[Value, str]:
    """A Python name for every input and result. A result gets its first operand's name if that is not read again.

    `order`: (operands, result) of each statement.
    """
    last_use = {value: at for at, (operands, _) in enumerate(order) for value in operands}
    names = {value: value.name for value in inputs}
    taken = set(names.values())
    spare = iter([name for name in (*pool, *(f"h{k}" for k in range(2, 30))) if name not in taken])
    for at, (operands, result) in enumerate(order):
        source = operands[0]
        free = not source.code and last_use[source] == at and names.get(source) is not None
        names[result] = names[source] if free else next(spare)
    return names


POOL = ("h", "y2", "out", "z2", "t", "s", "hidden", "u2")


def given_text(name: str, value: object, dims: dict[str, int]) -> str:
    """A constructor argument in get_init_inputs(): the module-level size of that name and value, if there is one."""
    for known in (name, name.removeprefix("in_")):
        if isinstance(value, int) and dims.get(known) == value:
            return known
    return repr(value)


def input_text(item: Input) -> str:
    """The expression that makes one input."""
    statistics = [text if size != 1 else "1" for text, size in zip(item.dims, item.statistics, strict=False)]
    comma = "," if len(item.dims) == 1 else ""
    return item.text.format(s=", ".join(item.dims), s1=", ".join(statistics), t=f"({', '.join(item.dims)}{comma})")


def constructor(program: Program, default: bool, words: Words) -> list[str]:
    """Lines of Model's __init__, empty where none is needed and not `default`."""
    statements = [item.text for item in program.init if item.where in ("both", "model")]
    if not statements and not program.arguments and not default:
        return []
    head = f"    def __init__({', '.join(['self', *program.arguments])}):"
    return _method(head, statements, "Model", words)


def answer_constructor(program: Program, words: Words) -> list[str]:
    """Lines of ModelNew's __init__.

    It takes the same arguments as Model but writes the numbers out, because the compact prompt does not show how Model
    gets them.
    """
    names = "|".join(map(re.escape, program.arguments))
    given = re.compile(rf"(?<![\w.])({names})\b(?!\s*=)")
    statements = [item.text for item in program.init if item.where in ("both", "new")]
    if names:
        statements = [given.sub(lambda found: repr(program.arguments[found[0]]), text) for text in statements]
        kept = re.compile(rf"self\.({names}) = [^(]*")
        statements = [text for text in statements if not kept.fullmatch(text)]
    return _method("    def __init__(self, *args):", statements, "ModelNew", words)


def _method(head: str, statements: list[str], owner: str, words: Words) -> list[str]:
    parent = f"{owner}, self" if words.old_super else ""
    return [head, f"        super({parent}).__init__()", *(f"        {text}" for text in statements), ""]


def _is_primary(code: str) -> bool:
    """Whether an expression needs no brackets before a call or a product: no operator stands outside its brackets."""
    depth, outside = 0, []
    for letter in code:
        depth -= letter in ")]"
        outside.append(letter if depth == 0 else "")
        depth += letter in "(["
    return not set("".join(outside)) & set(" -+*/~")


def _statements(program: Program, d: Draw) -> list[tuple[str, tuple[Value, ...], Value]]:
    """(expression in {0}, {1}, ..., operands, result) of each line of forward; some expressions are nested."""
    uses = Counter(value for step in program.steps for value in step.inputs)
    nests = d.chance(0.45)
    lines: list[tuple[str, tuple[Value, ...], Value]] = []
    for step in program.steps:
        code, operands = step.code, step.inputs
        if nests and lines and step.inputs[0] is lines[-1][2] and uses[step.inputs[0]] == 1 and code.count("{0}") == 1:
            inner, read, _ = lines[-1]
            if len(inner) + len(code) < 70 and d.chance(0.75):
                lines.pop()
                bare = _is_primary(inner) or code.endswith("({0})")
                # the inner expression keeps its operand numbers, the outer one's further operands follow
                further = {str(k): f"{{{k + len(read) - 1}}}" for k in range(1, len(step.inputs))}
                parts = re.split(r"\{(\d+)\}", code)
                holes = [further.get(part, inner if bare else f"({inner})") for part in parts[1::2]]
                code = "".join(itertools.chain(*itertools.zip_longest(parts[::2], holes, fillvalue="")))
                operands = (*read, *step.inputs[1:])
        lines.append((code, operands, step.out))
    return lines


def write_model(program: Program, d: Draw, words: Words) -> str:
    """The PyTorch program."""
    varied = d.config.varied_programs
    if varied:
        words = replace(words, docstring=d.chance(0.5), old_super=d.chance(0.15))
    lines_of = _statements(program, d)
    inputs = [item.value for item in program.inputs]
    names = call_names([(operands, out) for _, operands, out in lines_of], inputs, POOL)
    codes = [
        template.format(*(names.get(value, value.code) for value in operands)) for template, operands, _ in lines_of
    ]
    forward = [f"        {names[out]} = {code}" for code, (_, _, out) in zip(codes, lines_of, strict=True)]
    if (d.tiny and not varied) or d.chance(0.7):
        forward[-1] = f"        return {codes[-1]}"
    else:
        forward.append(f"        return {names[program.result]}")
    lines = ["import torch", "import torch.nn as nn"]
    body = "\n".join([*forward, *(item.text for item in program.init if item.where != "new")])
    if varied and d.chance(0.4):
        place = d.pick(("torch.nn.functional.", "nn.functional."))
        forward = [re.sub(r"\bF\.", place, line) for line in forward]
    elif "F." in body:
        lines.append("import torch.nn.functional as F")
    lines += ["", "", "class Model(nn.Module):"]
    if words.docstring:
        lines += [f'    """{describe(program)}"""', ""]
    lines += constructor(program, d.chance(0.4) if varied else d.tiny or d.chance(0.7), words)
    hints = d.chance(0.2) and not d.tiny
    signature = [f"{value.name}: torch.Tensor" if hints else value.name for value in inputs]
    result = " -> torch.Tensor" if hints else ""
    lines += [f"    def forward(self, {', '.join(signature)}){result}:", *forward, "", ""]
    made = [input_text(item) for item in program.inputs]
    given = [given_text(name, value, program.dims) for name, value in program.arguments.items()]
    named: list[str] = []
    if varied and d.chance(0.6):
        taken = {*program.dims, *(value.name for value in inputs)}
        named = [f"{name} = {text}" for (name, text) in zip(program.arguments, given, strict=True) if name not in taken]
        given = [text if name in taken else name for name, text in zip(program.arguments, given, strict=True)]
    used = "\n".join([*made, *given, *named])
    constants = [f"{name} = {size}" for name, size in program.dims.items() if re.search(rf"\b{name}\b", used)] + named
    if constants:
        lines += [*constants, "", ""]
    lines.append("def get_inputs():")
    if len(made) > 1 and d.chance(0.5):
        lines += [f"    {value.name} = {text}" for value, text in zip(inputs, made, strict=True)]
        made = [value.name for value in inputs]
    lines += [
        f"    return [{', '.join(made)}]",
        "",
        "",
        "def get_init_inputs():",
        f"    return [{', '.join(given)}]",
        "",
    ]
    return "\n".join(lines)


def describe(program: Program) -> str:
    """One sentence on what the program does."""
    words = [step.family.replace("_", " ") for step in program.steps]
    text = ", ".join(words[:-1]) + (" and " if len(words) > 1 else "") + words[-1]
    return text[0].upper() + text[1:] + "."


def python_call(function: str, args: Iterable[Value | Scalar], names: dict[Value, str]) -> str:
    """The call of a host function from ModelNew.forward."""
    texts = [arg.code or names[arg] if isinstance(arg, Value) else repr(arg.value) for arg in args]
    return f"{function}({', '.join(texts)})"
