"""The host part of a split .cu, as text for g++: what nvcc's front end leaves for the host compiler.

Kernels become stubs that hand their arguments to the runtime, `k<<<c>>>(a)` becomes what nvcc makes of it, device
variables become the host objects by whose address the runtime knows them. Everything else stays verbatim, each item
behind a `#line` that says where it stands in the source that stock would compile.
"""

from __future__ import annotations

import re

from dice.kernels.builder.binding import PYBIND_ALIAS, table_from_module
from dice.kernels.builder.split_roles import Roles, without_device_members
from dice.kernels.source.cuda_source import CudaSource
from dice.kernels.source.declaration import Function
from dice.kernels.source.items import Item
from dice.kernels.source.launch import Launch
from dice.kernels.source.lexer import SplitRefused, matching

ANONYMOUS_SCOPE = "dice_unnamed"
"""Anonymous namespaces get this name on both sides, so that their kernels have one symbol."""

DEVICE_CALL = "calling a __device__ function from a __host__ function"


def _cuda_launch(launch: Launch) -> str:
    """What nvcc's front end makes of a launch."""
    return f"((__cudaPushCallConfiguration({launch.configuration})) ? (void)0 : {launch.callee}({launch.arguments}))"


def render_host(split: CudaSource, source: str, first_line: int = 1, module: str | None = None) -> str:
    """The host unit of `split`; `source` and `first_line` are for `#line`.

    With `module`, a PYBIND11_MODULE becomes a binding table of that name (BindingRefused where it cannot); without, it
    stays, for headers that have pybind11. Raises SplitRefused.
    """
    roles = Roles(split)
    roles.check_host()
    pieces: list[str] = []
    for item in split.items:
        if roles.on_host(item):
            if module is not None and item.kind == "macro_call" and item.name == "PYBIND11_MODULE":
                pieces.append(table_from_module(item.text, module))
            elif module is not None and item.kind == "using" and PYBIND_ALIAS.fullmatch(item.text):
                continue
            else:
                pieces.append(located(item, _host_text(split, item), source, first_line))
    return "\n".join(pieces) + "\n"


def located(item: Item, text: str, source: str, first_line: int) -> str:
    """What an item becomes, behind a `#line` with its place; a scope's ends need none."""
    if item.kind in ("scope_open", "scope_close"):
        return text
    return f'#line {item.line + first_line - 1} "{source}"\n{text}'


def _host_text(split: CudaSource, item: Item) -> str:
    if item.kind == "kernel":
        return kernel_stub(item)
    if item.kind == "device_function":
        return device_prototype(item)
    if item.kind == "kernel_declaration":
        assert item.function is not None
        return _plain(item.function).declaration(keep=frozenset())
    if item.kind == "device_variable":
        return device_variable_shadow(item)
    if item.kind == "scope_open":
        return scope_text(item)
    if item.kind == "type":
        return without_device_members(split, item) if "__device__" in item.text else item.text
    if item.kind in ("host_function", "macro", "macro_call", "host_variable", "host_device_function"):
        return split.with_launches(_cuda_launch, item.start, item.end)
    return item.text


def scoped_name(item: Item) -> str:
    """The item's qualified name as both sides spell it."""
    return "::".join([*(part or ANONYMOUS_SCOPE for part in item.namespaces), item.name])


def scope_text(item: Item) -> str:
    """The opening of a scope, with a name for an anonymous namespace."""
    if "namespace" in item.text and not item.name:
        return f"inline namespace {ANONYMOUS_SCOPE} {{"
    return item.text


def _plain(function: Function) -> Function:
    if any("&" in parameter.type and "*" not in parameter.type for parameter in function.parameters):
        raise SplitRefused("a kernel parameter that is a reference")
    if any(parameter.type in ("", "...") for parameter in function.parameters):
        raise SplitRefused("a kernel with variable arguments")
    return function


