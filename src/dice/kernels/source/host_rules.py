"""Rules of nvcc that g++ does not know, checked before a source is split.

All were seen with nvcc 13 on small sources: nvcc refuses them, g++ takes what the splitter makes of them. Where the text
alone proves it, the source is `Refuted`; where a macro or a local name could still mean something else, it is not split.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from dice.kernels.source.cuda_source import CudaSource
from dice.kernels.source.items import Item
from dice.kernels.source.lexer import Refuted, SplitRefused, Token, words

_DEVICE_WORDS = words("__shared__ __constant__ __device__ __managed__ __global__")
_BUILT_IN = words("int float double bool char short long unsigned signed float2 float4 int64_t")
_FOLDED = ("sqrt", "exp", "log", "pow", "sin", "cos", "tan", "floor", "ceil", "fabs", "rsqrt")


def check_host_rules(source: CudaSource) -> None:
    """Raise Refuted, or SplitRefused, when a source does what only g++ would accept."""
    kernels = {item.name for item in source.of_kind("kernel", "kernel_declaration")}
    others = {item.name for item in source.of_kind("host_function", "device_function", "host_device_function")}
    for item in source.of_kind("kernel", "kernel_declaration"):
        _check_kernel(item)
    for item in source.of_kind("host_function", "macro_call", "host_variable"):
        _check_specifiers(source, item)
        if _folds(item.tokens):
            raise SplitRefused("a constant that g++ folds and nvcc does not")
        _check_launches(source, item, others - kernels)
        _check_calls(source, item, kernels - others)
    for item in source.of_kind("type"):
        if "__global__" in item.identifiers:
            raise SplitRefused("a kernel inside a class")


def _check_kernel(item: Item) -> None:
    function = item.function
    assert function is not None
    words = function.return_type.split()
    if not words and function.suffix:
        raise SplitRefused("a macro in front of a kernel's name")
    if not words:
        raise Refuted(item.line, "this declaration has no storage class or type specifier")
    if all(word in _BUILT_IN for word in words):
        raise Refuted(item.line, "a __global__ function must have a void return type")


def _check_specifiers(source: CudaSource, item: Item) -> None:
    """Memory spaces inside a host function are errors; `__device__` there makes a lambda, which only nvcc compiles."""
    inside = item.tokens if item.function is None else source.tokens[item.function.brace : item.function.last + 1]
    has_lambda = any(token.text == "__device__" for token in inside)
    for token in inside:
        if token.text in ("__shared__", "__constant__") and item.kind == "host_function" and not has_lambda:
            message = f'a "{token.text}" variable declaration is not allowed inside a host function body'
            raise Refuted(source.line(token.start), message)
        if token.text in _DEVICE_WORDS:
            raise SplitRefused("a device specifier inside host code")


def _folds(tokens: Sequence[Token]) -> bool:
    """Whether a `constexpr` variable's value calls a function of mathematics."""
    constant = assigned = False
    for token, following in pairwise(tokens):
        if token.text == ";" or (token.text == "{" and not assigned):
            constant = assigned = False
        elif assigned and token.text.startswith(_FOLDED) and following.text == "(":
            return True
        constant = constant or token.text == "constexpr"
        assigned = assigned or (constant and token.text == "=")
    return False


def _check_launches(source: CudaSource, item: Item, others: set[str]) -> None:
    source.check_launches(item.start, item.end)
    for launch in source.launches_in(item.start, item.end):
        match = re.match(r"(?:::)?(?:\w+\s*::\s*)*(\w+)\s*(?:<.*>)?$", launch.callee, re.DOTALL)
        name = match.group(1) if match else ""
        if name in others:
            _refute(source, item, name, launch.start, "a host function call cannot be configured")


def _check_calls(source: CudaSource, item: Item, kernels: set[str]) -> None:
    """A kernel's name directly before `(`, outside launches, would be a call without a configuration."""
    tokens = item.tokens
    for i, token in enumerate(tokens):
        if token.kind != "identifier" or token.text not in kernels:
            continue
        before = tokens[i - 1].text if i > 0 else ""
        if _after_arguments(tokens, i) == "(" and before not in (".", "->", "::"):
            _refute(source, item, token.text, token.start, "a __global__ function call must be configured")


def _refute(source: CudaSource, item: Item, name: str, place: int, message: str) -> None:
    """Raise Refuted, or SplitRefused when something local could hide the function `name`."""
    if _declared_inside(item, name):
        raise SplitRefused(message)
    raise Refuted(source.line(place), message)


def _declared_inside(item: Item, name: str) -> bool:
    """Whether a local name could hide the function: something declares it, or a macro makes the text."""
    return item.kind != "host_function" or re.search(rf"[\w>*&]\s+[*&]*{name}\s*(?:=|;|\{{|,)", item.text) is not None


def _after_arguments(tokens: Sequence[Token], i: int) -> str:
    """The token after a name and its template arguments, if it has any."""
    i += 1
    if i < len(tokens) and tokens[i].text == "<":
        i = i + tokens[i].reach + 1 if tokens[i].reach > 0 else len(tokens)
    return tokens[i].text if i < len(tokens) else ""
