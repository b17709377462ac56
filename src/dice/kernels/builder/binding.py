"""Python bindings of an extension as a table (csrc/extension/binding.h) instead of pybind11 templates.

`table_from_functions` renders what `load_inline(functions=...)` asks for; `table_from_module` what a hand-written
`PYBIND11_MODULE` says, as far as it is plain `m.def(...)` calls. Both return C++ text for a unit that starts from the
header `slim_cpp` or `slim_cuda` (or any other that includes binding.h), to be placed where the functions are declared.
What the table cannot say raises BindingRefused, or does not compile; real pybind11 is the next route.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dice.kernels.source.lexer import SplitRefused, Token, at_commas, matching, source_of, tokenize

PYBIND_ALIAS = re.compile(r"namespace\s+\w+\s*=\s*(?:::)?pybind11\s*;")
"""What a text with a table in the place of its bindings has no more need of."""


class BindingRefused(SplitRefused):
    """A binding that the table does not express."""


@dataclass(frozen=True)
class Binding:
    """One `m.def`. All but `arguments` are C++ text; `doc` is a literal or None; arguments: (name literal, default)."""

    name: str
    expression: str
    doc: str | None
    torch_errors: bool
    arguments: tuple[tuple[str, str | None], ...] | None = None


def table_from_functions(functions: Sequence[tuple[str, str]], torch_errors: bool, module: str) -> str:
    """The module `module` with the (name, docstring) pairs of load_inline, pasted as PyTorch pastes them."""
    bindings = [Binding(f'"{name}"', name, f'"{doc}"', torch_errors) for name, doc in functions]
    return render_table(bindings, module, "nullptr")


def table_from_module(text: str, module: str) -> str:
    """The module that `PYBIND11_MODULE(NAME, m) {...}` (that whole text) defines, named `module`."""
    tokens = tokenize(text)
    if len(tokens) < 7 or [tokens[1].text, tokens[3].text] != ["(", ","]:
        raise BindingRefused("an unusual PYBIND11_MODULE")
    variable = tokens[4].text
    brace = matching(tokens, 1) + 1
    if brace >= len(tokens) or tokens[brace].text != "{" or matching(tokens, 1) != 5:
        raise BindingRefused("an unusual PYBIND11_MODULE")
    body = tokens[brace + 1 : matching(tokens, brace)]
    bindings: list[Binding] = []
    doc = "nullptr"
    for statement in _statements(body):
        words = [t.text for t in statement]
        if words[:6] == [variable, ".", "doc", "(", ")", "="]:
            doc = source_of(text, statement[6:])
            if any(t.kind != "string" for t in statement[6:]):
                raise BindingRefused("a module docstring that is not a literal")
            continue
        if words[0] != variable:
            raise BindingRefused(f"'{words[0]}' in PYBIND11_MODULE")
        i = 1
        while i < len(statement):
            if words[i : i + 3] != [".", "def", "("]:
                raise BindingRefused(f"'{' '.join(words[i : i + 2])}' in PYBIND11_MODULE")
            end = matching(statement, i + 2)
            bindings.append(_definition(text, statement[i + 3 : end]))
            i = end + 1
    return render_table(bindings, module, doc)


def render_table(bindings: Sequence[Binding], module: str, doc: str) -> str:
    """C++ text that defines `PyInit_<module>`. `doc` is a C++ expression."""
    arguments: list[str] = []
    rows: list[str] = []
    for i, binding in enumerate(bindings):
        reference = "nullptr"
        if binding.arguments is not None:
            cells = []
            for j, (name, default) in enumerate(binding.arguments):
                if default is None:
                    cells.append(f"dice_binding::argument({name})")
                else:
                    arguments.append(f"  static const auto dice_default_{i}_{j} = {default};")
                    cells.append(f"dice_binding::argument({name}, &dice_default_{i}_{j})")
            arguments.append(f"  static const dice_binding::Argument dice_arguments_{i}[] = {{{', '.join(cells)}}};")
            reference = f"dice_arguments_{i}"
        torch_errors = "true" if binding.torch_errors else "false"
        rows.append(
            f"    dice_binding::describe({binding.name}, {binding.expression}, {binding.doc or 'nullptr'}, "
            f"{torch_errors}, {reference}),"
        )
    table = ["  static const dice_binding::Function dice_functions[] = {", *rows, "  };"] if rows else []
    pointer = "dice_functions" if rows else "nullptr"
    return "\n".join(
        [
            '#line 1 "binding"',
            f'extern "C" __attribute__((visibility("default"))) _object* PyInit_{module}() {{',
            *arguments,
            *table,
            f'  return dice_create_module("{module}", {doc}, {pointer}, {len(rows)});',
            "}",
            "",
        ]
    )


def _statements(tokens: Sequence[Token]) -> list[list[Token]]:
    statements: list[list[Token]] = [[]]
    i = 0
    while i < len(tokens):
        token = tokens[i]
        if token.kind == "directive":
            raise BindingRefused("a preprocessor line in PYBIND11_MODULE")
        if token.kind == "punctuator" and token.text in "([{":
            end = matching(tokens, i)
            statements[-1].extend(tokens[i : end + 1])
            i = end
        elif token.text == ";" and token.kind == "punctuator":
            statements.append([])
        else:
            statements[-1].append(token)
        i += 1
    if statements[-1]:
        raise BindingRefused("an unusual PYBIND11_MODULE")
    return [statement for statement in statements if statement]


_WRAP = re.compile(r"(?:::)?torch\s*::\s*wrap_pybind_function\s*\((.*)\)$", re.DOTALL)


def _definition(text: str, tokens: Sequence[Token]) -> Binding:
    """`"name", &function, "doc", py::arg("x") = 1`."""
    groups = at_commas(tokens)
    if len(groups) < 2 or any(t.kind != "string" for t in groups[0]):
        raise BindingRefused("an unusual m.def")
    expression = source_of(text, groups[1])
    wrapped = _WRAP.match(expression)
    if wrapped:
        expression = wrapped.group(1)
    if any(t.text in ("py", "pybind11") for t in groups[1]) or groups[1][-1].text == "]":
        raise BindingRefused("a binding in terms of pybind11")
    doc: str | None = None
    arguments: list[tuple[str, str | None]] = []
    for group in groups[2:]:
        if all(t.kind == "string" for t in group):
            doc = source_of(text, group)
        else:
            arguments.append(_argument(text, group))
    return Binding(
        source_of(text, groups[0]),
        expression.removeprefix("&"),
        doc,
        bool(wrapped),
        tuple(arguments) if arguments else None,
    )


def _argument(text: str, tokens: Sequence[Token]) -> tuple[str, str | None]:
    """`py::arg("x")` or `py::arg("x") = value`."""
    words = [t.text for t in tokens]
    if words[:4] not in (["py", "::", "arg", "("], ["pybind11", "::", "arg", "("]) or matching(tokens, 3) != 5:
        raise BindingRefused(f"'{' '.join(words[:4])}' in m.def")
    name = tokens[4].text
    if len(tokens) == 6:
        return name, None
    if words[6] != "=" or len(tokens) < 8:
        raise BindingRefused("an unusual py::arg")
    value = source_of(text, tokens[7:])
    if all(t.kind == "string" for t in tokens[7:]):
        value = f"std::string({value})"
    return name, value
