"""The device code of a CUDA source: bodies of kernels, of device functions, of lambdas in them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dice.kernels.cpu.unsupported import UnsupportedOnCpu
from dice.kernels.source.declaration import Function, parse_function
from dice.kernels.source.lexer import SplitRefused, Token, matching

INDEX_NAMES = {
    "threadIdx": ("uint3", "thread_index"),
    "blockIdx": ("uint3", "block_index"),
    "blockDim": ("dim3", "block_dim"),
    "gridDim": ("dim3", "grid_dim"),
}
_DEVICE_MARKERS = frozenset({"__device__", "C10_DEVICE", "C10_HOST_DEVICE", "GPU_LAMBDA", "TORCH_HSTU_DEVICE"})
_NOT_NAMES = frozenset({"__attribute__", "__launch_bounds__", "__align__", "alignas", "decltype"})
_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Region:
    """The body of a function: text[start] is its `{`, text[end - 1] its `}`. `head` is where its declaration begins."""

    kind: str
    name: str
    head: int
    start: int
    end: int
    words: frozenset[str]
    function: Function | None = None


def find_regions(text: str, tokens: Sequence[Token], macros: Mapping[str, str]) -> list[Region]:
    """Bodies of kernels, device functions and lambdas without a default capture, in order.

    macros: text of the source's own ones, by name. Raises UnsupportedOnCpu and SplitRefused.
    """
    return _Finder(text, tokens, macros).find()


class _Finder:
    def __init__(self, text: str, tokens: Sequence[Token], macros: Mapping[str, str]) -> None:
        self._text, self._tokens = text, tokens
        self._markers = _DEVICE_MARKERS | {name for name, body in macros.items() if "__device__" in _WORD.findall(body)}

    def find(self) -> list[Region]:
        """Bodies of kernels, device functions and lambdas without a default capture, in order."""
        regions: list[Region] = []
        i = 0
        while i < len(self._tokens):
            token = self._tokens[i]
            region = None
            if token.text == "__global__":
                region = self._function_region("kernel", i)
            elif token.text in self._markers and token.kind == "identifier":
                region = self._function_region("device", i)
            elif token.text == "[" and self._is_plain_lambda(i):
                region = self._lambda_region(i)
            if region is not None and not any(r.start == region.start for r in regions):
                regions.append(region)
            i += 1
        return regions

    def _function_region(self, kind: str, marker: int) -> Region | None:
        """The function that tokens[marker] belongs to, or None for a declaration or a variable."""
        body = self._body_after(marker)
        if body is None:
            return None
        first = self._declaration_start(marker)
        end = matching(self._tokens, body)
        words = frozenset(t.text for t in self._tokens[first : end + 1] if t.kind == "identifier")
        if kind == "device":
            name = next(
                (a.text for a, b in zip(self._tokens[marker:body], self._tokens[marker + 1 : body + 1], strict=True)
                 if b.text == "(" and a.kind == "identifier" and a.text not in self._markers | _NOT_NAMES),
                "",
            )  # fmt: skip
            return Region(kind, name, first, self._tokens[body].start, self._tokens[end].end, words)
        function = parse_function(self._text, self._tokens[first : end + 1], body - first)
        if function is None:
            raise UnsupportedOnCpu("a kernel declared in an unusual way")
        return Region(kind, function.name, first, self._tokens[body].start, self._tokens[end].end, words, function)

    def _body_after(self, i: int) -> int | None:
        """Index of the `{` of the function body after tokens[i]; None when a `;` or `=` comes first."""
        parameters = False
        while i < len(self._tokens):
            token = self._tokens[i]
            if token.kind == "punctuator":
                if token.text == ";":
                    return None
                if token.text == "=" and self._tokens[i - 1].text != "operator":
                    return None
                if token.text == "{":
                    if not parameters:
                        return None
                    previous = self._tokens[i - 1]
                    if previous.kind == "identifier" and self._in_initialisers(i):
                        i = matching(self._tokens, i)  # member{value} in a constructor
                    else:
                        return i
                elif token.text == "}":
                    return None
                elif token.text in "([":
                    parameters = parameters or token.text == "("
                    if token.text == "(" and self._tokens[i - 1].text == "operator":
                        i += 1
                    else:
                        i = matching(self._tokens, i)
            i += 1
        return None

    def _in_initialisers(self, brace: int) -> bool:
        """Whether the identifier before tokens[brace] follows `:` or `,` after a parameter list."""
        return self._tokens[brace - 2].text in (":", ",") if brace >= 2 else False

    def _declaration_start(self, i: int) -> int:
        """Index of the first token of the declaration that tokens[i] is in."""
        depth = 0  # of template lists
        while i > 0:
            token = self._tokens[i - 1]
            if token.kind == "directive":
                break
            if token.kind == "punctuator":
                if token.text == ")":
                    i = self._opening(i - 1)
                    continue
                if token.text == ">":
                    depth += 1
                elif token.text == "<" and depth > 0:
                    depth -= 1
                elif depth == 0 and token.text in (";", "{", "}", ":", ",", "(", "=", "]"):
                    break
            i -= 1
        return i

    def _opening(self, i: int) -> int:
        """Index of the `(` that tokens[i] closes."""
        depth = 0
        while i >= 0:
            depth += {")": 1, "(": -1}.get(self._tokens[i].text, 0)
            if depth == 0:
                return i
            i -= 1
        raise SplitRefused("brackets do not match")

    def _is_plain_lambda(self, i: int) -> bool:
        """Whether tokens[i] opens a lambda's capture list that has no default capture."""
        before = self._tokens[i - 1] if i else None
        if before is not None and (
            before.kind in ("number", "string")
            or before.text in (")", "]", ">")
            or (before.kind == "identifier" and before.text != "return")
        ):
            return False
        following = [t.text for t in self._tokens[i + 1 : i + 3]]
        return len(following) == 2 and following[0] != "[" and not (following[0] in "&=" and following[1] in ",]")

    def _lambda_region(self, i: int) -> Region | None:
        j = matching(self._tokens, i) + 1
        while j < len(self._tokens) and self._tokens[j].text != "{":
            token = self._tokens[j]
            if token.text == "(":
                j = matching(self._tokens, j)
            elif token.text not in ("->", "::", "<", ">", "*", "&", ",") and token.kind != "identifier":
                return None
            j += 1
        if j >= len(self._tokens):
            return None
        end = matching(self._tokens, j)
        words = frozenset(t.text for t in self._tokens[i : end + 1] if t.kind == "identifier")
        if not words & INDEX_NAMES.keys() or not self._inside_device(i):
            return None
        return Region("lambda", "", i, self._tokens[j].start, self._tokens[end].end, words)

    def _inside_device(self, i: int) -> bool:
        """Whether tokens[i] lies in device code: the body of some function marked for the device."""
        offset = self._tokens[i].start
        markers = [j for j in range(i) if self._tokens[j].text == "__global__" or self._tokens[j].text in self._markers]
        for j in reversed(markers):
            body = self._body_after(j)
            if body is not None and self._tokens[body].start < offset < self._tokens[matching(self._tokens, body)].end:
                return True
        return False
