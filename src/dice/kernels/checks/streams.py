"""Streams that C++ makes or takes from PyTorch's pool, and whether the caller's stream waits for them.

A join is a wait of the host, or of a stream that is not one of them. `event.block(side)` and `cudaStreamWaitEvent(side,
event)` make the side stream wait: they only fork. A wait that stands before the work, in the order in which functions run, is
for an earlier call's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Set

from dice.kernels.checks.stream_order import Mark, waits_at_last
from dice.kernels.source.cuda_source import CudaSource
from dice.kernels.source.lexer import Token, partner, read_tokens, words

_MADE_BY_ADDRESS = words("cudaStreamCreate cudaStreamCreateWithFlags cudaStreamCreateWithPriority")
_TAKEN = words("getStreamFromPool getStreamFromExternal")
_HOST_WAITS = words(
    "cudaStreamSynchronize cudaDeviceSynchronize cudaEventSynchronize cuStreamSynchronize cuCtxSynchronize "
    "stream_synchronize device_synchronize"
)
_STREAM_WAITS = words("cudaStreamWaitEvent cuStreamWaitEvent block")
"""The stream that waits is the first argument."""
_CURRENT = words("getCurrentCUDAStream getDefaultCUDAStream")
_RECORDS = words("cudaEventRecord cuEventRecord record")
_WORK = words("cudaMemcpyAsync cudaMemsetAsync CUDAStreamGuard setCurrentCUDAStream")
"""Besides launches; the stream is the last argument."""
_FAR = 1000
"""Tokens of what a name is given that are looked at."""
_NESTING = 50
"""All calls together have at most so many times the tokens of the source: those in others' arguments count again."""


def unjoined_streams(source: CudaSource) -> Iterator[Token]:
    """Tokens that make or take a stream, where nothing in the source joins one behind the work in it."""
    tokens = source.tokens
    made = [
        index
        for index, token in enumerate(tokens[:-1])
        if token.text in _MADE_BY_ADDRESS | _TAKEN - {"getStreamFromExternal"} and tokens[index + 1].text == "("
    ]
    if not made:
        return
    sides = _sides(source)
    joins = [index for index in range(len(tokens) - 1) if _joins(tokens, index, sides)]
    marks: dict[int, Mark] = dict.fromkeys(_work(source, sides, joins), "work")
    if not joins or not waits_at_last(source, {**marks, **dict.fromkeys(joins, "wait")}):
        yield from (tokens[index] for index in made)


def _work(source: CudaSource, sides: Set[str], joins: Iterable[int]) -> Iterator[int]:
    """Tokens that put work into a side stream for certain, or record an event there that a join waits for."""
    tokens = source.tokens
    current = {name for name, value in _assigned(tokens) if value & _CURRENT}
    plain = sides - current - _of_anybody(source, sides)
    awaited = {name for index in joins for name in _event(tokens, index)}
    opening = {launch.opening: launch.parts[3:] for launch in source.launches}

    def is_side(stream: list[Token]) -> bool:
        names = _names(stream)
        return bool(names & plain) if len(stream) == 1 else bool(names & sides) and not names & current

    for index, token in enumerate(tokens[:-1]):
        if token.start in opening:
            if any(is_side(read_tokens(part)) for part in opening[token.start]):
                yield index
            continue
        behind = index + 1 + (tokens[index + 1].kind == "identifier")  # `CUDAStreamGuard guard(side)`
        if token.text not in _WORK | _RECORDS or behind >= len(tokens) or tokens[behind].text not in ("(", "{"):
            continue
        arguments = _arguments(tokens, behind)
        recorded = token.text not in _RECORDS or bool(_event(tokens, index) & awaited)
        if recorded and arguments and is_side(arguments[-1]):
            yield index


def _event(tokens: list[Token], index: int) -> set[str]:
    """Names of the event that a call waits for or records: its first or second argument, or the object."""
    if tokens[index - 1].text in (".", "->"):
        return {tokens[index - 2].text}
    arguments = _arguments(tokens, index + 1)
    place = int(tokens[index].text in _STREAM_WAITS)
    return _names(arguments[place]) if len(arguments) > place else set()


def _of_anybody(source: CudaSource, sides: Set[str]) -> set[str]:
    """Parameters that nobody is seen to give side streams alone."""
    parameters = {p.name for function in source.functions for p in function.parameters if p.name}
    return parameters - {name for name, given in _passed(source) if all(argument & sides for argument in given)}


