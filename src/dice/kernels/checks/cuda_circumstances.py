"""C++ of the host that asks a clock, the threads, the user or for a file, and leaves the function by the answer: what
`dice.kernels.checks.circumstances` finds in Python."""

from __future__ import annotations

from collections.abc import Iterator

from dice.kernels.source.cuda_source import CudaSource
from dice.kernels.source.lexer import Token, partner, words

_ASKED = words(
    "now clock_gettime gettimeofday time clock getpid gettid getuid geteuid getlogin gethostname uname getcwd getrusage "
    "sysconf get_num_threads get_num_interop_threads hardware_concurrency sched_getcpu sched_getaffinity get_id rand "
    "random drand48 random_device get_nprocs times current_path access faccessat stat lstat exists is_directory "
    "is_regular_file is_open opendir"
)
"""Functions that tell about the process, the machine or the moment."""


def cuda_circumstances(source: CudaSource) -> Iterator[Token]:
    """The `if` of host functions that returns in one of its branches, by what such a function tells."""
    hosts = [function for function in source.outer_functions if source.runs_on_host(function)]
    asking = {function.name for function in hosts if _tells(source.body(function), set())}
    for function in hosts:
        yield from _branches(source.body(function), asking)


def _branches(body: list[Token], asking: set[str]) -> Iterator[Token]:
    told = _told(body, asking)
    for index, token in enumerate(body[:-1]):
        closing = partner(body, index + 1) if token.text == "if" and body[index + 1].text == "(" else None
        if closing is not None and _tells(body[index + 2 : closing], told) and _returns(body, closing + 1):
            yield token


def _told(body: list[Token], asking: set[str]) -> set[str]:
    """Local variables that hold what was told, and functions that ask."""
    told = set(asking)
    begin = 0
    for index, token in enumerate(body):
        if token.text not in (";", "{", "}"):
            continue
        texts = [item.text for item in body[begin:index]]
        if "=" in texts[1:] and _tells(body[begin + texts.index("=", 1) + 1 : index], told):
            told.add(texts[texts.index("=", 1) - 1])
        begin = index + 1
    return told


def _tells(tokens: list[Token], told: set[str]) -> bool:
    return any(
        token.kind == "identifier"
        and (
            token.text in told
            or (token.text in _ASKED and [item.text for item in tokens[index + 1 : index + 2]] == ["("])
        )
        for index, token in enumerate(tokens)
    )


def _returns(body: list[Token], begin: int) -> bool:
    """Whether the statement at `begin`, or the block, has a return."""
    end = partner(body, begin) if begin < len(body) and body[begin].text == "{" else None
    if end is None:
        end = next((index for index in range(begin, len(body)) if body[index].text == ";"), len(body))
    return any(token.text == "return" for token in body[begin:end])