def kernel_stub(item: Item) -> str:
    """A host function with the kernel's signature that launches it with the configuration that was pushed."""
    function = item.function
    assert function is not None
    _plain(function)
    if not re.fullmatch(r"void|auto", function.return_type) or "->" in function.suffix:
        raise SplitRefused("a kernel that does not return void")
    names, parameters = [], []
    for i, parameter in enumerate(function.parameters):
        if parameter.name is None:
            default = f" = {parameter.default}" if parameter.default else ""
            parameters.append(f"{_named(parameter.type, f'dice_parameter_{i}')}{default}")
        else:
            parameters.append(parameter.text)
        names.append(parameter.name or f"dice_parameter_{i}")
    packs = {p.name or f"dice_parameter_{i}" for i, p in enumerate(function.parameters) if p.is_pack}
    addresses = ", ".join(f"(void*)&{name}" + ("..." if name in packs else "") for name in names)
    types = ", ".join(parameter.type.replace("__grid_constant__", "") for parameter in function.parameters)
    parameter_text = ", ".join(parameters).replace("__grid_constant__", "")
    head = f"{function.template_head} " if function.template_head else ""
    linkage = 'extern "C" ' if function.linkage_c else ""
    return (
        f"{head}{linkage}DICE_KERNEL void {function.declarator}({parameter_text}) {{ "
        f"void* dice_arguments[] = {{{addresses}{', ' if addresses else ''}nullptr}}; "
        f"dice_launch((const void*)static_cast<void (*)({types})>(&{_self(function)}), dice_arguments); }}"
    )


def _self(function: Function) -> str:
    """The kernel's own name inside its body, with the template arguments that it was instantiated for."""
    if not function.template_parameters:
        return function.declarator
    arguments = []
    for parameter in function.template_parameters:
        if parameter.name is None:
            raise SplitRefused("a kernel with an unnamed template parameter")
        arguments.append(parameter.name + ("..." if parameter.is_pack else ""))
    return f"{function.declarator}<{', '.join(arguments)}>"


def _named(type_text: str, name: str) -> str:
    """`float (*)[4]` and a name: `float (*name)[4]`."""
    if match := re.search(r"\(\s*[*&]+\s*", type_text):
        return f"{type_text[: match.end()]}{name}{type_text[match.end() :]}"
    if "[" in type_text:
        return type_text.replace("[", f" {name}[", 1)
    return f"{type_text} {name}"


_QUALIFIERS = frozenset({"static", "extern", "inline", "const", "constexpr", "__device__", "__constant__", "volatile"})


def device_prototype(item: Item) -> str:
    """A prototype of a device function that host code names. As for nvcc, only a call of it is an error."""
    function = item.function
    assert function is not None
    if "auto" in function.return_type or "decltype" in function.return_type:
        raise SplitRefused("host code names a device function whose type must be deduced")
    prototype = function.declaration()
    return f'{prototype[:-1]} __attribute__((error("{DEVICE_CALL}")));'


def device_variable_shadow(item: Item) -> str:
    """The host object that stands for a `__constant__` or `__device__` variable: same name, type and size."""
    tokens = item.tokens
    words = [token.text for token in tokens]
    if "__shared__" in words:
        return ""
    if "extern" in words:
        raise SplitRefused("a device variable that is defined elsewhere")
    if "template" in words or "decltype" in words or "auto" in words:
        raise SplitRefused("an unusual device variable")
    start = 0
    while start < len(tokens) and (words[start] in _QUALIFIERS or words[start] in ("__align__", "alignas")):
        start = matching(tokens, start + 1) + 1 if words[start] in ("__align__", "alignas") else start + 1
    macro = "DICE_CONSTANT_VARIABLE" if "__constant__" in words else "DICE_DEVICE_VARIABLE"
    body = item.text[tokens[start].start - item.start :]
    for word in ("__device__", "__constant__"):
        body = re.sub(rf"\b{word}\b", "", body)
    if re.search(r"\b(const|constexpr)\b", body.split("=")[0]):
        raise SplitRefused("an unusual device variable")
    return f"{macro} {body}"