def _joins(tokens: list[Token], index: int, sides: set[str]) -> bool:
    if tokens[index + 1].text != "(":
        return False
    name, member = tokens[index].text, index > 0 and tokens[index - 1].text in (".", "->")
    if name in _HOST_WAITS or (name == "synchronize" and member):
        return True
    if name not in _STREAM_WAITS or (name == "block" and not member):
        return False
    waiting = _arguments(tokens, index + 1)[:1]
    return bool(waiting) and not _names(waiting[0]) & sides


def _sides(source: CudaSource) -> set[str]:
    """Variables that hold a side stream, or several: what is made of one, and parameters that only get one."""
    tokens = source.tokens
    sides = {name for index in range(len(tokens) - 1) for name in _by_address(tokens, index)}
    made_of: defaultdict[str, list[str]] = defaultdict(list)
    for name, value in _assigned(tokens):
        for word in value:
            made_of[word].append(name)
    passed = [*_passed(source)]
    getting: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for place, (_, arguments) in enumerate(passed):
        for call, argument in enumerate(arguments):
            for word in argument:
                getting[word].append((place, call))
    left = [{*range(len(arguments))} for _, arguments in passed]
    """Calls of which no side stream is known yet."""
    waiting = [*sides, *(name for word in _TAKEN for name in made_of[word])]
    sides = set()
    while waiting:
        name = waiting.pop()
        if name in sides:
            continue
        sides.add(name)
        waiting += made_of[name]
        for place, call in getting[name]:
            left[place].discard(call)
            if not left[place]:
                waiting.append(passed[place][0])
    return sides


def _by_address(tokens: list[Token], index: int) -> Iterator[str]:
    if tokens[index].text in _MADE_BY_ADDRESS and tokens[index + 1].text == "(":
        for argument in _arguments(tokens, index + 1)[:1]:
            yield from _names(argument)


def _assigned(tokens: list[Token]) -> Iterator[tuple[str, set[str]]]:
    """Names with those in what they are given: `a = ...;`, `for (auto a : ...)`, `type a(...)`, `type a{...}`."""
    for index, token in enumerate(tokens[1:-1], start=1):
        before = tokens[index - 1]
        if before.kind != "identifier":
            continue
        opens = index > 1 and token.text in ("(", "{") and tokens[index - 2].text in (">", "CUDAStream", "auto")
        if token.text in ("=", ":") or opens:
            far = min(index + _FAR, len(tokens))
            end = next((i for i in range(index + 1, far) if tokens[i].text in (";", ")")), far)
            if opens:
                end = min(partner(tokens, index) or end, far)
            yield before.text, _names(tokens[index + 1 : end])


def _passed(source: CudaSource) -> Iterator[tuple[str, list[set[str]]]]:
    """Parameters of functions with the names in what each call gives them; those that no call gives anything left out."""
    tokens = source.tokens
    calls: dict[str, list[tuple[int, list[set[str]]]]] = {function.name: [] for function in source.functions}
    left = _NESTING * len(tokens)
    for index in range(len(tokens) - 1):
        if tokens[index].text in calls and tokens[index + 1].text == "(":
            left -= max(tokens[index + 1].reach, 0)
            if left < 0:
                break
            arguments = [_names(argument) for argument in _arguments(tokens, index + 1)]
            calls[tokens[index].text].append((index, arguments))
    for function in source.functions:
        left -= len(calls[function.name])
        if left < 0:
            return
        made = [call for index, call in calls[function.name] if not function.first <= index < function.brace]
        for place, parameter in enumerate(function.parameters):
            given = [call[place] for call in made if len(call) > place]
            if parameter.name and given:
                yield parameter.name, given


def _arguments(tokens: list[Token], opening: int) -> list[list[Token]]:
    """The arguments in the brackets that open at tokens[opening]."""
    closing = partner(tokens, opening)
    found: list[list[Token]] = [[]]
    depth = 0
    for token in tokens[opening + 1 : closing or opening]:
        depth += (token.text in ("(", "[", "{")) - (token.text in (")", "]", "}"))
        if token.text == "," and depth == 0:
            found.append([])
        else:
            found[-1].append(token)
    return [argument for argument in found if argument]


def _names(tokens: list[Token]) -> set[str]:
    return {token.text for token in tokens if token.kind == "identifier"}
