"""Conditional compilation by which one compiler gets another program: `#ifdef __CUDACC_VER_BUILD__` around a call of PyTorch.

A macro tells about compiler, machine, back end or flags if its name is reserved to them, or if the source defines it
inside a condition that asks for such. What matters is the work of the branches: where one calls PyTorch or a library and
another does not, it is a choice. Versions that spell one thing in two ways, and guards around device code, choose nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

from dice.kernels.checks.cuda_kernels import library_calls
from dice.kernels.checks.workload import is_work
from dice.kernels.source.cuda_source import CudaSource
from dice.kernels.source.lexer import CONDITIONAL, WORD, Token, partner
from dice.kernels.source.macros import DEFINE

_TELLING = re.compile(
    r"_\w+|CUDA\w*|CUDART\w*|CUDNN\w*|CUBLAS\w*|NV\w*|TORCH\w*|C10\w*|AT_\w*|CAFFE2\w*|PYBIND11\w*|Py\w*|PY_\w*|USE_\w*|WITH_\w*|"
    r"DICE\w*|dice\w*|NDEBUG|linux|unix|EIGEN\w*|BOOST\w*|FLT\w*|DBL\w*|RAND_MAX|EOF|E[A-Z]+"
)
"""Names of macros that compilers, the C library, CUDA's and PyTorch's headers or flags define."""
_BLAS = re.compile(r"(?:cblas|mkl|LAPACKE)_\w+|[sdcz]gem[mv]_")
_NOT_PYTORCHS = ("std", "c10", "cub", "thrust")


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
    for one in _conditionals(source):
        if not any(_tells(source, word, telling) for word in one.asks):
            continue
        bodies = [source.tokens[a + 1 : b] for a, b in zip(one.starts, [*one.starts[1:], one.end], strict=True)]
        telling |= {name for body in bodies for name in _defined(body)}
        works = [_calls_libraries(source, body) for body in bodies]
        if any(works) and not all([*works, one.whole]) and not _is_only_there(source, one, bodies):
            yield one.first
    yield from _asked(source, telling)


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


def _defined(body: Sequence[Token]) -> Iterator[str]:
    """Macros, and variables with a value, that a branch defines."""
    for index, token in enumerate(body):
        match = DEFINE.match(token.text) if token.kind == "directive" else None
        if match:
            yield match.group(1)
        elif token.text == "=" and index and body[index - 1].kind == "identifier":
            yield body[index - 1].text


def _calls_libraries(source: CudaSource, body: Sequence[Token]) -> bool:
    """Whether tokens call an operator of PyTorch that computes, or a library; in the text of a macro, too."""
    if not body:
        return False
    part = CudaSource(source.text[body[0].start : body[-1].end])
    macros = (CudaSource(text[match.end() :]) for text in _macros(part) if (match := DEFINE.match(text)))
    return any(
        library_calls(each) or any(_works(each.tokens, i) for i in range(len(each.tokens))) for each in (part, *macros)
    )


def _macros(part: CudaSource) -> list[str]:
    return [token.text for token in part.tokens if token.kind == "directive"]


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


def _is_only_there(source: CudaSource, one: _Conditional, bodies: Sequence[Sequence[Token]]) -> bool:
    """Whether it is a guard around whole functions that stand nowhere else: without it there is no program."""
    start, end = source.tokens[one.starts[0]].start, source.tokens[one.end].start
    around = any(each.body_start < start < each.end for each in source.outer_functions)
    if around or one.whole or len(bodies) > 1:
        return False
    inside = {each.name for each in source.functions_in(start, end)}
    others = {each.name for each in source.outer_functions if not start < each.start < end}
    return bool(inside) and inside.isdisjoint(others)


def _asked(source: CudaSource, telling: Set[str]) -> Iterator[Token]:
    """The `if` of host functions by a constant that a telling condition defines, where a library is called in it."""
    for function in source.outer_functions if telling else ():
        body = source.body(function)
        if not source.runs_on_host(function) or not _calls_libraries(source, body):
            continue
        for index, token in enumerate(body):
            if any(each.text in telling for each in _condition(body, index)):
                yield token


def _condition(body: Sequence[Token], index: int) -> Sequence[Token]:
    """The condition of the `if`, `if constexpr` or `?` at an index: what stands before the `?` in its statement."""
    if body[index].text == "?":
        begin = next((i for i in range(index, 0, -1) if body[i].text in (";", "{", "}", "=")), 0)
        return body[begin:index]
    opening = index + 1 + (body[index].text == "if" and body[index + 1].text == "constexpr")
    closing = partner(body, opening) if body[index].text == "if" and body[opening].text == "(" else None
    return body[opening:closing] if closing is not None else ()
