"""Kernels in CUDA C++ text, read as tokens: comments and strings never count."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from dice.kernels.checks.python_source import words
from dice.kernels.source.lexer import SplitRefused, Token, line_number, matching, split_commas, tokenize

_LIBRARIES = ("cublas", "cudnn", "cusparse", "cusolver", "cufft", "cutensor")
_LIBRARY_PLUMBING = ("Create", "Destroy", "Set", "Get", "Init")
_ATEN_COMPUTE = words("""
    matmul mm bmm addmm baddbmm linear einsum conv1d conv2d conv3d convolution cudnn_convolution softmax log_softmax
    relu gelu silu sigmoid tanh layer_norm batch_norm group_norm instance_norm max_pool2d avg_pool2d
    adaptive_avg_pool2d scaled_dot_product_attention conv_transpose1d conv_transpose2d conv_transpose3d cumsum
    native_layer_norm native_batch_norm logsumexp
    """)


@dataclass(frozen=True)
class Kernel:
    """One `__global__` function: its name, parameter names that are pointers, and the tokens of its body."""

    name: str
    pointers: frozenset[str]
    body: tuple[Token, ...]


class CudaSource:
    """One text of CUDA C++. Raises SplitRefused when it cannot be tokenised (a compiler would refuse it too)."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokenize(text)

    def line(self, token: Token) -> str:
        """`C++ line N: text`, for a finding's evidence."""
        number = line_number(self.text, token.start)
        return f"C++ line {number}: {self.text.splitlines()[number - 1].strip()[:200]}"

    @cached_property
    def kernels(self) -> list[Kernel]:
        """Kernels that are defined, not merely declared."""
        return list(self._kernels())

    @cached_property
    def functions(self) -> list[tuple[str, int, int]]:
        """Functions with a body, kernels and binding macros among them: name, index of the name, index of the last `}`."""
        found: list[tuple[str, int, int]] = []
        end = -1
        for index, token in enumerate(self.tokens[:-1]):
            if index <= end or token.kind != "identifier" or self.tokens[index + 1].text != "(":
                continue
            try:
                brace = matching(self.tokens, index + 1) + 1
                if brace < len(self.tokens) and self.tokens[brace].text == "{":
                    end = matching(self.tokens, brace)
                    found.append((token.text, index, end))
            except SplitRefused:
                continue
        return found

    @cached_property
    def device_lambda(self) -> bool:
        """A `__device__` lambda or functor: custom device code that a library launches."""
        for index, token in enumerate(self.tokens):
            if token.text == "__device__":
                before = self.tokens[index - 1].text if index else ""
                after = [item.text for item in self.tokens[index + 1 : index + 5]]
                if before == "]" or "operator" in after:
                    return True
        return False

    @cached_property
    def library_calls(self) -> list[str]:
        """Calls of CUDA libraries (cuBLAS, cuDNN, CUB, Thrust, ...): written against CUDA, not against PyTorch."""
        found: list[str] = []
        for index, token in enumerate(self.tokens[:-1]):
            following = self.tokens[index + 1].text
            if token.text in ("cub", "thrust", "cutlass") and following == "::" and index + 2 < len(self.tokens):
                found.append(f"{token.text}::{self.tokens[index + 2].text}")
            elif token.kind == "identifier" and token.text.startswith(_LIBRARIES) and following in ("(", "<"):
                plumbing = any(part in token.text for part in _LIBRARY_PLUMBING)
                found += [] if plumbing else [token.text]
        return found

    @cached_property
    def aten_calls(self) -> list[str]:
        """ATen operators that compute, called from C++: PyTorch in another spelling."""
        found: list[str] = []
        for index, token in enumerate(self.tokens[:-1]):
            owner = self.tokens[index - 2].text if index >= 2 and self.tokens[index - 1].text == "::" else ""
            if (
                token.text in _ATEN_COMPUTE
                and owner in ("at", "torch", "F", "functional")
                and self.tokens[index + 1].text == "("
            ):
                found.append(f"{owner}::{token.text}")
        return found

    def _kernels(self) -> Iterator[Kernel]:
        for index, token in enumerate(self.tokens):
            if (
                token.kind == "directive"
                and "__global__" in token.text
                and token.text[1:].lstrip().startswith("define")
            ):
                yield Kernel(f"macro {token.text.split('(')[0].split()[-1]}", frozenset(), (token,))
            if token.text != "__global__" or token.kind != "identifier":
                continue
            opening = self._parameters(index)
            if opening is None:
                continue
            try:
                closing = matching(self.tokens, opening)
                brace = closing + 1
                if brace >= len(self.tokens) or self.tokens[brace].text != "{":
                    continue
                end = matching(self.tokens, brace)
                groups = split_commas(self.tokens[opening + 1 : closing])
            except SplitRefused:
                continue
            pointers = frozenset(
                group[-1].text
                for group in groups
                if any(item.text in ("*", "PackedTensorAccessor32") for item in group)
            )
            yield Kernel(self.tokens[opening - 1].text, pointers, tuple(self.tokens[brace + 1 : end]))

    def _parameters(self, index: int) -> int | None:
        """Index of the `(` of the parameter list of the kernel that begins at `index`."""
        for position in range(index + 1, min(index + 60, len(self.tokens))):
            text = self.tokens[position].text
            if text in (";", "{", "}"):
                return None
            if text == "(":
                if self.tokens[position - 1].text in ("__launch_bounds__", "__attribute__"):
                    try:
                        closing = matching(self.tokens, position)
                    except SplitRefused:
                        return None
                    return self._parameters(closing)
                return position
        return None
