"""Which items of a split source each side needs: reachability by name, generous on both sides."""

from __future__ import annotations

import re
from functools import cached_property

from dice.kernels.source.cuda_source import CudaSource
from dice.kernels.source.declaration import Function
from dice.kernels.source.items import Item, ItemKind
from dice.kernels.source.lexer import SplitRefused, words, words_of

TORCH_ROOTS = frozenset({"torch", "at", "c10", "caffe2", "pybind11", "py"})
_TORCH_HEADERS = re.compile(r"(torch|ATen|c10|caffe2|pybind11)/|Python\.h$")
_DEVICE_ONLY_HEADERS = re.compile(r"(cub|thrust|cuda|cute|cutlass|cooperative_groups)/|cooperative_groups\.h$|mma\.h$")
_DEVICE_ONLY_ROOTS = frozenset({"cooperative_groups", "nvcuda", "cub", "thrust", "cutlass", "cute"})
_HOST_LIBRARIES = re.compile(r"(cublas|cudnn|cusparse|cusolver|cufft|nvrtc|nccl)\w*\.h$")
_HOST_LIBRARY_NAMES = ("cublas", "cudnn", "cusparse", "cusolver", "cufft")
_HOST_STANDARD = words(
    "vector string map unordered_map set unordered_set list deque queue stack iostream sstream fstream ostream "
    "istream iomanip memory functional mutex thread chrono future random filesystem regex stdexcept exception numeric "
    "condition_variable atomic string_view optional variant any iterator initializer_list"
)
_HOST_KINDS: tuple[ItemKind, ...] = (
    "host_function",
    "host_declaration",
    "host_variable",
    "macro_call",
    "instantiation",
)
_DEVICE_KINDS: tuple[ItemKind, ...] = (
    "kernel",
    "kernel_declaration",
    "device_function",
    "host_device_function",
    "device_variable",
)
_COMPILER_MACROS = re.compile(r"__CUDACC\w*__|__NVCC__|__CUDA_ARCH\w*__|__CUDACC_RTC__|__CUDABE__")


class Roles:
    """Answers for one split. Raises SplitRefused where the two sides cannot be told apart by text."""

    def __init__(self, split: CudaSource) -> None:
        self.split = split
        for item in split.items:
            if item.kind in ("directive", "macro") and _COMPILER_MACROS.search(item.text):
                raise SplitRefused("the source asks which compiler or architecture it is compiled for")
            if item.kind == "device_variable" and "__managed__" in item.text:
                raise SplitRefused("managed variables")
            if item.kind in ("host_function", "host_variable", "macro_call") and _COMPILER_MACROS.search(item.text):
                raise SplitRefused("host code asks which compiler it is compiled by")

    @cached_property
    def host_words(self) -> frozenset[str]:
        """Identifiers that host code mentions, macros and host-device functions that it reaches included."""
        words = self._words_in(*_HOST_KINDS)
        for item in self.split.of_kind("kernel", "kernel_declaration"):
            if item.function is not None:
                words |= words_of([token for token in item.tokens if token.start < item.function.head_end])
        return frozenset(self._closure(words))

    @cached_property
    def device_words(self) -> frozenset[str]:
        """Identifiers that device code mentions, macros included."""
        return frozenset(self._closure(self._words_in(*_DEVICE_KINDS)))

    def _words_in(self, *kinds: ItemKind) -> set[str]:
        return {word for item in self.split.of_kind(*kinds) for word in item.identifiers}

    def _closure(self, words: set[str]) -> set[str]:
        """The words, and those of the macros, types, constants, host-device functions and aliases that they need."""
        passing: dict[str, list[Item]] = {}
        for item in self.split.of_kind("macro", "type", "constant", "host_device_function", "using"):
            for name in item.declared:
                passing.setdefault(name, []).append(item)
        reached = list(words)
        while reached:
            for item in passing.pop(reached.pop(), ()):
                reached += item.identifiers - words
                words |= item.identifiers
        return words

    def on_host(self, item: Item) -> bool:
        """Whether the host unit needs the item (kernels and device variables count: as stubs)."""
        if item.kind == "include":
            return not _DEVICE_ONLY_HEADERS.match(item.name)
        if item.kind == "device_function":
            return (
                item.name in self.named_by_host and item.function is not None and "::" not in item.function.declarator
            )
        if item.kind == "host_device_function":
            return item.name in self.host_words or item.name.startswith("operator")
        if item.kind == "type":
            return bool(item.declared & self.host_words) or "__device__" not in item.text
        if item.kind == "using":
            return not item.identifiers & _DEVICE_ONLY_ROOTS
        return True

    def on_device(self, item: Item) -> bool:
        """Whether the device unit needs the item."""
        if item.kind == "include":
            return self._include_on_device(item.name)
        if item.kind in _HOST_KINDS:
            return False
        if item.kind == "constant":
            return item.name in self.device_words
        if item.kind == "type":
            is_enum = re.match(r"(typedef\s+)?enum\b", item.text) is not None
            names = item.identifiers if is_enum else item.declared
            return bool(names & self.device_words) or "__device__" in item.text
        if item.kind == "using":
            return not item.identifiers & (TORCH_ROOTS - self.device_words)
        return True

    def _include_on_device(self, name: str) -> bool:
        if _TORCH_HEADERS.match(name):
            return name.endswith(".cuh")
        if name in _HOST_STANDARD:
            return "std" in self.device_words
        if _HOST_LIBRARIES.search(name):
            return any(word.startswith(_HOST_LIBRARY_NAMES) for word in self.device_words)
        return True

    @cached_property
    def named_by_host(self) -> frozenset[str]:
        """Identifiers in the text of host functions and of the macros that they name."""
        words = set(self._host_code_words)
        for item in self.split.of_kind("macro"):
            if item.name in words:
                words |= item.identifiers
        return frozenset(words)

    @cached_property
    def _host_code_words(self) -> frozenset[str]:
        return frozenset(self._words_in("host_function", "host_variable", "macro_call"))

    def check_host(self) -> None:
        """Raise SplitRefused when host code uses what only nvcc can compile."""
        aliases = {i.name for i in self.split.of_kind("using") if i.identifiers & _DEVICE_ONLY_ROOTS}
        used = self._host_code_words & (_DEVICE_ONLY_ROOTS | (aliases - {""}))
        if used:
            raise SplitRefused(f"host code uses {sorted(used)[0]}, which only nvcc can compile")


def without_device_members(split: CudaSource, item: Item) -> str:
    """The text of a class whose `__device__`-only member functions are declared but not defined."""
    pieces, position = [], item.start
    for function in split.functions_in(item.start, item.end):
        only_device = "__device__" in function.specifiers and "__host__" not in function.specifiers
        if function.name and only_device and function.start >= position:
            pieces += [split.text[position : _before_initialisers(split, function)], ";"]
            position = function.end
    return "".join([*pieces, split.text[position : item.end]])


def _before_initialisers(split: CudaSource, function: Function) -> int:
    """Where the `:` of a constructor's initialisers stands, or the body."""
    i = function.first
    while i < function.brace and split.tokens[i].text != ":":
        i += max(split.tokens[i].reach, 0) + 1
    return split.tokens[min(i, function.brace)].start
