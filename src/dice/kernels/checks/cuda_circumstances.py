"""C++ of the host that asks a clock, the threads, the user or for a file, and leaves the function by the answer: what
`dice.kernels.checks.circumstances` finds in Python."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from dice.kernels.source.cuda_source import CudaSource
from dice.kernels.source.lexer import Token, partner, words

_ASKED = words(
    "now clock_gettime gettimeofday time clock getpid gettid getuid geteuid getlogin gethostname uname getcwd getrusage "
    "sysconf get_num_threads get_num_interop_threads hardware_concurrency sched_getcpu sched_getaffinity get_id rand "
    "random drand48 random_device get_nprocs times current_path access faccessat stat lstat exists is_directory "
    "is_regular_file is_open opendir"
)
"""Functions that tell about the process, the machine or the moment."""

Tells = Callable[[Sequence[Token], set[str]], bool]
"""Whether tokens ask for something, or name one of the variables and functions that do."""


def cuda_circumstances(source: CudaSource) -> Iterator[Token]:
    """The `if` of host functions that returns in one of its branches, by what such a function tells."""
    hosts = [function for function in source.outer_functions if source.runs_on_host(function)]
    asking = {function.name for function in hosts if _tells(source.body(function), set())}
    for function in hosts:
        yield from _branches(source.body(function), asking)


def _branches(body: list[Token], asking: set[str]) -> Iterator[Token]:
    names = told(body, asking, _tells)
    telling = [*accumulate((_is_telling(body, index, names) for index in range(len(body))), initial=0)]
    returns, ends = ([i for i, token in enumerate(body) if token.text == text] for text in ("return", ";"))
    known: dict[int, bool] = {}

    def leaves(begin: int) -> bool:
        """Whether the statement or block at `begin`, or one behind each `else`, returns. Each is looked at once."""
        path: list[tuple[int, bool]] = []
        result = False
        for place, end in branches(body, begin, ends):
            if place in known:
                result = known[place]
                break
            path.append((place, _next(returns, place, end) < end))
        for place, own in reversed(path):
            result |= own
            known[place] = result
        return result

    for index, token in enumerate(body):
        asked = condition(body, index)
        if asked is not None and telling[asked[1]] > telling[asked[0]] and leaves(asked[1] + 1):
            yield token


def condition(body: Sequence[Token], index: int) -> tuple[int, int] | None:
    """Places of the brackets around what the `if` or `if constexpr` at `index` asks; None where there are none."""
    if body[index].text != "if":
        return None
    opening = index + 1 + (index + 1 < len(body) and body[index + 1].text == "constexpr")
    opens = opening < len(body) and body[opening].text == "("
    closing = partner(body, opening) if opens else None
    return None if closing is None else (opening, closing)


def _next(places: list[int], begin: int, otherwise: int) -> int:
    """The first of sorted `places` from `begin` on."""
    found = bisect_left(places, begin)
    return places[found] if found < len(places) else otherwise


def told(body: list[Token], asking: set[str], tells: Tells) -> set[str]:
    """Local variables that hold what was told, and functions that ask."""
    names = set(asking)
    begin = 0
    for index, token in enumerate(body):
        if token.text not in (";", "{", "}"):
            continue
        texts = [item.text for item in body[begin:index]]
        if "=" in texts[1:] and tells(body[begin + texts.index("=", 1) + 1 : index], names):
            names.add(texts[texts.index("=", 1) - 1])
        begin = index + 1
    return names


def _tells(tokens: Sequence[Token], names: set[str]) -> bool:
    return any(_is_telling(tokens, index, names) for index in range(len(tokens)))


def _is_telling(tokens: Sequence[Token], index: int, names: set[str]) -> bool:
    token = tokens[index]
    if token.kind != "identifier":
        return False
    return token.text in names or (token.text in _ASKED and index + 1 < len(tokens) and tokens[index + 1].text == "(")


def branches(body: list[Token], begin: int, ends: list[int]) -> Iterator[tuple[int, int]]:
    """First and last index of the statement or block at `begin`, and of those behind each `else`. ends: of each `;`."""
    while begin < len(body):
        end = partner(body, begin) if body[begin].text == "{" else None
        if end is None:
            end = _next(ends, begin, len(body))
        yield begin, end
        if end + 2 >= len(body) or body[end + 1].text != "else":
            return
        asked = condition(body, end + 2)
        begin = (asked[1] if asked else end + 1) + 1
