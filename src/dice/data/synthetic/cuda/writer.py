"""Prints the CUDA answer: kernels and host code as one `source` string, its declarations, load_inline, ModelNew."""

from __future__ import annotations

from dataclasses import dataclass

from dice.data.synthetic.builder import free_name
from dice.data.synthetic.cuda.grouping import Group, lower
from dice.data.synthetic.cuda.scope import Function, indent
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
        base = label = "" if d.plain else words.fused.format(group.label) if len(group.steps) > 1 else group.label
        number = 2
        function = lower(group, style, words, label)
        while label in functions and not _same(function, functions[label]):
            label, number = f"{base}{number}", number + 1
            function = lower(group, style, words, label)
        functions.setdefault(label, function)
        calls.append((function, group))
    return Lowered(list(functions.values()), calls)


def _same(one: Function, other: Function) -> bool:
    return one.kernels == other.kernels and one.host == other.host


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
        declared, bound = [declaration], [name]
        forward = [f"        return {python_call(f'{extension}.{name}', args, names)}"]
    else:
        forward = []
        for number, (function, group) in enumerate(lowered.calls):
            call = python_call(f"{extension}.{function.name}", function.args, names)
            last = number + 1 == len(lowered.calls)
            forward.append(f"        return {call}" if last else f"        {names[group.out]} = {call}")
    includes = ["torch/extension.h", *words.includes]
    text = "\n".join([*(f"#include <{name}>" for name in includes), "", *parts])
    prefix = "import torch\nimport torch.nn as nn\nfrom torch.utils.cpp_extension import load_inline\n\n"
    if words.comments:
        what = "fused " if any(len(group.steps) > 1 for _, group in lowered.calls) else ""
        prefix += f"# CUDA kernels for {what}{', '.join(step.family.replace('_', ' ') for step in program.steps)}\n"
    middle = f'source = """\n{text}"""'
    suffix = "\n\n" + _suffix(program, words, declared, bound, extension, inputs, forward)
    return Answer(prefix, middle, suffix, tuple(bound))


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
        call = f"{function.name}({', '.join(names[arg] for arg in function.args)})"
        names[group.out] = f"step{number}"
        lines.append(f"auto step{number} = {call};")
    lines[-1] = "return" + lines[-1].partition("=")[2]
    items = [
        f"torch::Tensor {names[arg]}" if isinstance(arg, Value) else f"{words.floating} {names[arg]}" for arg in args
    ]
    signature = f"torch::Tensor {name}({', '.join(items)})"
    text = signature + " {\n" + "\n".join(indent(lines)) + "\n}\n"
    return name, text, signature + ";", tuple(args)


def _suffix(
    program: Program,
    words: Words,
    declared: list[str],
    bound: list[str],
    extension: str,
    inputs: list[Value],
    forward: list[str],
) -> str:
    one_line = words.lone_string and len(declared) == 1 and len(declared[0]) < 100
    sources = f'"{declared[0]}"' if one_line else '"""\n' + "\n".join(declared) + '\n"""'
    bindings = ", ".join(f'"{name}"' for name in bound)
    functions = f"[{bindings}]"
    if words.functions_as_dict:
        functions = "{" + ", ".join(f'"{name}": "{name} on CUDA"' for name in bound) + "}"
    options = {
        "name": f'"{extension}"',
        "cpp_sources": words.declarations,
        "cuda_sources": "source",
        "functions": functions,
    }
    if words.verbose:
        options["verbose"] = words.verbose
    if words.short and one_line:
        options["cpp_sources"] = sources
        call = f"{extension} = load_inline({', '.join(f'{key}={value}' for key, value in options.items())})"
    else:
        inner = "\n".join(f"    {key}={value}," for key, value in options.items())
        call = f"{extension} = load_inline(\n{inner}\n)"
    comment = "# Compile and load the CUDA extension\n" if words.comments else ""
    lines = [] if words.short and one_line else [f"{words.declarations} = {sources}", ""]
    lines += [f"{comment}{call}", "", "", "class ModelNew(nn.Module):"]
    lines += answer_constructor(program, words)
    lines += [f"    def forward(self, {', '.join(value.name for value in inputs)}):", *forward, ""]
    return "\n".join(lines)
