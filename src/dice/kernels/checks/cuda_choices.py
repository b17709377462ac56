"""C++ of the host that reads values of a tensor and chooses by them between its kernels and PyTorch: what
`dice.kernels.checks.circumstances` finds in Python."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from dice.kernels.checks.choices import Work, is_between_both
from dice.kernels.checks.cuda_circumstances import branches, condition, told
from dice.kernels.checks.cuda_numbers_read import OWNERS, copied, pointers_of, reads
from dice.kernels.checks.workload import is_work
from dice.kernels.source.cuda_source import CudaSource
from dice.kernels.source.lexer import Token, partner, words

_LAUNCHERS = words("<<< cudaLaunchKernel cudaLaunchKernelEx cudaLaunchCooperativeKernel cudaGraphLaunch")
_AMBIGUOUS = words("size stride data ptr sum add min max index sort any all")
"""Methods of other types as well: no proof that PyTorch computes."""
_BEFORE = words("; { } = return ?")
"""What the condition of a `?` begins behind."""
_FAR = 1000
"""Tokens from a `?` to the ends of its outcomes."""
_ROUNDS = 6
"""Calls by which a launch is followed."""
_MOST = 100
"""Choices of a function that are looked at."""
_NESTING = 20
"""All conditions of a function together have at most so many times its tokens: those in others' conditions count again."""


def choices_by_content(source: CudaSource) -> Iterator[Token]:
    """The `if` and `?` of host functions with a way that launches kernels and one where only PyTorch computes, by values of a
    tensor."""
    functions = {function.name: function for function in source.outer_functions if source.runs_on_host(function)}
    hosts = {name: source.body(function) for name, function in functions.items()}
    pointers = {name: pointers_of(body, functions[name]) for name, body in hosts.items()}
    known = _known(hosts)
    reading = {name for name, body in hosts.items() if reads(body, set(), pointers[name]) and not known[name].launches}
    for name, body in hosts.items():
        tells = functools.partial(reads, pointers=pointers[name])
        names = told(body, reading | copied(body), tells)
        ends = [index for index, token in enumerate(body) if token.text == ";"]
        asking = (index for index, asked in _asked(body) if tells(asked, names))
        for index in islice(asking, _MOST):
            if is_between_both({_work(way, known) for way in _ways(body, index, ends)}):
                yield body[index]


def _known(hosts: Mapping[str, list[Token]]) -> dict[str, Work]:
    """What each host function does, by itself and through others."""
    known: dict[str, Work] = dict.fromkeys(hosts, Work())
    for _ in range(_ROUNDS):
        found = {name: _work(body, known) for name, body in hosts.items()}
        if found == known:
            break
        known = found
    return known


def _work(tokens: Sequence[Token], known: Mapping[str, Work]) -> Work:
    launches = computes = False
    for index, token in enumerate(tokens):
        if token.text in _LAUNCHERS:
            launches = True
        if token.kind != "identifier":
            continue
        owner, joint = ["", "", *(item.text for item in tokens[max(0, index - 2) : index])][-2:]
        called = [item.text for item in tokens[index + 1 : index + 2]] == ["("]
        if joint not in (".", "->", "::"):  # a function of the file, called or handed on
            own = known.get(token.text, Work())
            launches, computes = launches or own.launches, computes or own.computes
        elif joint == "::":
            computes |= owner in OWNERS and is_work(token.text)
        else:
            computes |= called and is_work(token.text) and token.text not in _AMBIGUOUS
    return Work(launches, computes)


def _asked(body: list[Token]) -> Iterator[tuple[int, list[Token]]]:
    """The choices of a function, each with the tokens that it asks; as far as they are not nested too deep."""
    left = _NESTING * len(body)
    for index in range(len(body)):
        asked = _condition(body, index)
        if asked is not None:
            left -= asked[1] - asked[0]
            if left < 0:
                return
            yield index, body[asked[0] : asked[1]]


def _condition(body: list[Token], index: int) -> tuple[int, int] | None:
    """Where the condition of the choice at `index` begins and ends; None where no choice stands there."""
    if body[index].text == "?":
        begin = index
        while begin and index - begin < _FAR and body[begin - 1].text not in _BEFORE:
            begin -= 1
        return begin, index
    asked = condition(body, index)
    if [item.text for item in body[index : index + 2]] == ["switch", "("]:
        asked = index + 1, partner(body, index + 1) or index + 1
    return None if asked is None else (asked[0] + 1, asked[1])


def _ways(body: list[Token], index: int, ends: list[int]) -> Iterator[list[Token]]:
    """What runs from each outcome of the choice at `index` to where the function is left; of a `?`, its two values. ends: of
    each `;`."""
    if body[index].text == "?":
        reach = [token.text for token in body[index : index + _FAR]]
        end = reach.index(";") if ";" in reach else len(reach)
        colon = reach.index(":", 0, end) if ":" in reach[:end] else end
        yield body[index : index + colon]
        yield body[index + colon : index + end]
        return
    if body[index].text == "switch":
        yield from _cases(body, index)
        return
    asked = condition(body, index)
    assert asked is not None
    outcomes = list(branches(body, asked[1] + 1, ends))
    behind = body[outcomes[-1][1] + 1 :] if outcomes else []
    for begin, end in [*outcomes, *([(0, -1)] if len(outcomes) == 1 else [])]:
        chosen = body[begin : end + 1]
        whole = chosen[:1] and chosen[0].text == "{"
        left = _until_left(chosen[1:-1] if whole else chosen)
        yield left if left is not None else chosen + (_until_left(behind) or behind)


def _cases(body: list[Token], index: int) -> Iterator[list[Token]]:
    """What runs from each label of a `switch`, and behind it."""
    closing = partner(body, index + 1) or index
    end = (partner(body, closing + 1) if closing + 1 < len(body) else None) or closing
    labels = [place for place in range(closing, end) if body[place].text in ("case", "default")]
    for begin, stop in zip(labels, [*labels[1:], end], strict=True):
        chosen = body[begin:stop]
        left = _until_left(chosen)
        yield left if left is not None else chosen + (_until_left(body[end + 1 :]) or body[end + 1 :])
    if not any(body[place].text == "default" for place in labels):
        yield _until_left(body[end + 1 :]) or body[end + 1 :]


def _until_left(tokens: list[Token]) -> list[Token] | None:
    """The tokens up to the first `return` or `throw` that stands in no block; None where there is none."""
    level = 0
    for index, token in enumerate(tokens):
        level += (token.text == "{") - (token.text == "}")
        if token.text in ("return", "throw") and level <= 0 and not _is_conditional(tokens, index):
            return tokens[
                : next((place for place in range(index, len(tokens)) if tokens[place].text == ";"), len(tokens))
            ]
    return None


def _is_conditional(tokens: list[Token], index: int) -> bool:
    """Whether a statement stands directly behind a condition or an `else`."""
    return index > 0 and tokens[index - 1].text in (")", "else")
