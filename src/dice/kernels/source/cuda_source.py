"""One text of CUDA C++, read once for everybody: the build, the CPU back end and the checks.

What a text gives:

    source = CudaSource(text)        # any text; never raises
    source.functions                 # definitions wherever they stand, lambdas included; source.kernels: `__global__`
    source.launches                  # k<<<grid, block>>>(x), with offsets
    source.items                     # everything at namespace scope, in order
    source.check()                   # raises SplitRefused where the reading is not certain
    split_source(text)               # for a build: certain, with the macros expanded that would change the reading
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable
from functools import cached_property

from dice.kernels.source.declaration import Function
from dice.kernels.source.items import Item, ItemKind
from dice.kernels.source.launch import BrokenLaunch, Launch, read_launches
from dice.kernels.source.lexer import Lines, SplitRefused, Token, check_tokens, read_tokens
from dice.kernels.source.macros import DEFINE, Preprocess, expand_macros, macros_change_the_split
from dice.kernels.source.reader import Reader
from dice.kernels.source.variables import Variable, lasting_variables


class CudaSource:
    """The text and what stands where in it. All places are offsets into `text`, or indices into `tokens`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[Token] = read_tokens(text)

    @cached_property
    def _reader(self) -> Reader:
        return Reader(self.text, self.tokens, self._lines)

    @cached_property
    def _launches(self) -> tuple[list[Launch], list[BrokenLaunch]]:
        return read_launches(self.text, self.tokens, self._lines)

    @property
    def items(self) -> list[Item]:
        """Everything at namespace scope, in order."""
        return self._reader.items

    @property
    def functions(self) -> list[Function]:
        """Functions with a body, members of classes and lambdas among them, in the order of their bodies."""
        return self._reader.functions

    @property
    def launches(self) -> list[Launch]:
        """Launches, in order, those in the bodies of `#define`s included."""
        return self._launches[0]

    @cached_property
    def outer_functions(self) -> list[Function]:
        """Functions that do not stand inside another one."""
        found: list[Function] = []
        for function in self.functions:
            if not found or function.brace > found[-1].last:
                found.append(function)
        return found

    @cached_property
    def device_macros(self) -> frozenset[str]:
        """Macros of the source that name an execution space of the device."""
        spaces = {"__global__", "__device__"}
        return frozenset(name for name, text in self.macros.items() if spaces & set(re.findall(r"\w+", text)))

    @cached_property
    def kernels(self) -> list[Function]:
        """Kernels that are defined, not merely declared."""
        return [function for function in self.functions if "__global__" in function.specifiers]

    @cached_property
    def macros(self) -> dict[str, str]:
        """The `#define` of each macro of the source, by its name; the last one counts."""
        lines = [token.text for token in self.tokens if token.kind == "directive"]
        found = [(match, line) for line in lines if (match := DEFINE.match(line))]
        return {match.group(1): line for match, line in found if "undef" not in match.group()}

    @cached_property
    def variables(self) -> list[Variable]:
        """Variables that may change and keep their value between calls."""
        return lasting_variables(self.tokens, self.items, self.outer_functions)

    def of_kind(self, *kinds: ItemKind) -> list[Item]:
        """Items of these kinds, in order."""
        return [item for item in self.items if item.kind in kinds]

    def body(self, function: Function) -> list[Token]:
        """The tokens of a definition's body, its braces included."""
        return self.tokens[function.brace : function.last + 1]

    def functions_in(self, start: int, end: int) -> list[Function]:
        """Definitions whose body begins in text[start:end]."""
        first = bisect_left(self.functions, start, key=lambda function: function.body_start)
        return self.functions[first : bisect_left(self.functions, end, key=lambda function: function.body_start)]

    def is_paired(self, function: Function) -> bool:
        """Whether each bracket in a definition has its partner."""
        return self._reader.extents.is_paired(function.first, function.last)

    def check(self) -> None:
        """Raise SplitRefused where the reading is not certain, or where device code launches."""
        check_tokens(self.text, self.tokens)
        if self._reader.refusal is not None:
            raise SplitRefused(self._reader.refusal)
        for item in self.of_kind("kernel", "device_function"):
            if item.function is not None and item.function.is_defined:
                self.check_launches(item.start, item.end)
                if self.launches_in(item.start, item.end):
                    raise SplitRefused("a launch inside device code")

    def check_launches(self, start: int, end: int) -> None:
        """Raise SplitRefused for the first `<<<` in text[start:end] that is not part of a launch."""
        broken = self._launches[1]
        first = bisect_left(broken, start, key=lambda launch: launch.start)
        if first < len(broken) and broken[first].start < end:
            raise broken[first].error

    def launches_in(self, start: int, end: int) -> list[Launch]:
        """Launches in text[start:end]."""
        first = bisect_left(self.launches, start, key=lambda launch: launch.start)
        return self.launches[first : bisect_left(self.launches, end, key=lambda launch: launch.start)]

    def with_launches(self, render: Callable[[Launch], str], start: int = 0, end: int | None = None) -> str:
        """text[start:end] with every launch replaced by `render(launch)`. Everything else stays verbatim.

        Inside a `#define` the rendered text must stay on one line (line splices in the launch's own parts are kept).
        Raises SplitRefused.
        """
        end = len(self.text) if end is None else end
        self.check_launches(start, end)
        pieces: list[str] = []
        for launch in self.launches_in(start, end):
            if launch.start < start:
                raise SplitRefused("a launch inside another launch")
            pieces += [self.text[start : launch.start], render(launch)]
            start = launch.end
        return "".join([*pieces, self.text[start:end]])

    def runs_on_host(self, function: Function) -> bool:
        """Whether a definition is host code, or both."""
        head = {token.text for token in self.tokens[function.first : function.brace]}
        return "__host__" in head or not head & ({"__global__", "__device__"} | self.device_macros)

    def line(self, offset: int) -> int:
        """The line of an offset, counted from 1."""
        return self._lines.number(offset)

    def line_text(self, offset: int) -> str:
        """The text of the line that an offset lies in, without the white space around it."""
        return self._line_texts[self.line(offset) - 1]

    @cached_property
    def _line_texts(self) -> list[str]:
        return [line.strip() for line in self.text.split("\n")]

    @cached_property
    def _lines(self) -> Lines:
        return Lines(self.text)


def split_source(text: str, preprocess: Preprocess | None = None) -> CudaSource:
    """The source as a build splits it. Raises SplitRefused when its shape is not certain.

    Macros of the source that would change the items are expanded first, by `preprocess`.
    """
    source = CudaSource(text)
    check_tokens(text, source.tokens)
    if macros_change_the_split(source.tokens):
        source = CudaSource(expand_macros(text, source.tokens, preprocess))
    source.check()
    return source
