"""The device code of a CUDA source: bodies of kernels, of device functions, of lambdas in them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from dice.kernels.cpu.unsupported import UnsupportedOnCpu
from dice.kernels.source.cuda_source import CudaSource
from dice.kernels.source.declaration import Function
from dice.kernels.source.lexer import SplitRefused, Token, words

INDEX_NAMES = {
    "threadIdx": ("uint3", "thread_index"),
    "blockIdx": ("uint3", "block_index"),
    "blockDim": ("dim3", "block_dim"),
    "gridDim": ("dim3", "grid_dim"),
}
_MARKERS = words("__global__ __device__ C10_DEVICE C10_HOST_DEVICE GPU_LAMBDA TORCH_HSTU_DEVICE")
_DEPTH = 200


@dataclass(frozen=True)
class Region:
    """A function that runs on the device. `words`: the identifiers in it, its head included."""

    kind: str
    function: Function
    words: frozenset[str]

    @property
    def name(self) -> str:
        """As other code names it: `operator` for every operator, "" for a lambda."""
        name = self.function.name.removeprefix("~")
        return "operator" if name.startswith("operator") else name

    @property
    def start(self) -> int:
        """Where its `{` stands in the text."""
        return self.function.body_start

    @property
    def end(self) -> int:
        """Behind its `}`."""
        return self.function.end


def find_regions(source: CudaSource) -> list[Region]:
    """Kernels, device functions, and lambdas in them that read an index and have no default capture, in order.

    Raises UnsupportedOnCpu and SplitRefused.
    """
    _check_depth(source.tokens)
    markers = _MARKERS | source.device_macros
    for item in source.of_kind("unreadable"):
        brackets = item.tokens[-1].text in "([{" and not item.tokens[-1].reach
        if brackets and any(token.text in markers for token in item.tokens):
            raise SplitRefused("a bracket is never closed")
    regions: list[Region] = []
    around: list[tuple[Function, bool]] = []
    for function in source.functions:
        while around and around[-1][0].last < function.brace:
            around.pop()
        head = {token.text for token in source.tokens[function.first : function.brace]}
        in_device = bool(around) and around[-1][1]
        is_device = bool(head & markers)
        around.append((function, is_device or in_device))
        kind = "kernel" if "__global__" in head else "device" if is_device else "lambda"
        if not is_device and (not in_device or not _is_plain_lambda(source.tokens, function)):
            continue
        tokens = source.tokens[function.first : function.last + 1]
        found = frozenset(token.text for token in tokens if token.kind == "identifier")
        if kind == "lambda" and not found & INDEX_NAMES.keys():
            continue
        if kind == "kernel" and not function.declarator:
            raise UnsupportedOnCpu("a kernel declared in an unusual way")
        if not source.is_paired(function):
            raise SplitRefused("brackets do not match")
        regions.append(Region(kind, function, found))
    return regions


class DeviceCode:
    """The text inside the bodies of `regions`, all of `find_regions`."""

    def __init__(self, regions: Sequence[Region]) -> None:
        self._outer: list[Region] = []
        for region in regions:
            if not self._outer or region.start >= self._outer[-1].end:
                self._outer.append(region)

    def __contains__(self, offset: int) -> bool:
        place = bisect_left(self._outer, offset, key=lambda region: region.start)
        return place > 0 and offset < self._outer[place - 1].end


def _check_depth(tokens: Sequence[Token]) -> None:
    depth = 0
    for token in tokens:
        depth = max(depth + (token.text == "{") - (token.text == "}"), 0)
        if depth > _DEPTH:
            raise UnsupportedOnCpu(f"blocks more than {_DEPTH} deep in each other")


def _is_plain_lambda(tokens: Sequence[Token], function: Function) -> bool:
    """Whether a function is a lambda that has no default capture."""
    capture = [token.text for token in tokens[function.first + 1 : function.first + 3]]
    return not function.declarator and not (capture[0] in ("&", "=") and capture[1] in (",", "]"))
