"""Prints a program as a KernelBench problem: Model, get_inputs, get_init_inputs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from dice.data.synthetic.draw import Draw, Words
from dice.data.synthetic.graph import Input, Program, Scalar, Value


def call_names(
    order: Sequence[tuple[Sequence[Value], Value]], inputs: Sequence[Value], pool: Sequence[str]
) -> dict[Value, str]:
    """A Python name for every input and result: a result takes its first operand's name when that is not read again.

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
    """A constructor argument in get_init_inputs(): a module-level size where one has its name and value."""
    for known in (name, name.removeprefix("in_")):
        if isinstance(value, int) and dims.get(known) == value:
            return known
    return repr(value)


def input_text(item: Input) -> str:
    """The expression that makes one input."""
    statistics = [text if size != 1 else "1" for text, size in zip(item.dims, item.statistics, strict=False)]
    return item.text.format(s=", ".join(item.dims), s1=", ".join(statistics))


def constructor(program: Program, side: str, default: bool) -> list[str]:
    """Lines of __init__ of Model (`side` model) or ModelNew (new), empty where none is needed and not `default`."""
    statements = [item.text for item in program.init if item.where in ("both", side)]
    if not statements and not program.arguments and not default:
        return []
    head = f"    def __init__({', '.join(['self', *program.arguments])}):"
    return [head, "        super().__init__()", *(f"        {text}" for text in statements), ""]


def write_model(program: Program, d: Draw, words: Words) -> str:
    """The PyTorch program."""
    order = [(step.inputs, step.out) for step in program.steps]
    inputs = [item.value for item in program.inputs]
    names = call_names(order, inputs, POOL)
    forward = []
    for number, step in enumerate(program.steps):
        code = step.code.format(*(names.get(value, value.code) for value in step.inputs))
        if number + 1 == len(program.steps) and (d.tiny or d.chance(0.7)):
            forward.append(f"        return {code}")
        else:
            forward.append(f"        {names[step.out]} = {code}")
    if not forward[-1].lstrip().startswith("return"):
        forward.append(f"        return {names[program.result]}")
    lines = ["import torch", "import torch.nn as nn"]
    body = "\n".join([*forward, *(item.text for item in program.init if item.where != "new")])
    if "F." in body:
        lines.append("import torch.nn.functional as F")
    lines += ["", "", "class Model(nn.Module):"]
    if words.docstring:
        lines += [f'    """{describe(program)}"""', ""]
    lines += constructor(program, "model", d.tiny or d.chance(0.7))
    hints = d.chance(0.2) and not d.tiny
    signature = [f"{value.name}: torch.Tensor" if hints else value.name for value in inputs]
    result = " -> torch.Tensor" if hints else ""
    lines += [f"    def forward(self, {', '.join(signature)}){result}:", *forward, "", ""]
    made = [input_text(item) for item in program.inputs]
    given = [given_text(name, value, program.dims) for name, value in program.arguments.items()]
    used = "\n".join([*made, *given])
    constants = [f"{name} = {size}" for name, size in program.dims.items() if re.search(rf"\b{name}\b", used)]
    if constants:
        lines += [*constants, "", ""]
    lines.append("def get_inputs():")
    if len(made) > 1 and d.chance(0.5):
        fresh = [value.name for value in inputs]
        lines += [f"    {name} = {text}" for name, text in zip(fresh, made, strict=True)]
        lines.append(f"    return [{', '.join(fresh)}]")
    else:
        lines.append(f"    return [{', '.join(made)}]")
    lines += ["", "", "def get_init_inputs():", f"    return [{', '.join(given)}]", ""]
    return "\n".join(lines)


def describe(program: Program) -> str:
    """One sentence on what the program does."""
    words = [step.label.replace("_", " ") for step in program.steps]
    text = ", ".join(words[:-1]) + (" and " if len(words) > 1 else "") + words[-1]
    return text[0].upper() + text[1:] + "."


def python_call(function: str, args: Iterable[Value | Scalar], names: dict[Value, str]) -> str:
    """The call of a host function from ModelNew.forward."""
    texts = []
    for arg in args:
        if isinstance(arg, Value):
            texts.append(arg.code or names[arg])
        else:
            texts.append(arg.code)
    return f"{function}({', '.join(texts)})"
