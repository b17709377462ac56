"""Conditional compilation by which one compiler gets another program: `#ifdef __CUDACC_VER_BUILD__` around a call of PyTorch.

A macro tells about compiler, machine, back end or flags if its name is reserved to them, or if the source defines it
inside a condition that asks for such. What matters is the work of the branches: where one calls PyTorch or a library and
another does not, it is a choice. Versions that spell one thing in two ways, and guards around device code, choose nothing.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import accumulate, pairwise

from dice.kernels.checks.cuda_circumstances import condition
from dice.kernels.checks.cuda_kernels import library_places
from dice.kernels.checks.workload import is_work
from dice.kernels.source.cuda_source import CudaSource
from dice.kernels.source.lexer import CONDITIONAL, WORD, Token
from dice.kernels.source.macros import DEFINE

_TELLING = re.compile(
    r"_\w+|CUDA\w*|CUDART\w*|CUDNN\w*|CUBLAS\w*|NV\w*|TORCH\w*|C10\w*|AT_\w*|CAFFE2\w*|PYBIND11\w*|Py\w*|PY_\w*|USE_\w*|WITH_\w*|"
    r"DICE\w*|dice\w*|NDEBUG|linux|unix|EIGEN\w*|BOOST\w*|FLT\w*|DBL\w*|RAND_MAX|EOF|E[A-Z]+"
)
"""Names of macros that compilers, the C library, CUDA's and PyTorch's headers or flags define."""
_BLAS = re.compile(r"(?:cblas|mkl|LAPACKE)_\w+|[sdcz]gem[mv]_")
_ENDS = (";", "{", "}", "=", "?", ":", ",")
"""Tokens behind which a condition of `?` may begin."""
_NOT_PYTORCHS = ("std", "c10", "cub")


@dataclass
class _Conditional:
    """`#if` to `#endif`. starts: indices of its directives but for the last, `end`; whole: whether one is `#else`."""

    first: Token
    starts: list[int]
    asks: set[str]
    whole: bool
    end: int = 0


def cuda_conditions(source: CudaSource) -> Iterator[Token]:
    """The `#if` of each such choice, and each `if` by what one of them defines."""
    telling: set[str] = set()
    reading = _Reading(source)
    for one in _conditionals(source):
        if not any(_tells(source, word, telling) for word in one.asks):
            continue
        telling |= reading.taken_definitions(one.starts[0], one.end)
        works = [reading.works(a + 1, b) for a, b in pairwise([*one.starts, one.end])]
        if any(works) and not all([*works, one.whole]) and not reading.is_only_there(one):
            yield one.first
    yield from _asked(source, reading, telling)


class _Reading:
    """What stands where in a source, each question answered without reading its text again."""

    def __init__(self, source: CudaSource) -> None:
        self._source = source
        tokens = source.tokens
        places = {index for index, _ in library_places(tokens)}
        flags = (i in places or _works(tokens, i) or _works_in_a_macro(tokens[i]) for i in range(len(tokens)))
        self._works = list(accumulate(flags, initial=0))
        self._definitions = list(_defined(tokens))
        starts = [each.start for each in source.outer_functions]
        names = [each.name for each in source.outer_functions]
        self._first = dict(zip(reversed(names), reversed(starts), strict=True))
        self._last = dict(zip(names, starts, strict=True))

    def works(self, first: int, end: int) -> bool:
        """Whether tokens[first:end] call an operator of PyTorch that computes, or a library; in the text of a macro, too."""
        return self._works[end] > self._works[first]

    def taken_definitions(self, first: int, end: int) -> set[str]:
        """Macros, and variables with a value, that tokens[first:end] define. Each is told once."""
        begin, stop = (bisect_left(self._definitions, (place, "")) for place in (first, end))
        found = {name for _, name in self._definitions[begin:stop]}
        del self._definitions[begin:stop]
        return found

    def is_only_there(self, one: _Conditional) -> bool:
        """Whether it is a guard around whole functions that stand nowhere else: without it there is no program."""
        source = self._source
        start, end = source.tokens[one.starts[0]].start, source.tokens[one.end].start
        outer = source.outer_functions
        before = outer[: bisect_left(outer, start, key=lambda each: each.body_start)][-1:]
        if one.whole or len(one.starts) > 1 or any(start < each.end for each in before):
            return False
        inside = {each.name for each in source.functions_in(start, end)}
        return bool(inside) and all(
            start < self._first.get(name, end) and self._last.get(name, end) <= end for name in inside
        )


def _tells(source: CudaSource, word: str, telling: Set[str]) -> bool:
    return word in telling or (word not in source.macros and _TELLING.fullmatch(word) is not None)


def _conditionals(source: CudaSource) -> Iterator[_Conditional]:
    """Each once its `#endif` is read, inner ones first."""
    waiting: list[_Conditional] = []
    for index, token in enumerate(source.tokens):
        match = CONDITIONAL.match(token.text) if token.kind == "directive" else None
        if match is None:
            continue
        word, asked = match.group(1), set(WORD.findall(token.text, match.end())) - {"defined"}
        if word.startswith("if"):
            waiting.append(_Conditional(token, [index], asked, False))
        elif waiting and word != "endif":
            waiting[-1].starts.append(index)
            waiting[-1].asks |= asked
            waiting[-1].whole |= word == "else"
        elif waiting:
            waiting[-1].end = index
            yield waiting.pop()


def _defined(tokens: Sequence[Token]) -> Iterator[tuple[int, str]]:
    """Macros, and variables with a value, each with its place."""
    for index, token in enumerate(tokens):
        match = DEFINE.match(token.text) if token.kind == "directive" else None
        if match:
            yield index, match.group(1)
        elif token.text == "=" and index and tokens[index - 1].kind == "identifier":
            yield index, tokens[index - 1].text


def _works_in_a_macro(token: Token) -> bool:
    match = DEFINE.match(token.text) if token.kind == "directive" else None
    if match is None:
        return False
    tokens = CudaSource(token.text[match.end() :]).tokens
    return any(True for _ in library_places(tokens)) or any(_works(tokens, i) for i in range(len(tokens)))


def _works(tokens: Sequence[Token], index: int) -> bool:
    """Whether tokens[index] is called as an operator: `at::mm(`, `x.mm(`, `at::_ops::mm::call(`."""
    token = tokens[index]
    if token.kind != "identifier" or index + 1 >= len(tokens):
        return False
    if _BLAS.fullmatch(token.text):
        return tokens[index + 1].text == "("
    before = tokens[index - 1].text if index else ""
    owner = tokens[index - 2].text if index > 1 and before == "::" else ""
    called = tokens[index + 1].text == "(" or owner == "_ops"
    return called and before in ("::", ".", "->") and owner not in _NOT_PYTORCHS and is_work(token.text)


def _asked(source: CudaSource, reading: _Reading, telling: Set[str]) -> Iterator[Token]:
    """The `if` of host functions by a constant that a telling condition defines, where a library is called in it."""
    for function in source.outer_functions if telling else ():
        if not source.runs_on_host(function) or not reading.works(function.brace, function.last + 1):
            continue
        body = source.body(function)
        asked = list(accumulate((token.text in telling for token in body), initial=0))
        for index, begin, end in _decisions(body):
            if asked[end] > asked[begin]:
                yield body[index]


def _decisions(body: Sequence[Token]) -> Iterator[tuple[int, int, int]]:
    """Places of `if` and `?`, each with the first and the last but one token of what it asks: in brackets, or what stands
    before the `?`."""
    begin = 0
    for index, token in enumerate(body):
        if token.text == "?":
            yield index, begin, index
        elif (asked := condition(body, index)) is not None:
            yield index, *asked
        if token.text in _ENDS:
            begin = index + 1
