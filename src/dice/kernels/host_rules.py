"""Rules of nvcc for host code that g++ does not know: a source that breaks one is not split.

All were seen with nvcc 13 on small sources: nvcc refuses them, g++ takes what the splitter makes of them.
"""

from __future__ import annotations

import re

from dice.kernels.cuda_launch import find_launches
from dice.kernels.cuda_lexer import SplitRefused, Token, matching_angle, tokenize
from dice.kernels.cuda_source import Item, Split

_DEVICE_WORDS = frozenset({"__shared__", "__constant__", "__device__", "__managed__", "__global__"})
_FOLDED = re.compile(r"\bconstexpr\b[^;{]*=[^;]*\b(?:sqrt|exp|log|pow|sin|cos|tan|tanh|floor|ceil|fabs|rsqrt)\w*\s*\(")


def check_host_rules(split: Split) -> None:
    """Raise SplitRefused when host code does what only g++ would accept."""
    kernels = {item.name for item in split.of_kind("kernel", "kernel_declaration")}
    others = {item.name for item in split.of_kind("host_function", "device_function", "host_device_function")}
    for item in split.of_kind("host_function", "macro_call", "host_variable"):
        if item.identifiers & _DEVICE_WORDS and _body(item):
            raise SplitRefused("a device specifier inside host code")
        if _FOLDED.search(item.text):
            raise SplitRefused("a constant that g++ folds and nvcc does not")
        _check_launches(item, kernels, others)
        _check_calls(item, kernels - others)
    for item in split.of_kind("type"):
        if "__global__" in item.identifiers:
            raise SplitRefused("a kernel inside a class")


def _body(item: Item) -> bool:
    body = item.function.body if item.function is not None else item.text
    return body is not None and any(re.search(rf"\b{word}\b", body) for word in _DEVICE_WORDS)


def _check_launches(item: Item, kernels: set[str], others: set[str]) -> None:
    for launch in find_launches(item.text):
        match = re.match(r"(?:::)?(?:\w+\s*::\s*)*(\w+)\s*(?:<.*>)?$", launch.callee, re.DOTALL)
        if match and match.group(1) in others - kernels:
            raise SplitRefused("a launch of a function that is no kernel")


def _check_calls(item: Item, kernels: set[str]) -> None:
    """A kernel's name directly before `(`, outside launches, would be a call without a configuration."""
    launched = {launch.start for launch in find_launches(item.text)}
    tokens = tokenize(item.text)
    for i, token in enumerate(tokens):
        if token.kind != "identifier" or token.text not in kernels or token.start in launched:
            continue
        following = _after_arguments(tokens, i)
        before = tokens[i - 1].text if i > 0 else ""
        if following == "(" and before not in (".", "->"):
            raise SplitRefused("a kernel called without a launch configuration")


def _after_arguments(tokens: list[Token], i: int) -> str:
    """The token after a name and its template arguments, if it has any."""
    j = i + 1
    if j < len(tokens) and tokens[j].text == "<":
        try:
            j = matching_angle(tokens, j) + 1
        except SplitRefused:
            return ""
    return tokens[j].text if j < len(tokens) else ""
