"""Prints the CUDA answer: kernels and host code as one `source` string, its declarations, load_inline, ModelNew."""

from __future__ import annotations

from dataclasses import dataclass

from dice.data.synthetic.builder import free_name
from dice.data.synthetic.cuda.grouping import Group, lower
from dice.data.synthetic.cuda.scope import Function, block
from dice.data.synthetic.draw import Draw, Words
from dice.data.synthetic.graph import Program, Scalar, Value
from dice.data.synthetic.torch_writer import POOL, answer_constructor, call_names, python_call


@dataclass(frozen=True, slots=True)
class Answer:
    """A CUDA program in the three parts of the infilling task: `prefix + middle + suffix` is the file."""

    prefix: str
    middle: str
    suffix: str
    functions: tuple[str, ...]
    """Names that load_inline binds."""

    @property
    def code(self) -> str:
        return self.prefix + self.middle + self.suffix


@dataclass(frozen=True, slots=True)
class Lowered:
    """The functions of a program, and their calls in order."""

    functions: list[Function]
    calls: list[tuple[Function, Group]]


def lower_program(groups: list[Group], styles: list[str], words: Words, d: Draw) -> Lowered:
    """Lower every group; groups with the same text share one function."""
    functions: dict[str, Function] = {}
    calls: list[tuple[Function, Group]] = []
    for group, style in zip(groups, styles, strict=True):
        base = "" if d.plain else words.fused.format(group.label) if len(group.steps) > 1 else group.label
        for label in (base, *(f"{base}{number}" for number in range(2, len(groups) + 1))):
            function = lower(group, style, words, label)
            known = functions.setdefault(label, function)
            if (known.kernels, known.host) == (function.kernels, function.host):
                calls.append((function, group))
                break
    return Lowered(list(functions.values()), calls)


def write_answer(program: Program, lowered: Lowered, words: Words) -> Answer:
    """The whole Python file."""
    helpers = {name: text for function in lowered.functions for name, text in function.helpers.items()}
    parts = [*helpers.values()]
    for function in lowered.functions:
        parts += [function.kernels, function.host]
    declared = [function.declaration for function in lowered.functions]
    bound = [function.name for function in lowered.functions]
    inputs = [item.value for item in program.inputs]
    names = call_names([(_operands(f, group), group.out) for f, group in lowered.calls], inputs, POOL)
    extension = words.extension.format(lowered.functions[0].name.removesuffix("_cuda"))
    if words.one_call and len(lowered.calls) > 1:
        name, host, declaration, args = _one_call(lowered, words)
        parts.append(host)
        declared, bound, calls = [declaration], [name], [("", name, args)]
    else:
        calls = [(names[group.out], function.name, function.args) for function, group in lowered.calls]
    lines = [f"{out} = {python_call(f'{extension}.{name}', args, names)}" for out, name, args in calls]
    lines[-1] = "return" + lines[-1].partition(" =")[2]
    text = "\n".join([*(f"#include <{name}>" for name in ("torch/extension.h", *words.includes)), "", *parts])
    prefix = "import torch\nimport torch.nn as nn\nfrom torch.utils.cpp_extension import load_inline\n\n"
    if words.comments:
        what = "fused " if any(len(group.steps) > 1 for _, group in lowered.calls) else ""
        prefix += f"# CUDA kernels for {what}{', '.join(step.family.replace('_', ' ') for step in program.steps)}\n"
    model = [
        "class ModelNew(nn.Module):",
        *answer_constructor(program, words),
        f"    def forward(self, {', '.join(value.name for value in inputs)}):",
        *(f"        {line}" for line in lines),
        "",
    ]
    suffix = "\n".join(["\n", *_build(words, declared, bound, extension), "", "", *model])
    return Answer(prefix, f'source = """\n{text}"""', suffix, tuple(bound))


def _operands(function: Function, group: Group) -> list[Value]:
    values = [arg for arg in function.args if isinstance(arg, Value)]
    return [group.source, *(value for value in values if value is not group.source)]


def _one_call(lowered: Lowered, words: Words) -> tuple[str, str, str, tuple[Value | Scalar, ...]]:
    """A C++ function that runs the groups one after another."""
    results = {group.out for _, group in lowered.calls}
    args: list[Value | Scalar] = []
    for function, _ in lowered.calls:
        args += [arg for arg in function.args if arg not in results and arg not in args]
    names: dict[Value | Scalar, str] = {}
    for arg in args:
        names[arg] = free_name(arg.name, lambda name: name in names.values())
    name = words.function.format("model")
    lines = []
    for number, (function, group) in enumerate(lowered.calls, 1):
        lines.append(f"auto step{number} = {function.name}({', '.join(names[arg] for arg in function.args)});")
        names[group.out] = f"step{number}"
    lines[-1] = "return" + lines[-1].partition("=")[2]
    items = [f"{'torch::Tensor' if isinstance(arg, Value) else words.floating} {names[arg]}" for arg in args]
    signature = f"torch::Tensor {name}({', '.join(items)})"
    return name, "\n".join([*block(signature, lines), ""]), signature + ";", tuple(args)


def _build(words: Words, declared: list[str], bound: list[str], extension: str) -> list[str]:
    """Lines that declare and build the functions."""
    one_line = words.lone_string and len(declared) == 1 and len(declared[0]) < 100
    sources = f'"{declared[0]}"' if one_line else '"""\n' + "\n".join(declared) + '\n"""'
    functions = "[" + ", ".join(f'"{name}"' for name in bound) + "]"
    if words.functions_as_dict:
        functions = "{" + ", ".join(f'"{name}": "{name} on CUDA"' for name in bound) + "}"
    in_call = words.short and one_line
    options = [
        f'name="{extension}"',
        f"cpp_sources={sources if in_call else words.declarations}",
        "cuda_sources=source",
        f"functions={functions}",
        *([f"verbose={words.verbose}"] if words.verbose else []),
    ]
    lines = [] if in_call else [f"{words.declarations} = {sources}", ""]
    if words.comments:
        lines.append("# Compile and load the CUDA extension")
    if in_call:
        return [*lines, f"{extension} = load_inline({', '.join(options)})"]
    return [*lines, f"{extension} = load_inline(", *(f"    {option}," for option in options), ")"]
