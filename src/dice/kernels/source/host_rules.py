"""Rules of nvcc that g++ does not know, checked before a source is split.

All were seen with nvcc 13 on small sources: nvcc refuses them, g++ takes what the splitter makes of them. Where the text
alone proves it, the source is `Refuted`; where a macro or a local name could still mean something else, it is not split.
"""

from __future__ import annotations

import re

from dice.kernels.source.launch import find_launches
from dice.kernels.source.lexer import Refuted, SplitRefused, Token, matching_angle, tokenize
from dice.kernels.source.split import Item, Split

_DEVICE_WORDS = frozenset({"__shared__", "__constant__", "__device__", "__managed__", "__global__"})
_BUILT_IN = frozenset(
    {"int", "float", "double", "bool", "char", "short", "long", "unsigned", "signed", "float2", "float4", "int64_t"}
)
_FOLDED = re.compile(r"\bconstexpr\b[^;{]*=[^;]*\b(?:sqrt|exp|log|pow|sin|cos|tan|tanh|floor|ceil|fabs|rsqrt)\w*\s*\(")


def check_host_rules(split: Split) -> None:
    """Raise Refuted, or SplitRefused, when a source does what only g++ would accept."""
    kernels = {item.name for item in split.of_kind("kernel", "kernel_declaration")}
    others = {item.name for item in split.of_kind("host_function", "device_function", "host_device_function")}
    for item in split.of_kind("kernel", "kernel_declaration"):
        _check_kernel(item)
    for item in split.of_kind("host_function", "macro_call", "host_variable"):
        _check_specifiers(item)
        if _FOLDED.search(item.text):
            raise SplitRefused("a constant that g++ folds and nvcc does not")
        _check_launches(item, kernels, others)
        _check_calls(item, kernels - others)
    for item in split.of_kind("type"):
        if "__global__" in item.identifiers:
            raise SplitRefused("a kernel inside a class")


def _check_kernel(item: Item) -> None:
    function = item.function
    assert function is not None
    words = function.return_type.split()
    if not words:
        raise Refuted(item.line, "this declaration has no storage class or type specifier")
    if words != ["void"] and all(word in _BUILT_IN for word in words):
        raise Refuted(item.line, "a __global__ function must have a void return type")


def _check_specifiers(item: Item) -> None:
    """Memory spaces inside a host function are errors; `__device__` there makes a lambda, which only nvcc compiles."""
    body = item.function.body if item.function is not None else item.text
    start = item.function.body_start - item.start if item.function is not None else 0
    for token in tokenize(body or ""):
        if (
            token.text in ("__shared__", "__constant__")
            and item.kind == "host_function"
            and "__device__" not in str(body)
        ):
            message = f'a "{token.text}" variable declaration is not allowed inside a host function body'
            raise Refuted(item.line + item.text.count("\n", 0, start + token.start), message)
        if token.text in _DEVICE_WORDS:
            raise SplitRefused("a device specifier inside host code")


def _check_launches(item: Item, kernels: set[str], others: set[str]) -> None:
    for launch in find_launches(item.text):
        match = re.match(r"(?:::)?(?:\w+\s*::\s*)*(\w+)\s*(?:<.*>)?$", launch.callee, re.DOTALL)
        name = match.group(1) if match else ""
        if name in others - kernels:
            _refute(item, name, launch.start, "a host function call cannot be configured")


def _check_calls(item: Item, kernels: set[str]) -> None:
    """A kernel's name directly before `(`, outside launches, would be a call without a configuration."""
    launched = {launch.start for launch in find_launches(item.text)}
    tokens = tokenize(item.text)
    for i, token in enumerate(tokens):
        if token.kind != "identifier" or token.text not in kernels or token.start in launched:
            continue
        following = _after_arguments(tokens, i)
        before = tokens[i - 1].text if i > 0 else ""
        if following == "(" and before not in (".", "->", "::"):
            _refute(item, token.text, token.start, "a __global__ function call must be configured")


def _refute(item: Item, name: str, place: int, message: str) -> None:
    """Raise Refuted, or SplitRefused when something local could hide the function `name`."""
    if _declared_inside(item, name):
        raise SplitRefused(message)
    raise Refuted(item.line + item.text.count("\n", 0, place), message)


def _declared_inside(item: Item, name: str) -> bool:
    """Whether a local name could hide the function: something declares it, or a macro makes the text."""
    return item.kind != "host_function" or re.search(rf"[\w>*&]\s+[*&]*{name}\s*(?:=|;|\{{|,)", item.text) is not None


def _after_arguments(tokens: list[Token], i: int) -> str:
    """The token after a name and its template arguments, if it has any."""
    j = i + 1
    if j < len(tokens) and tokens[j].text == "<":
        try:
            j = matching_angle(tokens, j) + 1
        except SplitRefused:
            return ""
    return tokens[j].text if j < len(tokens) else ""
